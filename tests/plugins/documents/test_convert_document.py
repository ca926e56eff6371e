"""Documents made into other kinds, by LibreOffice and without it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import psutil
import pytest
from anyio import run_process
from openpyxl import Workbook
from PIL import Image
from tests.plugins.documents.pdf_files import line, pdf

import handrail
from handrail import Service, Session, Tool, ToolResult, hookimpl
from handrail.api.approval import yes
from handrail.testing import open_test_session
from handrail.workers.host_programs import HostPrograms
from handrail_documents import hooks, libreoffice
from handrail_documents.convert_tool import create_convert_tool

MADE_BY_OFFICE = Path(__file__).parent / "libreoffice"


@pytest.fixture(scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Session, None]:
    async with handrail.open(cwd=tmp_path_factory.mktemp("work"), confirm=yes) as opened:
        await opened.load_tools(["convert_document"], source="test")
        yield opened


@pytest.fixture(scope="module")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Session, None]:
    """A session on a machine without LibreOffice: nothing of it on the path, and none is looked for at its usual places."""
    empty = {"PATH": str(tmp_path_factory.mktemp("empty"))}
    folder = tmp_path_factory.mktemp("bare")
    async with open_test_session(
        plugins={"documents": Bare()}, folder=folder, environment=empty, confirm=yes
    ) as opened:
        await opened.load_tools(["convert_document"], source="test")
        yield opened


class Bare:
    """The plugin, finding LibreOffice on the path only."""

    @hookimpl
    def handrail_register_tools(self) -> list[Tool]:
        return [create_convert_tool(lambda programs: libreoffice.find_libreoffice(programs, places=()))]

    @hookimpl
    def handrail_register_services(self) -> Iterable[Service]:
        return hooks.handrail_register_services()


async def convert(session: Session, path: Path | str, to: str, **more: str) -> ToolResult:
    return await session.call("convert_document", {"input_path": str(path), "output_format": to, **more})


@pytest.fixture
def book(session: Session) -> Path:
    """A workbook with two sheets, a formula without a value, and a sheet's name that needs care."""
    workbook = Workbook()
    first = workbook.active
    assert first is not None
    first.title = "One"
    first.append(["first", "=1+2"])
    workbook.create_sheet("Two & Ü").append(["second, with a comma", "=5*2", "=HYPERLINK(A1)"])
    path = session.cwd / "book.xlsx"
    workbook.save(path)
    return path


async def text_of(path: Path | str) -> str:
    return (await run_process(["pdftotext", "-layout", str(path), "-"])).stdout.decode()


async def test_a_host_sees_the_tool_once_it_is_loaded(tmp_path: Path) -> None:
    async with handrail.open(cwd=tmp_path) as session:
        assert "convert_document" not in [tool.name for tool in await session.tools()]
        assert (await convert(session, "a.csv", "html")).error_code == "tool_unavailable"
        await session.load_tools(["convert_document"], source="test")
        assert "convert_document" in [tool.name for tool in await session.tools()]


def test_libreoffice_is_here() -> None:
    assert libreoffice.find_libreoffice(HostPrograms({"PATH": "/usr/bin"})), (
        "If this fails, install libreoffice-calc and libreoffice-writer."
    )


async def test_a_workbook_becomes_a_pdf_beside_it(session: Session, book: Path) -> None:
    result = await convert(session, book.name, "pdf")
    assert result.ok, result
    assert (result["output_path"], result["method"]) == (str(book.with_suffix(".pdf")), "libreoffice")
    text = await text_of(result["output_path"])
    assert ("first" in text, "second" in text) == (True, True)


async def test_one_sheet_alone_becomes_a_pdf(session: Session, book: Path) -> None:
    result = await convert(session, book.name, "pdf", sheet_name="two & ü", output_path="second.pdf")
    assert result["sheet_name"] == "Two & Ü"
    text = await text_of(result["output_path"])
    assert ("first" in text, "second" in text) == (False, True)


async def test_a_sheet_becomes_a_csv_with_its_formulas_computed(session: Session, book: Path) -> None:
    result = await convert(session, book.name, "csv", sheet_name="Two & Ü")
    rows = Path(result["output_path"]).read_text().splitlines()
    assert rows == ['"second, with a comma",10,"second, with a comma"']


async def test_without_a_name_the_sheet_in_front_is_taken(session: Session, book: Path) -> None:
    result = await convert(session, book.name, "csv", output_path="front.csv")
    assert result["sheet_name"] == "One"
    assert Path(result["output_path"]).read_text() == "first,3\n"


