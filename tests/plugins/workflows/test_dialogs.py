"""Saving and opening by the dialogs of real programs, in German and others: by role and structure."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .conftest import QT_EDITOR, Agent

# GTK's dialog, and Qt's own.
EDITORS = pytest.mark.parametrize(
    ("command", "title"),
    [pytest.param(("mousepad",), "Mousepad", id="gtk"), pytest.param((*QT_EDITOR, "de"), "Qt Editor", id="qt")],
)


@EDITORS
async def test_a_document_is_saved_under_a_name_and_found_on_disk(
    agent: Agent, folder: Path, command: tuple[str, ...], title: str
) -> None:
    await agent.start(*command, title=title)
    await agent("execute_gui", action="type", text="Zeile 1\n")
    saved = await agent("save_dialog", filename="neu ä.txt", directory=str(folder))
    assert (folder / "neu ä.txt").read_text() == "Zeile 1\n"
    assert saved["path"] == str(folder / "neu ä.txt")
    assert saved["bytes"] == 8
    assert [step["tool"] for step in saved["steps_taken"]][:2] == ["execute_gui", "execute_accessible"]


@EDITORS
async def test_a_file_that_is_there_is_replaced_only_when_that_is_said(
    agent: Agent, folder: Path, command: tuple[str, ...], title: str
) -> None:
    old = folder / "old.txt"
    old.write_text("old")
    await agent.start(*command, title=title)
    await agent("execute_gui", action="type", text="new")
    refused = await agent.fails("save_dialog", filename=str(old))
    assert refused["code"] == "invalid_arguments"
    assert old.read_text() == "old"
    assert "is a folder" in (await agent.fails("save_dialog", filename=str(folder), overwrite=True))["message"]
    assert "is a folder" in (await agent.fails("open_dialog", filename=str(folder)))["message"]
    saved = await agent("save_dialog", filename=str(old), overwrite=True)
    assert old.read_text() == "new"
    assert "old.txt" in saved["answered"][-1]["question"]


async def test_nothing_is_typed_into_a_dialog_that_does_not_answer(agent: Agent, folder: Path) -> None:
    await agent.start("mousepad", title="Mousepad")
    await agent("execute_gui", action="type", text="neu")
    (program,) = agent.programs
    agent.once("^Speichern unter$", f"kill -STOP -{program.pid}")
    failed = await agent.fails("save_dialog", filename=str(folder / "neu.txt"))
    assert not any("type" in step["did"] for step in failed["details"]["steps_taken"]), failed
    program.send_signal(signal.SIGCONT)
    await agent("close_app", app_name="mousepad", save=False)
    assert list(folder.iterdir()) == []


async def test_what_was_not_written_is_no_success(agent: Agent, folder: Path) -> None:
    await agent.start(*QT_EDITOR, "de", "forgetful", title="Qt Editor")
    await agent("execute_gui", action="type", text="gone")
    for name, why in (("nowhere/neu.txt", "there is no folder"), ("neu.txt", "was not written")):
        refused = await agent.fails("save_dialog", filename=name, directory=str(folder))
        assert why in refused["message"], refused
    assert [step["status"] for step in refused["details"]["steps_taken"]].count("success") > 1
    assert list(folder.iterdir()) == []


@EDITORS
async def test_a_file_is_opened_and_the_window_names_it(
    agent: Agent, folder: Path, command: tuple[str, ...], title: str
) -> None:
    (folder / "brief.txt").write_text("Sehr geehrte Damen")
    await agent.start(*command, title=title)
    opened = await agent("open_dialog", filename="brief.txt", directory=str(folder))
    assert opened["effect"] == "confirmed"
    assert "brief.txt" in opened["window_title"]
    shown = await agent("execute_accessible", action="read", control_type="text")
    assert shown["text"] == "Sehr geehrte Damen"


@pytest.mark.parametrize(
    ("language", "way"),
    [
        # Capitals, whose small letters Turkish alone can tell.
        pytest.param("tr", "DOSYA > FARKLI KAYDET", id="turkish"),
        # The menu says which key it has: ファイル(F).
        pytest.param("ja", "ファイル > 名前を付けて保存", id="japanese"),
        # From right to left: the buttons stand the other way round.
        pytest.param("ar", "ملف > حفظ باسم", id="arabic"),
        pytest.param("el", "ΑΡΧΕΙΟ > ΑΠΟΘΗΚΕΥΣΗ ΩΣ", id="greek"),
    ],
)
async def test_dialogs_and_menus_are_worked_in_languages_of_other_letters(
    agent: Agent, folder: Path, language: str, way: str
) -> None:
    old = folder / "İstanbul 漢.txt"
    old.write_text("old")
    await agent.start("mousepad", title="Mousepad", language=language)
    await agent("execute_gui", action="type", text="new")
    asked = await agent.fails("close_app", app_name="mousepad")
    assert [button["default"] for button in asked["details"]["question"]["buttons"]].count(True) == 1
    await agent("app_menu", menu_path=way)
    await agent("save_dialog", filename=str(old), overwrite=True)
    assert old.read_text() == "new"
    await agent("execute_gui", action="type", text="er")
    assert (await agent("close_app", app_name="mousepad", save=False))["how"] == "discarded"
    assert old.read_text() == "new"
