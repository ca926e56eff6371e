"""Reading files by `read_file`."""

from __future__ import annotations

import os
import threading
import time
import wave
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import Answer, Approval, Choice, Media, Session, ToolResult

Show = Callable[..., Awaitable[ToolResult]]


def used() -> float:
    """Seconds of the processor that this program and its ended children have had."""
    return sum(os.times()[:4])


@pytest.fixture
def show(session: Session) -> Show:
    async def call(path: str | Path, **args: Any) -> ToolResult:
        return await session.call("read_file", {"file_path": str(path), **args})

    return call


async def test_lines_come_numbered(show: Show, folder: Path) -> None:
    (folder / "a.txt").write_text("one\ntwo\n\nfour")
    result = await show("a.txt")
    assert result["stdout"] == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"
    assert (result["total_lines"], result["truncated"], result["encoding"]) == (4, False, "utf-8")


@pytest.mark.parametrize(("text", "total"), [("", 0), ("a", 1), ("a\n", 1), ("a\n\n", 2), ("\n", 1)])
@pytest.mark.parametrize("limit", [1, 200])
async def test_lines_are_counted_as_an_editor_does(show: Show, folder: Path, text: str, total: int, limit: int) -> None:
    (folder / "a.txt").write_text(text)
    result = await show("a.txt", limit=limit)
    assert result["total_lines"] == total
    assert result["truncated"] == (total > limit)


async def test_offset_and_limit_show_a_stretch(show: Show, folder: Path) -> None:
    (folder / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    result = await show("a.txt", offset=41, limit=2)
    assert result["stdout"] == "    42\tline 42\n    43\tline 43"
    assert (result["truncated"], result["total_lines"]) == (True, 100)
    last = await show("a.txt", offset=99)
    assert (last["stdout"], last["truncated"]) == ("   100\tline 100", False)


async def test_an_offset_behind_the_end_says_how_many_lines_there_are(show: Show, folder: Path) -> None:
    (folder / "a.txt").write_text("a\nb")
    result = await show("a.txt", offset=10)
    assert (result["stdout"], result["total_lines"], result["truncated"]) == ("", 2, False)
    assert "2 lines" in result["note"]


async def test_every_stretch_of_a_large_file_is_right(show: Show, folder: Path) -> None:
    lines = [f"{n} {'é' * (n % 97)}" for n in range(60_000)]
    (folder / "large").write_text("\n".join(lines))
    for offset in (0, 1_000, 31_111, 59_990):
        result = await show("large", offset=offset, limit=50)
        expected = [f"{n + 1:>6}\t{lines[n]}" for n in range(offset, min(offset + 50, 60_000))]
        assert result["stdout"].split("\n") == expected
        assert ("total_lines" in result) == (offset == 59_990)


@pytest.mark.parametrize(
    ("data", "encoding", "shown"),
    [
        ("grüße 漢字".encode(), "utf-8", "grüße 漢字"),
        ("grüße".encode("utf-8-sig"), "utf-8-sig", "grüße"),
        ("grüße".encode("latin-1"), "latin-1", "grüße"),
        ("grüße\r\n漢".encode("utf-16"), "utf-16", "grüße"),
        ("plain text\n".encode("utf-16-le"), "utf-16-le", "plain text"),
        ("grüße".encode("utf-32"), "utf-32", "grüße"),
    ],
)
async def test_encodings_are_found_and_named(show: Show, folder: Path, data: bytes, encoding: str, shown: str) -> None:
    (folder / "a").write_bytes(data)
    result = await show("a", limit=1)
    assert (result["stdout"], result["encoding"]) == (f"     1\t{shown}", encoding)


async def test_carriage_returns_at_line_ends_are_not_shown(show: Show, folder: Path) -> None:
    (folder / "a").write_bytes(b"one\r\ntwo\r\nthree\r")
    assert (await show("a"))["stdout"] == "     1\tone\n     2\ttwo\n     3\tthree"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "mac-roman"])
async def test_lines_may_end_in_carriage_returns_alone(show: Show, folder: Path, encoding: str) -> None:
    (folder / "a.txt").write_bytes("one\rtwo\rthree\r".encode(encoding))
    result = await show("a.txt", offset=1)
    assert (result["stdout"], result["total_lines"]) == ("     2\ttwo\n     3\tthree", 3)