async def test_a_sheet_that_is_not_there_is_named_with_those_that_are(session: Session, book: Path) -> None:
    result = await convert(session, book.name, "pdf", sheet_name="Three")
    assert result.error_code == "not_found"
    assert "'One', 'Two & Ü'" in str(result["error"])


@pytest.mark.parametrize("to", ["png", "jpg"])
async def test_a_document_becomes_a_picture_of_its_first_page(session: Session, to: str) -> None:
    (session.cwd / "letter.txt").write_text("a letter\n" * 200)
    result = await convert(session, "letter.txt", to)
    with Image.open(result["output_path"]) as image:
        assert image.format == {"png": "PNG", "jpg": "JPEG"}[to]
        assert image.width > 1_000
        assert min(image.convert("L").tobytes()) < 100
    assert "the first is shown" in result["note"]


async def test_a_document_becomes_html(session: Session) -> None:
    (session.cwd / "page.txt").write_text("Grüße aus Köln\n", encoding="utf-8")
    result = await convert(session, "page.txt", "html")
    assert "Grüße aus Köln" in Path(result["output_path"]).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["book.xls", "book.csv"])
async def test_old_workbooks_and_csv_become_pdf(session: Session, name: str) -> None:
    shutil.copy(MADE_BY_OFFICE / name, session.cwd / f"old-{name}")
    result = await convert(session, f"old-{name}", "pdf")
    assert result.ok, result
    assert len(await text_of(result["output_path"])) > 10


async def test_no_formula_of_a_csv_is_computed(session: Session) -> None:
    (session.cwd / "sums.csv").write_text("a;=40+2\n")
    result = await convert(session, "sums.csv", "html")
    assert "42" not in Path(result["output_path"]).read_text()


async def test_a_damaged_document_is_an_error_and_leaves_nothing(session: Session) -> None:
    (session.cwd / "bad.docx").write_bytes(b"PK\x03\x04 nothing")
    result = await convert(session, "bad.docx", "pdf")
    assert result.error_code == "downstream_error"
    assert not (session.cwd / "bad.pdf").exists()


