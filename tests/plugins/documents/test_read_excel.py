"""Cells out of workbooks and CSV by `read_excel`, with openpyxl as the writer and LibreOffice as another."""

from __future__ import annotations

import csv
import io
import shutil
import zipfile
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from anyio import run_process
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from openpyxl.workbook import Workbook
from openpyxl.worksheet.worksheet import Worksheet
from python_calamine import CalamineWorkbook
from tests.plugins.documents.conftest import Call

MADE = Path(__file__).parent / "libreoffice"


def workbook(folder: Path, fill: Callable[[Workbook, Worksheet], object], name: str = "a.xlsx") -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    fill(book, sheet)
    book.save(folder / name)


def with_part(folder: Path, changes: Mapping[str, Callable[[bytes], bytes]], name: str = "a.xlsx") -> None:
    """Change parts of a workbook by hand."""
    data = (folder / name).read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, changes.get(info.filename, bytes)(old.read(info)))


def rows_of(content: str) -> list[list[str]]:
    """The cells of the table below its two head lines, without row numbers."""
    return [[cell.strip() for cell in line.removesuffix(" |").split(" | ")][1:] for line in content.splitlines()[2:]]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"), (False, "False"), (True, "True"), (1, "1"), (1.5, "1.5"), (0.1, "0.1"), (-7, "-7"),
        (10**14, "100000000000000"), (1e300, "1e+300"), ("text", "text"), ("0", "0"), (" é漢😀 ", "é漢😀"),
        ("a|b", r"a\|b"), ("a\\|b", r"a\\\|b"), ("a\nb\r\nc", "a<br>b<br>c"), ("=1+1", "=1+1"), ("x" * 3_000, "x" * 2_000 + " … [cut]"),
        (date(2024, 3, 1), "2024-03-01"), (datetime.fromisoformat("2024-03-01 12:30"), "2024-03-01 12:30:00"), (time(8, 5), "08:05:00"),
        (timedelta(hours=30, minutes=1), "30:01:00"), (date(1900, 1, 1), "1900-01-01"), (date(9999, 12, 31), "9999-12-31"),
        ("#N/A", "#N/A"), ("a_x000D_b", "a<br>b"),
    ],
)  # fmt: skip
async def test_each_value_is_shown(call: Call, folder: Path, value: Any, shown: str) -> None:
    workbook(folder, lambda _, sheet: sheet.cell(1, 1, value))
    result = await call("read_excel", "a.xlsx")
    assert result["content"] == f"| | A |\n|---|---|\n| 1 | {shown} |"
    assert (result["rows"], result["columns"]) == (1, 1)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("0.00", "45352.75"), ("yyyy-mm-dd", "2024-03-01 18:00:00"), ("d/m/yy h:mm", "2024-03-01 18:00:00"), ("[h]:mm", "1088466:00:00"),
        ('0 "days"', "45352.75"), ("[Red]0;[Blue]-0", "45352.75"), ("mmm", "2024-03-01 18:00:00"), ("General", "45352.75"),
        ("#,##0_);(#,##0)", "45352.75"), ("[$-409]d-mmm", "2024-03-01 18:00:00"), ("0.0E+00", "45352.75"),
    ],
)  # fmt: skip
async def test_a_number_is_a_date_by_its_format(call: Call, folder: Path, code: str, shown: str) -> None:
    def fill(_: Workbook, sheet: Worksheet) -> None:
        sheet.cell(1, 1, 45352.75).number_format = code

    workbook(folder, fill)
    assert f"| 1 | {shown} |" in (await call("read_excel", "a.xlsx"))["content"]


async def test_days_counted_from_1904_are_read(call: Call, folder: Path) -> None:
    def fill(book: Workbook, sheet: Worksheet) -> None:
        book.epoch = CALENDAR_MAC_1904
        sheet["A1"] = date(2024, 3, 1)

    workbook(folder, fill)
    assert "2024-03-01" in (await call("read_excel", "a.xlsx"))["content"]


def numbered(_: Workbook, sheet: Worksheet) -> None:
    for row in range(1, 1_001):
        sheet.append([f"{letter}{row}" for letter in "ABCDE"])