@pytest.mark.parametrize("letters", [65_534, 65_535, 65_536])
async def test_a_line_end_at_the_end_of_a_block_is_one(show: Show, folder: Path, letters: int) -> None:
    (folder / "a.txt").write_bytes(b"x" * letters + b"\r\ntwo\r\n")
    result = await show("a.txt", offset=1)
    assert (result["stdout"], result["total_lines"]) == ("     2\ttwo", 2)


async def test_long_lines_are_cut_with_a_mark(show: Show, folder: Path) -> None:
    (folder / "a").write_text("x" * 1_000_000 + "\nend\n")
    first, second = (await show("a"))["stdout"].split("\n")
    assert first.removeprefix("     1\t").startswith("x" * 2_000 + " …")
    assert len(first) < 2_100
    assert second == "     2\tend"


async def test_too_much_text_is_left_out_and_said(show: Show, folder: Path) -> None:
    (folder / "a").write_text(("x" * 1_900 + "\n") * 400)
    result = await show("a", limit=400)
    assert len(result["stdout"]) <= 200_000
    assert result["truncated"]
    shown = result["stdout"].count("\n") + 1
    assert f"offset={shown}" in result["note"]


@pytest.mark.parametrize("offset", [0, 1, 254, 255, 256, 511, 999_990])
async def test_every_line_has_its_number_wherever_a_stretch_begins(show: Show, folder: Path, offset: int) -> None:
    (folder / "a").write_text("".join(f"{number}\n" for number in range(1, 1_001_000)))
    lines = (await show("a", offset=offset, limit=600))["stdout"].split("\n")
    assert lines == [f"{number:>6}\t{number}" for number in range(offset + 1, offset + 601)]


async def test_what_is_left_out_is_shown_by_the_next_call(show: Show, folder: Path) -> None:
    (folder / "a").write_text("".join(f"{number:06}{'x' * 990}\n" for number in range(500)))
    first = (await show("a", limit=500))["stdout"]
    shown = first.count("\n") + 1
    rest = (await show("a", offset=shown, limit=500))["stdout"]
    assert len(first) <= 200_000 < len(first) + len(rest.partition("\n")[0]) + 1
    numbers = [int(line.partition("\t")[2][:6]) for line in f"{first}\n{rest}".split("\n")]
    assert numbers == list(range(min(500, shown * 2)))


async def test_a_file_of_50_gigabytes_is_answered_at_once(session: Session, folder: Path) -> None:
    (folder / "huge").write_bytes(b"first\nsecond\n")
    os.truncate(folder / "huge", 50 << 30)
    began = used()
    shown = await session.call("read_file", {"file_path": "huge", "limit": 2})
    assert (shown["stdout"], shown["truncated"]) == ("     1\tfirst\n     2\tsecond", True)
    assert (await session.call("read_file", {"file_path": "huge", "offset": 2}))["total_lines"] == 3
    assert (await session.call("find_files", {"pattern": "hu*"}))["total"] == 1
    # One with NULs in it is binary.
    assert (await session.call("find_files", {"search_text": "second"}))["total"] == 0
    edited = await session.call("edit_file", {"file_path": "huge", "old_string": "second", "new_string": "2nd"})
    assert "at most" in edited["error"]["message"]
    assert used() - began < 5
    assert (folder / "huge").stat().st_size == 50 << 30


@pytest.mark.parametrize(("name", "kind"), [("fifo", "a pipe"), (".", "a folder"), ("/dev/zero", "a device")])
async def test_what_is_no_ordinary_file_is_refused_at_once(show: Show, folder: Path, name: str, kind: str) -> None:
    os.mkfifo(folder / "fifo")
    result = await show(name)
    assert result.error_code == "downstream_error"
    assert kind in result["error"]["message"]


async def test_binary_files_are_refused_with_a_hint(show: Show, folder: Path) -> None:
    (folder / "a").write_bytes(bytes(range(256)) * 10)
    result = await show("a")
    assert result.error_code == "downstream_error"
    assert "xxd" in result["error"]["message"]


async def test_a_missing_file_names_its_neighbours(show: Show, folder: Path) -> None:
    (folder / "readme.md").touch()
    result = await show("redme.md")
    assert result.error_code == "not_found"
    assert "readme.md" in result["error"]["message"]


async def test_pictures_come_as_media(show: Show, folder: Path) -> None:
    data = b"\x89PNG\r\n\x1a\n" + bytes(100_000)
    (folder / "a.txt").write_bytes(data)
    (media,) = (await show("a.txt"))["media"]
    assert isinstance(media, Media)
    assert (media.type, media.mime_type, media.data) == ("image", "image/png", data)