async def test_what_a_document_points_to_is_not_looked_up(session: Session, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("do not tell")
    page = f'<html><body>here: <img src="file://{secret}"><iframe src="file://{secret}"></iframe></body></html>'
    (session.cwd / "points.html").write_text(page)
    result = await convert(session, "points.html", "pdf")
    assert result.ok, result
    assert "do not tell" not in await text_of(result["output_path"])


async def test_a_cancelled_conversion_leaves_no_process_and_no_file(session: Session, book: Path) -> None:
    task = asyncio.create_task(convert(session, book.name, "pdf", output_path="never.pdf"))
    while not (offices := [process for process in children() if "soffice" in process.name()]):
        await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert not any(process.is_running() for process in offices)
    assert not (session.cwd / "never.pdf").exists()


def folder_of(process: psutil.Process) -> Path | None:
    """The folder of the conversion that the process carries out."""
    with suppress(psutil.Error):
        words = process.cmdline()
        if "handrail_documents.libreoffice_launcher" in words:
            return Path(words[words.index("handrail_documents.libreoffice_launcher") + 1])
    return None


def children() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.name()
            found.append(process)
    return found


async def test_nothing_of_a_conversion_is_left(session: Session, book: Path) -> None:
    pipes = set(Path("/tmp").glob("OSL_PIPE_*"))
    task = asyncio.create_task(convert(session, book.name, "pdf", output_path="clean.pdf"))
    while not (folders := [folder for child in children() if (folder := folder_of(child))]):
        await asyncio.sleep(0.01)
    assert folders[0].is_dir()
    assert (await task).ok
    assert not folders[0].exists()
    assert [pipe for pipe in Path("/tmp").glob("OSL_PIPE_*") if pipe not in pipes and not answers(pipe)] == []


def answers(pipe: Path) -> bool:
    """Whether somebody else's program listens there."""
    with socket.socket(socket.AF_UNIX) as end:
        return end.connect_ex(str(pipe)) == 0


async def test_odd_names_are_no_hindrance(tmp_path: Path) -> None:
    folder = tmp_path / "a b (ü)'~%&+,;=@[1]"
    folder.mkdir()
    (folder / "a 'b' %41.txt").write_text("hello")
    environment = {**os.environ, "HANDRAIL_HOME": str(folder / "home")}
    async with handrail.open(cwd=folder, confirm=yes, environment=environment) as session:
        await session.load_tools(["convert_document"], source="test")
        result = await convert(session, "a 'b' %41.txt", "pdf")
    assert "hello" in await text_of(result["output_path"])


def picture(mode: str, kind: str) -> bytes:
    out = BytesIO()
    Image.new(mode, (300, 150), (200, 30, 40, 128)[: len(mode)]).save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("to", ["pdf", "png", "jpg"])
@pytest.mark.parametrize(("mode", "kind"), [("RGBA", "PNG"), ("RGB", "JPEG")])
async def test_pictures_are_converted_without_libreoffice(bare: Session, mode: str, kind: str, to: str) -> None:
    name = f"{kind.lower()}-to-{to}"
    (bare.cwd / f"{name}.webp").write_bytes(picture(mode, kind))
    result = await convert(bare, f"{name}.webp", to)
    assert result.ok, result
    assert result["method"] == "python"
    data = Path(result["output_path"]).read_bytes()
    assert data.startswith({"pdf": b"%PDF-", "png": b"\x89PNG", "jpg": b"\xff\xd8\xff"}[to])


async def test_a_page_of_a_pdf_becomes_a_picture(bare: Session) -> None:
    (bare.cwd / "two.pdf").write_bytes(pdf([line("page one", 72, 700, 40), line("page two", 72, 700)]))
    result = await convert(bare, "two.pdf", "png")
    assert "2 pages" in result["note"]
    with Image.open(result["output_path"]) as image:
        assert image.width == 1275
        assert image.convert("L").getextrema() == (0, 255)


@pytest.mark.parametrize("to", ["csv", "html"])
async def test_tables_are_converted_without_libreoffice(bare: Session, book: Path, to: str) -> None:
    shutil.copy(book, bare.cwd / "book.xlsx")
    result = await convert(bare, "book.xlsx", to, sheet_name="Two & Ü")
    assert (result["method"], result["sheet_name"]) == ("python", "Two & Ü")
    assert "second, with a comma" in Path(result["output_path"]).read_text()


async def test_a_csv_in_another_dialect_and_encoding_becomes_a_plain_one(session: Session) -> None:
    (session.cwd / "dialect.csv").write_bytes('name;city\nÄnne;"Köln; Süd"\n'.encode("cp1252"))
    result = await convert(session, "dialect.csv", "csv", output_path="plain.csv")
    assert result["method"] == "python"
    assert Path(result["output_path"]).read_text(encoding="utf-8") == "name,city\nÄnne,Köln; Süd\n"


async def test_without_libreoffice_the_cure_is_told(bare: Session) -> None:
    (bare.cwd / "letter.docx").write_bytes(b"PK")
    result = await convert(bare, "letter.docx", "pdf")
    assert result["error"]["details"] == {"reason": "no_libreoffice"}
    assert "apt install" in str(result["error"])


REFUSED: Mapping[str, dict[str, str]] = {
    "a kind that is unknown": {"input_path": "a.exe", "output_format": "pdf"},
    "a format that it cannot become": {"input_path": "a.pdf", "output_format": "csv"},
    "a sheet of no spreadsheet": {"input_path": "a.docx", "output_format": "pdf", "sheet_name": "x"},
    "a name of another format": {"input_path": "a.docx", "output_format": "pdf", "output_path": "a.png"},
    "the file itself": {"input_path": "a.csv", "output_format": "csv"},
    "no name": {"input_path": "/", "output_format": "pdf"},
}


@pytest.mark.parametrize("why", REFUSED)
async def test_what_makes_no_sense_is_refused(session: Session, why: str) -> None:
    (session.cwd / "a.csv").write_text("1,2\n")
    result = await session.call("convert_document", REFUSED[why])
    assert result.error_code == "invalid_arguments", why


async def test_libreoffice_reads_what_was_written_and_what_was_changed(session: Session) -> None:
    shutil.copy(MADE_BY_OFFICE / "book.xlsx", session.cwd / "changed.xlsx")
    rows = [["item", "price"], ["rail, long", 7.5], ["=hand", True], ["sum", {"formula": "=B2*2"}]]
    for name in ("new.xlsx", "changed.xlsx"):
        written = await session.call("write_excel", {"path": name, "data": rows, "sheet": "Ours & new"})
        assert written.ok, written
        result = await convert(session, name, "csv", sheet_name="Ours & new")
        told = Path(result["output_path"]).read_text(encoding="utf-8")
        assert told == 'item,price\n"rail, long",7.5\n=hand,TRUE\nsum,15\n', name


def test_a_person_calls_it_without_loading_it_first(folder: Path) -> None:
    handrail_program = Path(sys.executable).with_name("handrail")
    args = json.dumps({"input_path": "missing.csv", "output_format": "html"})
    done = subprocess.run(
        [handrail_program, "call", "convert_document", "--yes", "--args", args],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert "there is no " in done.stderr
    assert "not loaded" not in done.stderr