@pytest.mark.parametrize(
    ("asked", "first", "last", "letters"),
    [
        (None, 1, 200, "ABCDE"), ("B2:D10", 2, 10, "BCD"), ("b2:d10", 2, 10, "BCD"), ("D10:B2", 2, 10, "BCD"), ("C3", 3, 3, "C"),
        ("$B$2:$C$3", 2, 3, "BC"), ("201:400", 201, 400, "ABCDE"), ("B:C", 1, 1_000, "BC"), ("A900:B", 900, 1_000, "AB"),
        ("A999:B99999", 999, 1_000, "AB"), ("600:601", 600, 601, "ABCDE"),
    ],
)  # fmt: skip
async def test_the_cells_asked_for_are_shown(
    call: Call, folder: Path, asked: str | None, first: int, last: int, letters: str
) -> None:
    workbook(folder, numbered)
    result = await call("read_excel", "a.xlsx", range=asked)
    assert rows_of(result["content"]) == [[f"{each}{row}" for each in letters] for row in range(first, last + 1)]
    assert (result["rows"], result["columns"]) == (last - first + 1, len(letters))
    assert (result["total_rows"], result["total_columns"]) == (1_000, 5)
    assert result["truncated"] is (asked is None)


@pytest.mark.parametrize("asked", ["", "2000:3000", "X1:Z9"])
async def test_nothing_there_is_said(call: Call, folder: Path, asked: str) -> None:
    workbook(folder, (lambda _, sheet: None) if not asked else numbered)
    result = await call("read_excel", "a.xlsx", range=asked)
    assert (result["content"], result["rows"]) == ("(no cells with anything in them)", 0)


@pytest.mark.parametrize("asked", ["B", "2", "A1:B2:C3", "A0", "1A", "AAAA1", "A1:", ":", "XFE1", "A1048577", "A1;B2"])
async def test_what_names_no_cells_is_refused(call: Call, folder: Path, asked: str) -> None:
    workbook(folder, numbered)
    result = await call("read_excel", "a.xlsx", range=asked)
    assert result.error_code == "invalid_arguments" or asked in ("B", "2")


async def test_sheets_are_named_and_hidden_ones_said(call: Call, folder: Path) -> None:
    def fill(book: Workbook, sheet: Worksheet) -> None:
        sheet.title, sheet["A1"] = "First", 1
        for name, state in (("Hidden", "hidden"), ("Deep", "veryHidden"), ("Last", "visible")):
            other = book.create_sheet(name)
            other.sheet_state = state
            other["A1"] = name
        book.create_chartsheet("Chart")

    workbook(folder, fill)
    result = await call("read_excel", "a.xlsx")
    assert result["sheets_available"] == ["First", "Hidden", "Deep", "Last"]
    assert (result["sheet_name"], result["hidden_sheets"]) == ("First", ["Hidden", "Deep"])
    last = await call("read_excel", "a.xlsx", sheet="last")
    assert (last["sheet_name"], rows_of(last["content"])) == ("Last", [["Last"]])
    assert "this sheet is hidden" in (await call("read_excel", "a.xlsx", sheet="Hidden"))["note"]
    assert "'First', 'Hidden'" in (await call("read_excel", "a.xlsx", sheet="None"))["error"]["message"]


async def test_formulas_show_their_last_value_and_are_listed(call: Call, folder: Path) -> None:
    workbook(folder, lambda _, sheet: sheet.append([2, "=A1*2", "=A1*3"]))
    value = b"<f>A1*2</f><v>4</v>"
    with_part(
        folder,
        {
            "xl/worksheets/sheet1.xml": lambda xml: xml.replace(b"<f>A1*2</f><v />", value).replace(
                b"<f>A1*2</f><v></v>", value
            )
        },
    )
    result = await call("read_excel", "a.xlsx")
    assert rows_of(result["content"]) == [["2", "4", "=A1*3"]]
    assert result["formulas"] == {"B1": "=A1*2", "C1": "=A1*3"}
    assert "1 formulas have no computed value" in result["note"]