async def test_sound_and_pdf_come_as_media(show: Show, folder: Path) -> None:
    with wave.open(str(folder / "a.wav"), "wb") as sound:
        sound.setparams((1, 2, 8_000, 0, "NONE", ""))
        sound.writeframes(bytes(1_600))
    (folder / "a.pdf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n")
    for name, kind in (("a.wav", "audio/"), ("a.pdf", "application/pdf")):
        (media,) = (await show(name))["media"]
        assert media.mime_type.startswith(kind)
        assert media.data == (folder / name).read_bytes()


async def test_secrets_and_magic_links_are_denied(show: Show, folder: Path) -> None:
    (folder / ".env").write_text("KEY=1")
    assert (await show(".env")).error_code == "denied_by_policy"
    assert (await show("/proc/self/root/etc/hostname")).error_code == "denied_by_policy"


async def test_a_file_outside_is_read_once_a_person_says_yes(show: Show, folder: Path) -> None:
    (folder.parent / "other.txt").write_text("x")
    assert (await show("../other.txt"))["stdout"] == "     1\tx"
    async with handrail.open(cwd=folder) as alone:
        denied = await alone.call("read_file", {"file_path": "../other.txt"})
    assert denied.error_code == "no_confirmer"


async def test_a_link_inside_the_workspace_is_followed(show: Show, folder: Path) -> None:
    (folder / "real.txt").write_text("x")
    (folder / "link.txt").symlink_to("real.txt")
    assert (await show("link.txt"))["stdout"] == "     1\tx"


async def test_nothing_is_left_open(show: Show, folder: Path) -> None:
    (folder / "a").write_text("x\n" * 100_000)
    for offset in range(0, 90_000, 9_000):
        await show("a", offset=offset)
    assert not [path for path in _open_paths() if path.is_relative_to(folder)]


def _open_paths() -> list[Path]:
    """Return what this process has open, without descriptors that close meanwhile."""
    descriptors = Path("/proc/self/fd")
    return [descriptor.resolve() for descriptor in descriptors.iterdir() if descriptor.is_symlink()]


# The same call is made again and again, and it may fail as often as it likes.
UNLIMITED = {"failures": 0, "repeats": 0}


@contextmanager
def swapping(link: Path, *targets: Path) -> Generator[None]:
    """A link that leads to one target after the other, all the time."""
    over = threading.Event()

    def swap() -> None:
        spare = link.with_name("spare")
        for target in cycle(targets):
            if over.is_set():
                return
            spare.symlink_to(target)
            spare.replace(link)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("outside", [".ssh", "elsewhere"])
async def test_a_link_that_is_exchanged_after_the_judgement_opens_nothing_else(folder: Path, outside: str) -> None:
    harmless, other = folder / "harmless", folder.parent / outside
    for place, content in ((harmless, "open"), (other, "SECRET")):
        place.mkdir()
        (place / "notes").write_text(content)
    (folder / "cur").symlink_to(harmless)
    shown: list[str] = []
    async with handrail.open(cwd=folder, limits=UNLIMITED) as alone:
        with swapping(folder / "cur", harmless, other):
            for _ in range(1_500):
                result = await alone.call("read_file", {"file_path": "cur/notes"})
                shown.append(result.get("stdout", ""))
    assert not any("SECRET" in text for text in shown)
    assert any("open" in text for text in shown)


async def test_a_link_out_of_the_workspace_is_asked_about_by_where_it_leads(folder: Path) -> None:
    (folder.parent / "other.txt").write_text("x")
    (folder / "link").symlink_to(folder.parent / "other.txt")
    asked: list[str] = []

    async def ask(approval: Approval) -> Answer:
        asked.append(approval.verdict.reasons[0].text)
        return Answer(Choice.ONCE)

    async with handrail.open(cwd=folder, confirm=ask) as session:
        assert (await session.call("read_file", {"file_path": "link"}))["stdout"] == "     1\tx"
    assert asked == [f"'link' leads to {str(folder.parent / 'other.txt')!r}, outside the workspace"]


async def test_a_folder_that_becomes_a_link_after_the_judgement_opens_nothing_else(folder: Path) -> None:
    work, other = folder / "cur", folder.parent / "elsewhere"
    for place, content in ((work, "open"), (other, "SECRET")):
        place.mkdir()
        (place / "notes").write_text(content)
    over = threading.Event()

    def exchange() -> None:
        while not over.is_set():
            work.rename(folder / "aside")
            work.symlink_to(other)
            work.unlink()
            (folder / "aside").rename(work)
            time.sleep(0.001)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        async with handrail.open(cwd=folder, limits=UNLIMITED) as alone:
            results = [await alone.call("read_file", {"file_path": "cur/notes"}) for _ in range(1_500)]
    finally:
        over.set()
        thread.join()
    assert not any("SECRET" in result.get("stdout", "") for result in results)
    assert any("open" in result.get("stdout", "") for result in results)
    assert not any(result.error_code == "loop_detected" for result in results)


