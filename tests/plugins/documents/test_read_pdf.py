"""Text out of PDF files."""

from __future__ import annotations

import shutil
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from anyio import run_process
from pypdf import PdfReader, PdfWriter
from tests.plugins.documents.conftest import Call
from tests.plugins.documents.pdf_files import line, numbered, pdf

from handrail import Session

PICTURE = b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>stream\n0\nendstream"
LEFT = ("The quick brown fox jumps over the", "lazy dog and then goes home to", "sleep until the next morning")
RIGHT = ("Meanwhile the cat sits on the wall", "watching everything that happens in", "the garden without interest")


def page_of(text: str) -> bytes:
    return line(text, 72, 700)


@pytest.mark.parametrize(
    ("pages", "read"),
    [
        (None, [1, 2, 3, 4, 5]),
        ("", [1, 2, 3, 4, 5]),
        ("2", [2]),
        ("2-3", [2, 3]),
        ("4-", [4, 5]),
        ("1, 4-5", [1, 4, 5]),
        ("3-3", [3]),
        ("5,1", [1, 5]),
        ("2-99999999999999", [2, 3, 4, 5]),
    ],
)
async def test_the_pages_asked_for_are_read(call: Call, folder: Path, pages: str | None, read: list[int]) -> None:
    (folder / "a.pdf").write_bytes(pdf([page_of(f"this is page {n}") for n in range(1, 6)]))
    result = await call("read_pdf", "a.pdf", pages=pages)
    assert result["content"] == "\n\n".join(f"## Page {n}\n\nthis is page {n}" for n in read)
    assert (result["page_count"], result["pages_read"], result["truncated"]) == (5, len(read), False)


@pytest.mark.parametrize("pages", ["0", "x", "3-2", "6", "-", "1-2-3", "1;2", "٣٣٣"])
async def test_what_names_no_page_is_refused(call: Call, folder: Path, pages: str) -> None:
    (folder / "a.pdf").write_bytes(pdf([page_of("x")] * 5))
    result = await call("read_pdf", "a.pdf", pages=pages)
    assert result.error_code == "invalid_arguments"


async def test_columns_that_alternate_line_by_line_are_read_one_after_another(call: Call, folder: Path) -> None:
    drawn = line("A title that goes over both of the columns, as titles often do in newspapers", 72, 760, 16)
    for at, (left, right) in enumerate(zip(LEFT * 3, RIGHT * 3, strict=True)):
        drawn += line(left, 72, 700 - 14 * at) + line(right, 320, 700 - 14 * at)
    (folder / "a.pdf").write_bytes(pdf([drawn]))
    lines = (await call("read_pdf", "a.pdf"))["content"].splitlines()
    assert lines[3:] == [*LEFT * 3, *RIGHT * 3]


async def test_the_rows_of_a_table_stay_rows(call: Call, folder: Path) -> None:
    drawn = b"".join(line(f"item {n}", 72, 700 - 14 * n) + line(f"{n}.00", 320, 700 - 14 * n) for n in range(10))
    (folder / "a.pdf").write_bytes(pdf([drawn]))
    lines = (await call("read_pdf", "a.pdf"))["content"].splitlines()
    assert [each.split() for each in lines[2:]] == [["item", str(n), f"{n}.00"] for n in range(10)]


async def by_poppler(path: Path, *options: str, check: bool = True) -> str:
    program = shutil.which("pdftotext")
    assert program, "If this fails, install poppler-utils."
    return (await run_process([program, *options, str(path), "-"], check=check)).stdout.decode()


def words_of(content: str) -> list[str]:
    """The words of all pages, without what is said of each."""
    return [
        word for row in content.splitlines() if not row.startswith(("## Page ", "[no text]")) for word in row.split()
    ]


async def test_poppler_reads_the_same(call: Call, folder: Path) -> None:
    drawn = b"".join(line(text, 72, 700 - 14 * n) for n, text in enumerate(LEFT))
    (folder / "a.pdf").write_bytes(pdf([drawn, page_of("the second"), page_of("the third")]))
    assert words_of((await call("read_pdf", "a.pdf"))["content"]) == (await by_poppler(folder / "a.pdf")).split()
    some = await call("read_pdf", "a.pdf", pages="2-3")
    assert words_of(some["content"]) == (await by_poppler(folder / "a.pdf", "-f", "2", "-l", "3")).split()


async def test_poppler_reads_the_same_of_what_libreoffice_wrote(call: Call, folder: Path) -> None:
    shutil.copy(Path(__file__).parent / "libreoffice" / "letter.pdf", folder)
    assert (
        words_of((await call("read_pdf", "letter.pdf"))["content"]) == (await by_poppler(folder / "letter.pdf")).split()
    )