async def test_merged_and_hidden_cells_are_said(call: Call, folder: Path) -> None:
    def fill(_: Workbook, sheet: Worksheet) -> None:
        sheet.append(["head", None, 1])
        sheet.append([1, 2, 3])
        sheet.merge_cells("A1:B1")
        sheet.row_dimensions[2].hidden = True
        sheet.column_dimensions["C"].hidden = True

    workbook(folder, fill)
    result = await call("read_excel", "a.xlsx")
    assert result["merged_cells"] == ["A1:B1"]
    assert "hidden rows are among them: 2; hidden columns, by number: 3-3" in result["note"]


async def test_far_cells_take_no_room(call: Call, folder: Path) -> None:
    def fill(_: Workbook, sheet: Worksheet) -> None:
        sheet["A1"], sheet["XFD3"] = "near", "far"

    workbook(folder, fill)
    result = await call("read_excel", "a.xlsx")
    assert result["content"].splitlines()[2:] == ["| 1 | near |  |", "| 3 |  | far |"]


async def test_at_most_200_000_characters_are_shown(call: Call, folder: Path) -> None:
    workbook(folder, lambda _, sheet: [sheet.append(["x" * 1_900]) for _ in range(150)])
    result = await call("read_excel", "a.xlsx")
    assert len(result["content"]) <= 200_000
    assert result["truncated"]
    assert f"range='{result['rows'] + 1}:" in result["note"]


@pytest.mark.parametrize("rows", [1_048_576])
async def test_the_last_rows_of_the_longest_sheet_are_read(call: Call, folder: Path, rows: int) -> None:
    workbook(folder, lambda _, sheet: sheet.append([1]))
    body = b"".join(b'<row r="%d"><c r="A%d"><v>%d</v></c></row>' % (n, n, n) for n in range(1, rows + 1))
    with_part(
        folder, {"xl/worksheets/sheet1.xml": lambda _: b"<worksheet><sheetData>" + body + b"</sheetData></worksheet>"}
    )
    assert rows_of((await call("read_excel", "a.xlsx", range=f"A{rows - 1}:A{rows}"))["content"]) == [
        [str(rows - 1)],
        [str(rows)],
    ]
    assert (await call("read_excel", "a.xlsx"))["rows"] == 200


CSV = {
    "comma": b"a,b\n1,2\n", "semicolon": b"a;b\n1;2\n", "tab": b"a\tb\n1\t2\n", "pipe": b"a|b\n1|2\n", "crlf": b"a,b\r\n1,2\r\n", "cr": b"a,b\r1,2\r",
    "quoted": b'"a","b"\n"1","2"\n', "sep": b"sep=;\na;b\n1;2\n", "bom": "a,b\n1,2\n".encode("utf-8-sig"),
    "utf-16": "a,b\n1,2\n".encode("utf-16"), "utf-16-le": "a,b\n1,2\n".encode("utf-16-le"), "decimal commas": b"a;b\n1;2\n",
}  # fmt: skip


@pytest.mark.parametrize("name", CSV)
async def test_each_dialect_of_csv_is_read(call: Call, folder: Path, name: str) -> None:
    (folder / "a.csv").write_bytes(CSV[name])
    result = await call("read_excel", "a.csv")
    assert rows_of(result["content"]) == [["a", "b"], ["1", "2"]]
    assert (result["rows"], result["columns"], result["total_rows"]) == (2, 2, 2)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
