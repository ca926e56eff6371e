"""LibreOffice's and Chromium's file dialogs. Chromium's has no accessibility tree: it is worked by keys, and what came of it is read from disk."""

from __future__ import annotations

import shlex
import zipfile
from pathlib import Path

import pytest

from .conftest import Agent


@pytest.fixture
async def calc(agent: Agent, tmp_path: Path) -> Agent:
    await start_office(agent, tmp_path, "--calc", "Calc")
    return agent


async def start_office(agent: Agent, tmp_path: Path, kind: str, title: str) -> None:
    """LibreOffice without its tip of the day."""
    profile = tmp_path / "profile" / "user"
    profile.mkdir(parents=True)
    (profile / "registrymodifications.xcu").write_text(
        '<?xml version="1.0" encoding="UTF-8"?><oor:items xmlns:oor="http://openoffice.org/2001/registry">'
        '<item oor:path="/org.openoffice.Office.Common/Misc"><prop oor:name="ShowTipOfTheDay" oor:op="fuse">'
        "<value>false</value></prop></item></oor:items>"
    )
    installation = f"-env:UserInstallation=file://{tmp_path / 'profile'}"
    await agent.start("soffice", installation, "--norestore", kind, title=title, SAL_USE_VCLPLUGIN="gtk3")


async def test_a_table_is_saved_as_xlsx_and_what_is_asked_of_the_format_is_answered_by_its_default(
    calc: Agent, folder: Path
) -> None:
    await calc("execute_gui", action="type", text="42\n")
    saved = await calc("save_dialog", filename="zahlen.xlsx", directory=str(folder))
    assert saved["path"] == str(folder / "zahlen.xlsx")
    assert "xl/workbook.xml" in zipfile.ZipFile(saved["path"]).namelist()
    assert len(saved["answered"]) == 1
    # It adds an ending to this name, and asks about that file.
    for name in ("tabelle", "tabelle.xlsx", "tabelle.ods"):
        (folder / name).write_text("precious")
    await calc.fails("save_dialog", filename="tabelle", directory=str(folder), overwrite=True)
    assert {path.read_text() for path in folder.glob("tabelle*")} == {"precious"}


async def test_writers_menus_save_a_text_and_export_it_as_pdf(agent: Agent, folder: Path, tmp_path: Path) -> None:
    await start_office(agent, tmp_path, "--writer", "Writer")
    await agent("execute_gui", action="type", text="Bericht")
    await agent("app_menu", menu_path="File > Export As > Export Directly as PDF")
    made = await agent("save_dialog", filename="bericht.pdf", directory=str(folder))
    assert Path(made["path"]).read_bytes().startswith(b"%PDF")
    await agent("save_dialog", filename="bericht.odt", directory=str(folder))
    assert zipfile.is_zipfile(folder / "bericht.odt")
    assert (await agent("close_app", app_name="bericht.odt"))["closed"]


async def test_texts_are_written_once_into_writer_also_those_that_go_on_on_the_next_page(
    agent: Agent, tmp_path: Path
) -> None:
    await start_office(agent, tmp_path, "--writer", "Writer")
    texts = [" ".join(f"{letter}{number}" for number in range(count)) for letter, count in (("a", 150), ("b", 1_200))]
    short = await agent("execute_gui", action="type", text=texts[0])
    assert (short["route"], short["effect"]) == ("accessibility", "confirmed")
    long = await agent("execute_gui", action="type", text=texts[1])
    assert (long["route"], long["effect"]) in {("clipboard", "confirmed"), ("clipboard", "unverified")}
    await agent("execute_gui", action="hotkey", key="ctrl+a")
    await agent("execute_gui", action="hotkey", key="ctrl+c")

    hands = await agent.session.service("hands")
    await agent.until(hands.clipboard_text, "the copied text")
    assert (await hands.clipboard_text()).strip() == "".join(texts)


async def start_browser(agent: Agent, folder: Path, tmp_path: Path, language: str = "de") -> None:
    page = folder / "page.html"
    page.write_text("<title>Wetter</title><p>Regen</p>")
    await agent.start(
        "chromium",
        "--no-sandbox",
        "--no-first-run",
        f"--user-data-dir={tmp_path / 'chromium'}",
        page.as_uri(),
        title="Wetter",
        language=language,
    )


async def test_a_dialog_without_a_tree_is_confirmed_also_where_its_last_button_is_the_left_one(
    agent: Agent, folder: Path, tmp_path: Path
) -> None:
    await start_browser(agent, folder, tmp_path, "ar")
    await agent("save_dialog", filename="kopie.html", directory=str(folder))
    assert "Regen" in (folder / "kopie.html").read_text()


async def test_a_web_page_is_saved_by_a_dialog_without_a_tree(agent: Agent, folder: Path, tmp_path: Path) -> None:
    await start_browser(agent, folder, tmp_path)
    saved = await agent("save_dialog", filename="kopie.html", directory=str(folder))
    assert "Regen" in (folder / "kopie.html").read_text()
    assert saved["effect"] == "confirmed"
    (folder / "kopie.html").write_text("alt")
    await agent("save_dialog", filename="kopie.html", directory=str(folder), overwrite=True)
    assert "Regen" in (folder / "kopie.html").read_text()
    # It asks nothing before it replaces this one.
    late = folder / "late.html"
    agent.once("^Save File$", f"printf precious > {shlex.quote(str(late))}")
    assert "meanwhile" in (await agent.fails("save_dialog", filename=str(late)))["message"]
    assert late.read_text() == "precious"
    (folder / "other.html").write_text("<title>Anderes</title>")
    opened = await agent("open_dialog", filename="other.html", directory=str(folder))
    assert opened["path"] == str(folder / "other.html")
    await agent.until(lambda: agent.active("Anderes"), "the other page")


async def test_all_text_that_shows_is_told_however_many_parts_it_has(
    agent: Agent, folder: Path, tmp_path: Path
) -> None:
    rows = "".join(f"<tr>{''.join(f'<td>w{row}x{column}</td>' for column in range(30))}</tr>" for row in range(30))
    page = folder / "page.html"
    page.write_text(f"<title>Tafel</title><table style='font-size: 6px'>{rows}</table>")
    profile = f"--user-data-dir={tmp_path / 'chromium'}"
    flags = ("--no-sandbox", "--no-first-run", "--force-renderer-accessibility")
    await agent.start("chromium", *flags, profile, page.as_uri(), title="Tafel")

    async def read() -> list[str]:
        said = await agent.session.call("extract_text", {"source": "accessibility"})
        return said["text"].split() if said.ok else []

    async def whole() -> bool:
        return "w0x0" in await read()

    await agent.until(whole, "the page's tree")
    assert "w29x29" in await read()