async def test_poppler_shows_what_a_form_of_libreoffice_holds(call: Call, folder: Path) -> None:
    shutil.copy(Path(__file__).parent / "libreoffice" / "form.pdf", folder)
    fields = (await call("read_pdf", "form.pdf"))["form_fields"]
    assert fields == {
        "Full name": "Zoë Müller",
        "Note": "line one\r\nline two",
        "Agree": "Yes",
        "News": "Off",
        "City": "Paris",
        "Pay": "card",
        "Colours": ["red", "green"],
        "Secret": "",
        "Send": None,
    }
    shown = await by_poppler(folder / "form.pdf")
    assert [text for text in ("Zoë Müller", "line one", "Paris", "red", "green") if text not in shown] == []


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
async def test_poppler_opens_with_the_same_password(call: Call, folder: Path, algorithm: str) -> None:
    (folder / "a.pdf").write_bytes(encrypted("user", algorithm))
    result = await call("read_pdf", "a.pdf", password="user")
    assert (
        words_of(result["content"]) == (await by_poppler(folder / "a.pdf", "-upw", "user")).split() == ["a", "secret"]
    )


async def test_poppler_reads_columns_in_the_same_order(call: Call, folder: Path) -> None:
    drawn = b"".join(line(text, 72, 700 - 14 * n) for n, text in enumerate(LEFT * 3))
    drawn += b"".join(line(text, 320, 700 - 14 * n) for n, text in enumerate(RIGHT * 3))
    (folder / "a.pdf").write_bytes(pdf([drawn]))
    assert words_of((await call("read_pdf", "a.pdf"))["content"]) == (await by_poppler(folder / "a.pdf")).split()


async def test_what_libreoffice_wrote_is_read(call: Call, folder: Path) -> None:
    shutil.copy(Path(__file__).parent / "libreoffice" / "letter.pdf", folder)
    assert (await call("read_pdf", "letter.pdf"))["content"].split()[-5:] == ["Grüße", "aus", "漢字", "a", "1"]


async def test_pages_that_are_pictures_are_named(call: Call, folder: Path) -> None:
    scan = pdf(
        [page_of("text"), b"q 600 0 0 800 0 0 cm /Im Do Q", b""], resources=b"/XObject<</Im 10 0 R>>", more=[PICTURE]
    )
    (folder / "a.pdf").write_bytes(scan)
    result = await call("read_pdf", "a.pdf")
    assert result["scanned_pages"] == [2, 3]
    assert "[a scan or picture: no text]" in result["content"]
    assert "OCR" in result["note"]


async def test_an_empty_page_is_no_scan(call: Call, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf([b""]))
    result = await call("read_pdf", "a.pdf")
    assert result["content"] == "## Page 1\n\n[no text]"
    assert "scanned_pages" not in result


async def test_at_most_200_000_characters_are_shown(call: Call, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf([b"".join(line("x" * 90, 0, 700 - n) for n in range(550))] * 6))
    result = await call("read_pdf", "a.pdf")
    assert (result["pages_read"], result["page_count"], result["truncated"]) == (4, 6, True)
    assert len(result["content"]) <= 200_000
    assert "pages='5-6'" in result["note"]


async def test_a_page_that_is_too_long_for_itself_is_cut(call: Call, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf([b"".join(line("x" * 90, 0, 7000 - n) for n in range(3000))]))
    result = await call("read_pdf", "a.pdf")
    assert (result["pages_read"], result["truncated"], len(result["content"])) == (1, True, 200_000)
    assert "was cut" in result["note"]


async def test_the_values_of_a_form_are_told(call: Call, folder: Path) -> None:
    fields = b"/AcroForm<</Fields[6 0 R 7 0 R]>>"
    more = [b"<</FT/Tx/T(name)/V(Ada)>>", b"<</FT/Btn/T(agree)/V/Yes>>"]
    (folder / "a.pdf").write_bytes(pdf([page_of("a form")], root=fields, more=more))
    assert (await call("read_pdf", "a.pdf"))["form_fields"] == {"name": "Ada", "agree": "Yes"}


def encrypted(user: str, algorithm: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(BytesIO(pdf([page_of("a secret")]))))
    writer.encrypt(user, owner_password="owner", algorithm=algorithm)
    out = BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