async def test_each_encoding_of_csv_is_read(call: Call, folder: Path, encoding: str) -> None:
    (folder / "a.csv").write_text('name;price\n"Grüße; ""an"" alle\nhier";1,50 €\n', encoding=encoding)
    result = await call("read_excel", "a.csv")
    assert rows_of(result["content"]) == [["name", "price"], ['Grüße; "an" alle<br>hier', "1,50 €"]]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Şehir;Nüfus\nİstanbul;15 milyon\nIğdır;yüz bin\n", "cp1254"),
        ("Kâğıt;Çöp\nŞükrü;Gönül\n", "cp1254"),
        ("borg;íbúar\nÞingvellir;fáir\nHöfn í Hornafirði;tvö þúsund\n", "cp1252"),
        ("ville;prix\nBesançon;1 €\nNîmes;œuvre\n", "cp1252"),
    ],
)
async def test_letters_of_one_byte_are_turkish_or_western(call: Call, folder: Path, text: str, encoding: str) -> None:
    (folder / "a.csv").write_text(text, encoding=encoding)
    result = await call("read_excel", "a.csv")
    assert rows_of(result["content"]) == [line.split(";") for line in text.splitlines()]
    assert result["encoding"] == encoding


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "cp1254"])
async def test_the_first_letter_that_is_not_ascii_tells_wherever_it_stands(
    call: Call, folder: Path, encoding: str
) -> None:
    last = "ışık,çöp" if encoding == "cp1254" else "Grüße,größer"
    (folder / "a.csv").write_text("a,b\n" * 40_000 + last + "\n", encoding=encoding)
    result = await call("read_excel", "a.csv", range="A40001:B40001")
    assert rows_of(result["content"]) == [last.split(",")]


async def test_a_long_csv_is_read_as_far_as_asked(call: Call, folder: Path) -> None:
    (folder / "a.csv").write_text("".join(f"{n},x\n" for n in range(1, 1_100_001)))
    result = await call("read_excel", "a.csv")
    assert (result["rows"], result["truncated"]) == (200, True)
    later = await call("read_excel", "a.csv", range="A1000000:B1000001")
    assert rows_of(later["content"]) == [["1000000", "x"], ["1000001", "x"]]


async def test_other_readers_find_the_same_cells(call: Call, folder: Path) -> None:
    """openpyxl wrote one file and LibreOffice the other of it; python-calamine reads what is read here by code of our own."""

    def fill(_: Workbook, sheet: Worksheet) -> None:
        sheet.append(["name", "count", "share", "open", "since", "last"])
        for n in range(40):
            sheet.append([f"row {n}", n, n / 8, n % 2 == 0, date(2024, 2, 1 + n % 28), f'a, "{n}"'])

    workbook(folder, fill)
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    made = ["--convert-to", "xls", "--outdir", str(folder), str(folder / "a.xlsx")]
    await run_process(["soffice", profile, "--headless", *made])
    ours = rows_of((await call("read_excel", "a.xlsx"))["content"])
    theirs = CalamineWorkbook.from_path(str(folder / "a.xlsx")).get_sheet_by_index(0).to_python()
    assert ours == [[as_text(value) for value in row] for row in theirs]
    assert rows_of((await call("read_excel", "a.xls"))["content"]) == ours
    assert len(ours) == 41