async def test_an_odd_name_of_the_own_folder_is_no_reason_to_ask(tmp_path: Path) -> None:
    odd = tmp_path / "pay $HOME"
    odd.mkdir()
    (odd / "a").write_text("x")
    async with handrail.open(cwd=odd) as alone:
        assert (await alone.call("read_file", {"file_path": "a"}))["stdout"] == "     1\tx"


@pytest.mark.parametrize("data", [b"a\0b\n", b"\1\0\2\0\3\0\4\0\5\0\6\0"])
async def test_a_few_nuls_do_not_make_utf_16(show: Show, folder: Path, data: bytes) -> None:
    (folder / "a").write_bytes(data)
    result = await show("a")
    assert result.error_code == "downstream_error"
    assert "is binary" in result["error"]["message"]


@pytest.mark.parametrize("text", ["the ftyp word…", "ID3 tags are old", "OggS begins a page", "fLaC is a format"])
async def test_text_that_begins_like_media_is_text(show: Show, folder: Path, text: str) -> None:
    (folder / "a").write_text(text)
    result = await show("a")
    assert result["stdout"] == f"     1\t{text}"
    assert "media" not in result


async def test_a_video_begins_with_a_box(show: Show, folder: Path) -> None:
    (folder / "a").write_bytes(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom")
    (media,) = (await show("a"))["media"]
    assert media.mime_type == "video/mp4"


async def test_a_mistake_in_utf_8_is_no_other_encoding_and_stays_when_the_file_is_changed(
    session: Session, folder: Path
) -> None:
    before = "Zoë grüßt aus 漢字, naïve\n".encode() + b"a byte \xff too many\nend\n"
    (folder / "a").write_bytes(before)
    shown = await session.call("read_file", {"file_path": "a"})
    assert shown["encoding"] == "utf-8"
    assert shown["stdout"].split("\n")[:2] == ["     1\tZoë grüßt aus 漢字, naïve", "     2\ta byte \ufffd too many"]
    edited = await session.call("edit_file", {"file_path": "a", "old_string": "Zoë", "new_string": "Ada"})
    assert edited.ok, edited
    assert (folder / "a").read_bytes() == before.replace("Zoë".encode(), b"Ada")


# What charset-normalizer finds where there is no mark and no Unicode.
TEXTS = {
    "cp932": "これは日本語の文章です。漢字とかなが混ざっています。",
    "gb18030": "这是一个简单的中文文本，讲述城市的天气和生活。",
    "big5": "這是一個簡單的中文文本，講述城市的天氣和生活。",
    "cp949": "이것은 날씨와 도시에 관한 간단한 한국어 문장입니다.",
    "cp1251": "Привет, это обычный русский текст о погоде и городе.",
    "koi8_r": "Привет, это обычный русский текст о погоде и городе.",
    "cp1253": "Αυτό είναι ένα απλό ελληνικό κείμενο για τον καιρό.",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy, řekl učitel.",
    "iso8859_2": "Příliš žluťoučký kůň úpěl ďábelské ódy, řekl učitel.",
    "cp1252": "He said “no” — it’s fine…",
    "latin-1": "Le café était fermé à l'été dernier; où êtes-vous allés?",
}


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("lines", [1, 3_000])
async def test_other_encodings_are_found_and_named(show: Show, folder: Path, encoding: str, lines: int) -> None:
    (folder / "a").write_bytes(f"{TEXTS[encoding]}\r\n".encode(encoding) * lines)
    result = await show("a", limit=1)
    assert (result["stdout"], result["encoding"]) == (f"     1\t{TEXTS[encoding]}", encoding)


@pytest.mark.parametrize("text", ["name,café", "1 µm", "int main() { // prüfe Größe", "naïve", "ÿ", "10 €"])
async def test_a_few_letters_beyond_ascii_are_western(show: Show, folder: Path, text: str) -> None:
    (folder / "a").write_bytes(text.encode("cp1252"))
    result = await show("a")
    assert result["stdout"].endswith(text)
    assert result["encoding"] in ("latin-1", "cp1252")