async def test_what_takes_no_password_is_read(call: Call, folder: Path, algorithm: str) -> None:
    (folder / "a.pdf").write_bytes(encrypted("", algorithm))
    result = await call("read_pdf", "a.pdf")
    assert "a secret" in result["content"]
    assert "encrypted" in result["note"]


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
@pytest.mark.parametrize("password", ["user", "owner"])
async def test_what_takes_a_password_is_read_with_it(call: Call, folder: Path, algorithm: str, password: str) -> None:
    (folder / "a.pdf").write_bytes(encrypted("user", algorithm))
    result = await call("read_pdf", "a.pdf", password=password)
    assert "a secret" in result["content"]


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
@pytest.mark.parametrize("password", [None, "wrong"])
async def test_without_its_password_a_file_is_refused(
    call: Call, folder: Path, algorithm: str, password: str | None
) -> None:
    (folder / "a.pdf").write_bytes(encrypted("user", algorithm))
    result = await call("read_pdf", "a.pdf", password=password)
    assert result["error"]["details"] == {"reason": "protected"}
    assert "password" in result["error"]["message"]


async def test_a_password_is_not_recorded(session: Session, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(encrypted("open-sesame-17", "AES-256"))
    await session.call("read_pdf", {"path": str(folder / "a.pdf"), "password": "open-sesame-17"})
    written = b"".join(path.read_bytes() for path in session.runtime.places.audit.rglob("*") if path.is_file())
    assert b"a.pdf" in written
    assert b"open-sesame-17" not in written


async def test_a_form_that_cannot_be_made_out_is_told(call: Call, folder: Path) -> None:
    broken = b"/AcroForm<</Fields[6 0 R]>>"
    (folder / "a.pdf").write_bytes(
        pdf([page_of("text")], root=broken, more=[b"<</FT/Tx/T(x)/Kids 7 0 R>>", b"(no list)"])
    )
    result = await call("read_pdf", "a.pdf")
    assert "text" in result["content"]
    assert "a form that cannot be made out" in result["note"]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[: len(data) // 2], id="cut"),
        pytest.param(lambda data: data.replace(b"startxref", b"startyref"), id="no-table"),
        pytest.param(lambda data: data.replace(b"00000 n", b"99999 f"), id="wrong-table"),
        pytest.param(lambda data: b"junk" * 50 + data, id="junk-before"),
        pytest.param(lambda data: data[:9], id="only-a-mark"),
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: b"\0" * 100_000, id="zeros"),
    ],
)
async def test_a_damaged_file_is_read_or_said_to_be_damaged(call: Call, folder: Path, damage: Any) -> None:
    (folder / "a.pdf").write_bytes(damage(pdf([page_of("still here")])))
    result = await call("read_pdf", "a.pdf")
    told = result["content"] if result.ok else result["error"]["message"]
    assert "still here" in told or "a.pdf': " in told


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[: data.rindex(b"xref")], id="no-end"),
        pytest.param(lambda data: data.replace(b"startxref", b"startyref"), id="no-place"),
        pytest.param(lambda data: data.replace(b"00000 n", b"99999 f"), id="wrong-table"),
        pytest.param(lambda data: b"junk" * 50 + data, id="junk-before"),
        pytest.param(lambda data: data + b"junk" * 5_000, id="junk-behind"),
        pytest.param(lambda data: data.replace(b"/Length ", b"/Length 9"), id="wrong-lengths"),
    ],
)
async def test_poppler_makes_no_more_of_a_damaged_file(call: Call, folder: Path, damage: Any) -> None:
    (folder / "a.pdf").write_bytes(damage(pdf([page_of(f"page {n} is still here") for n in range(5)])))
    theirs = (await by_poppler(folder / "a.pdf", check=False)).split()
    result = await call("read_pdf", "a.pdf")
    assert words_of(result["content"]) == [word for n in range(5) for word in f"page {n} is still here".split()]
    assert theirs in ([], words_of(result["content"]))


@pytest.mark.parametrize("part", [0.999, 0.99, 0.97, 0.95])
async def test_of_a_file_of_libreoffice_that_is_cut_off_as_much_is_read_as_is_left(
    call: Call, folder: Path, part: float
) -> None:
    data = (Path(__file__).parent / "libreoffice" / "letter.pdf").read_bytes()
    (folder / "a.pdf").write_bytes(data[: int(len(data) * part)])
    result = await call("read_pdf", "a.pdf")
    assert words_of(result["content"]) == ["Grüße", "aus", "漢字", "a", "1"]
    assert "the end of the file is missing" in result["note"]
    assert (await by_poppler(folder / "a.pdf", check=False)).split() in ([], words_of(result["content"]))