def as_text(value: object) -> str:
    """A value of python-calamine as `read_excel` shows it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@pytest.mark.parametrize("kind", ["xls", "xlsx"])
async def test_libreoffice_reads_the_same_cells(call: Call, folder: Path, kind: str) -> None:
    shutil.copy(MADE / f"book.{kind}", folder)
    ours = rows_of((await call("read_excel", f"book.{kind}"))["content"])
    with (MADE / "book.csv").open(encoding="utf-8", newline="") as file:
        theirs = list(csv.reader(file))
    shown = {"TRUE": "True", "FALSE": "False"}
    told = [[shown.get(cell, cell).replace("|", "\\|").replace("\n", "<br>") for cell in row] for row in theirs]
    assert [row[: len(told[0])] for row in ours[: len(told)]] == told


@pytest.mark.parametrize("kind", ["xlsx", "xls", "csv"])
async def test_what_libreoffice_wrote_is_read(call: Call, folder: Path, kind: str) -> None:
    shutil.copy(MADE / f"book.{kind}", folder)
    result = await call("read_excel", f"book.{kind}")
    rows = rows_of(result["content"])
    assert rows[0] == ["name", "since", "count", "open"]
    assert rows[1][0] == r"Ärger\|漢"
    assert rows[2][0] == "second<br>line"
    assert rows[3][-2 if kind != "csv" else 2] == "12.5"
    if kind != "csv":
        assert [row[1] for row in rows[1:3]] == ["2024-03-01", "1999-12-31 23:59:00"]
        assert [row[3] for row in rows[1:3]] == ["False", "True"]
        assert rows[1][2] == "0"
        assert result["merged_cells"] == ["A5:C5"]
        assert result["hidden_sheets"] == ["Notes"]


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("_rels/.rels", "<x/>")
        packed.writestr("xl/workbook.xml", b"\0" * 100_000_000)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        pytest.param(bomb(), "zip bomb", id="bomb"),
        pytest.param(b"PK\x03\x04" + b"\0" * 99, "damaged", id="half-a-zip"),
        pytest.param(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 999, "damaged", id="half-an-xls"),
        pytest.param(
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "password", id="password"
        ),
        pytest.param(b"\x7fELF\0\1\2\3\0", "binary", id="program"),
        pytest.param(b"a,b\n1\0,2\n", "binary", id="a-nul-in-text"),
    ],
)
async def test_what_is_no_workbook_is_refused(call: Call, folder: Path, data: bytes, told: str) -> None:
    (folder / "a.xlsx").write_bytes(data)
    result = await call("read_excel", "a.xlsx")
    assert result.error_code == "downstream_error"
    assert told in result["error"]["message"]


@pytest.mark.parametrize("data", [b"", b"a,b\n1,2\n", b"<html><table><tr><td>1</td></tr></table></html>"])
async def test_a_workbook_by_name_only_is_said_to_be_none(call: Call, folder: Path, data: bytes) -> None:
    (folder / "a.xlsx").write_bytes(data)
    assert "no workbook but text" in (await call("read_excel", "a.xlsx"))["note"]
    (folder / "a.csv").write_bytes(data)
    assert "note" not in await call("read_excel", "a.csv")


LAUGHS = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/styles.xml", "xl/sharedStrings.xml"]
)
async def test_entities_are_refused(call: Call, folder: Path, part: str) -> None:
    shutil.copy(MADE / "book.xlsx", folder / "a.xlsx")
    with_part(
        folder, {part: lambda xml: LAUGHS + xml.partition(b"?>")[2] if xml.startswith(b"<?xml") else LAUGHS + xml}
    )
    result = await call("read_excel", "a.xlsx")
    assert "declares entities" in result["error"]["message"]


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
async def test_a_workbook_that_is_cut_off_is_refused(call: Call, folder: Path, keep: float) -> None:
    workbook(folder, numbered)
    data = (folder / "a.xlsx").read_bytes()
    (folder / "a.xlsx").write_bytes(data[: int(len(data) * keep)])
    assert (await call("read_excel", "a.xlsx"))["error"]["details"] == {"reason": "unreadable"}


ALOUD = b"""<worksheet><sheetData>
<row r="1"><c r="A1" t="inlineStr"><is><t>not asked for</t><rPh sb="0" eb="1"><t>aloud</t></rPh></is></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><r><t>to</t></r><r><t>kyo</t></r><rPh sb="0" eb="1"><t>aloud</t></rPh></is></c></row>
</sheetData></worksheet>"""


async def test_how_a_text_is_read_aloud_is_no_part_of_it(call: Call, folder: Path) -> None:
    workbook(folder, lambda _, sheet: sheet.append([1]))
    with_part(folder, {"xl/worksheets/sheet1.xml": lambda _: ALOUD})
    assert rows_of((await call("read_excel", "a.xlsx", range="2:2"))["content"]) == [["tokyo"]]


async def test_damage_in_the_file_is_no_fault_of_the_call(call: Call, folder: Path) -> None:
    workbook(folder, numbered)
    with_part(folder, {"xl/worksheets/sheet1.xml": lambda xml: xml.replace(b"A1:E1000", b"A1:?")})
    assert (await call("read_excel", "a.xlsx"))["error"]["details"] == {"reason": "unreadable"}


async def test_macros_are_said(call: Call, folder: Path) -> None:
    workbook(folder, lambda _, sheet: sheet.append([1]), "a.xlsm")
    with zipfile.ZipFile(folder / "a.xlsm", "a") as packed:
        packed.writestr("xl/vbaProject.bin", b"macro")
    assert "it holds macros, which are not run" in (await call("read_excel", "a.xlsm"))["note"]