@pytest.mark.parametrize("part", [0.9, 0.5, 0.1])
async def test_without_the_list_of_its_pages_a_file_of_libreoffice_is_said_to_be_damaged(
    call: Call, folder: Path, part: float
) -> None:
    data = (Path(__file__).parent / "libreoffice" / "letter.pdf").read_bytes()
    (folder / "a.pdf").write_bytes(data[: int(len(data) * part)])
    assert "damaged" in (await call("read_pdf", "a.pdf"))["error"]["message"]
    assert not (await by_poppler(folder / "a.pdf", check=False)).split()


@pytest.mark.parametrize("part", [0.99, 0.95, 0.5])
async def test_of_a_file_that_is_cut_off_the_pages_that_are_left_are_read(
    call: Call, folder: Path, part: float
) -> None:
    data = pdf([page_of(f"page {n} is still here") for n in range(20)])
    (folder / "a.pdf").write_bytes(data[: int(len(data) * part)])
    result = await call("read_pdf", "a.pdf")
    assert "page 0 is still here" in result["content"]
    assert ("page 19 is still here" in result["content"]) is (part > 0.9)
    assert "the end of the file is missing" in result["note"]


async def test_of_an_encrypted_file_that_is_cut_off_nothing_is_shown(call: Call, folder: Path) -> None:
    writer = PdfWriter(clone_from=BytesIO(pdf([page_of("kept close")])))
    writer.encrypt("", "owner", algorithm="AES-128")
    out = BytesIO()
    writer.write(out)
    (folder / "a.pdf").write_bytes(out.getvalue()[: out.getvalue().index(b"xref")])
    assert "damaged" in (await call("read_pdf", "a.pdf"))["error"]["message"]


async def test_a_page_whose_instructions_cannot_be_unpacked_is_not_said_to_be_empty(call: Call, folder: Path) -> None:
    bomb = zlib.compress(b"\0" * 300_000_000)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>"
    stream = b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(bomb), bomb)
    tree = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>"]
    (folder / "a.pdf").write_bytes(numbered([*tree, page, stream]))
    assert "damaged: 1" in (await call("read_pdf", "a.pdf"))["note"]


ENDLESS = {
    "pages-in-themselves": numbered([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>"]),
    "parents-in-a-ring": numbered(
        [b"<</Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1/Parent 3 0 R>>", b"<</Type/Page/Parent 2 0 R>>"]
    ),
    "form-in-itself": pdf(
        [b"/Im Do"],
        resources=b"/XObject<</Im 6 0 R>>",
        more=[b"<</Subtype/Form/Resources<</XObject<</Im 6 0 R>>>>/Length 6>>stream\n/Im Do\nendstream"],
    ),
    "nested-arrays": numbered([b"<</Pages " + b"[" * 100_000 + b"]" * 100_000 + b">>"]),
    "one-page-a-billion-times": numbered(
        [b"<</Pages 2 0 R>>", *(b"<</Type/Pages/Count 9/Kids[%s]>>" % (b"%d 0 R " % (n + 3) * 100) for n in range(9))]
    ),
    "length-of-itself": pdf([], more=[b"<</Length 4 0 R>>stream\nx\nendstream"]),
}


@pytest.mark.parametrize("name", ENDLESS)
async def test_a_file_without_end_comes_to_one(call: Call, folder: Path, name: str) -> None:
    (folder / "a.pdf").write_bytes(ENDLESS[name])
    result = await call("read_pdf", "a.pdf")
    assert result.status in ("success", "error")


async def test_a_page_that_inflates_without_end_is_named_and_the_others_are_read(call: Call, folder: Path) -> None:
    bomb = zlib.compress(b"\0" * 300_000_000)
    data = pdf([page_of("good"), b"@"])
    data = data.replace(b"<</Length 1>>stream\n@", b"<</Length %d/Filter/FlateDecode>>stream\n%s" % (len(bomb), bomb))
    (folder / "a.pdf").write_bytes(data)
    result = await call("read_pdf", "a.pdf")
    assert "good" in result["content"]
    assert "damaged: 2" in result["note"]


async def test_one_page_of_2_000_is_read_without_the_rest(call: Call, folder: Path) -> None:
    pages = [page_of(f"page {n}") for n in range(2_000)]
    # Whoever looks into another page than the one asked for meets damage.
    (folder / "a.pdf").write_bytes(pdf([page if n == 1_499 else b"(" for n, page in enumerate(pages)]))
    result = await call("read_pdf", "a.pdf", pages="1500")
    assert result["content"].endswith("page 1499")
    assert result["page_count"] == 2_000


@pytest.mark.parametrize(("name", "code"), [("none.pdf", "not_found"), (".", "downstream_error")])
async def test_what_is_no_file_is_said(call: Call, name: str, code: str) -> None:
    assert (await call("read_pdf", name)).error_code == code
