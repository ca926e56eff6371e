"""Programs started, handed over to, asked to close, and worked by their menus and forms, all in German."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

import anyio
import pytest

from handrail import Rect
from handrail_workflows.forms import find_field
from handrail_workflows.windows import UiElement

from .conftest import QT_EDITOR, Agent


async def test_a_program_is_started_by_its_name_in_the_menu_and_closed_again(agent: Agent) -> None:
    started = await agent("launch_app", app_name="Galculator")
    assert started["found_as"] == "galculator"
    assert started["how"] == "started"
    assert await agent.active("galculator")
    closed = await agent("close_app", app_name="galculator")
    assert closed["how"] == "asked"
    assert await agent.titles() == []


async def test_a_program_that_hands_over_to_one_that_runs_is_found_there(agent: Agent, folder: Path) -> None:
    (folder / "zwei.txt").write_text("zwei")
    first = await agent("launch_app", app_name="mousepad")
    second = await agent("launch_app", app_name="mousepad", args=[str(folder / "zwei.txt")])
    assert second["pid"] == first["pid"]
    assert second["how"] == "handed_over"
    assert "zwei.txt" in second["window_title"]


async def test_what_is_not_installed_is_said_and_what_fails_says_why(agent: Agent, folder: Path) -> None:
    assert (await agent.fails("launch_app", app_name="no such program"))["code"] == "not_found"
    failing = folder / "failing"
    failing.write_text("#!/bin/sh\necho out of paper >&2\nexit 3\n")
    failing.chmod(0o755)
    with_path = f"export PATH={shlex.quote(str(folder))}:$PATH"
    await agent("execute_cli", command=with_path)
    error = await agent.fails("launch_app", app_name="failing")
    assert "exit code 3" in error["message"]
    assert "out of paper" in error["details"]["stderr"]


async def test_a_file_is_opened_with_the_program_for_its_type(agent: Agent, folder: Path) -> None:
    (folder / "brief.txt").write_text("Liebe Mutter")
    opened = await agent("open_file", file_path=str(folder / "brief.txt"))
    assert opened["found_as"] == "org.xfce.mousepad"
    assert opened["effect"] == "confirmed"


@pytest.mark.parametrize(
    ("command", "title"),
    [pytest.param(("mousepad",), "Mousepad", id="gtk"), pytest.param((*QT_EDITOR, "de"), "Qt Editor", id="qt")],
)
async def test_unsaved_changes_are_kept_saved_or_discarded_as_is_said(
    agent: Agent, folder: Path, command: tuple[str, ...], title: str
) -> None:
    path = folder / "text.txt"
    await agent.start(*command, title=title)
    await agent("execute_gui", action="type", text="eins")
    asked = await agent.fails("close_app", app_name=title)
    assert len(asked["details"]["question"]["buttons"]) == 3
    assert len(await agent.titles()) == 1
    assert "save_dialog" in (await agent.fails("close_app", app_name=title, save=True))["message"]
    await agent("save_dialog", filename=str(path))
    await agent("execute_gui", action="type", text=" zwei")
    assert (await agent("close_app", app_name="text.txt", save=True))["closed"]
    assert path.read_text() == "eins zwei"
    await agent.start(*command, title=title)
    await agent("execute_gui", action="type", text="drei")
    assert (await agent("close_app", app_name=title, save=False))["how"] == "discarded"
    assert await agent.titles() == []


async def test_a_program_that_hangs_is_ended_only_when_this_session_started_it(agent: Agent) -> None:
    await agent.start("galculator", title="galculator")
    agent.programs[0].send_signal(signal.SIGSTOP)
    assert "not started it" in (await agent.fails("close_app", app_name="galculator"))["message"]
    await agent.clear()
    own = await agent("launch_app", app_name="galculator")
    os.kill(own["pid"], signal.SIGSTOP)
    assert (await agent("close_app", app_name="galculator"))["how"] == "stopped"


async def test_a_program_that_asks_late_is_waited_for_and_not_ended(agent: Agent) -> None:
    started = await agent("launch_app", app_name=sys.executable, args=[QT_EDITOR[1], "de", "late"])
    await agent("execute_gui", action="type", text="eins")
    asked = await agent.fails("close_app", app_name=started["window_id"])
    assert len(asked["details"]["question"]["buttons"]) == 3
    assert (await agent("close_app", app_name=started["window_id"], save=False))["how"] == "discarded"


async def test_a_window_is_closed_alone_and_no_program_is_ended_that_shows_another(agent: Agent) -> None:
    started = await agent("launch_app", app_name="mousepad")
    await agent("execute_gui", action="type", text="eins")
    await agent("execute_gui", action="hotkey", key="ctrl+shift+n")

    async def two() -> list[str]:
        listed = (await agent("window_list"))["windows"]
        new = [window["id"] for window in listed if window["active"] and window["id"] != started["window_id"]]
        return new if len(listed) > 1 else []

    await agent.until(two, "the second window")
    (second,) = await two()
    assert (await agent("close_app", app_name=second, save=False))["how"] == "asked"
    (left,) = (await agent("window_list"))["windows"]
    assert left["id"] == started["window_id"]
    await agent("execute_gui", action="hotkey", key="ctrl+o")
    await agent.until(two, "the dialog")
    held = await agent.fails("close_app", app_name=started["window_id"], save=False)
    assert "its program shows" in held["message"]
    assert len(await agent.titles()) == 2
    assert (await agent("close_app", app_name="mousepad", save=False))["how"] == "discarded"


async def test_items_of_menus_are_chosen_as_they_are_shown(agent: Agent, folder: Path) -> None:
    await agent.start(*QT_EDITOR, "de", title="Qt Editor")
    await agent("app_menu", menu_path="File > Export > As HTML", app_name="Qt Editor")
    assert (await agent("execute_accessible", action="read", control_type="text"))["text"] == "<p>exported</p>"
    wrong = await agent.fails("app_menu", menu_path="File > Exprot")
    assert "Export" in wrong["details"]["candidates"]
    shown = (await agent("get_ui_context"))["elements"]
    assert not any("menu" in element["type"] and "focused" in element["states"] for element in shown)
    await agent("execute_gui", action="hotkey", key="ctrl+o")
    there = await agent.titles()
    await agent.fails("app_menu", menu_path="Daten > Neu")
    assert await agent.titles() == there
    await agent("execute_gui", action="press_key", key="escape")
    await agent.start("mousepad", title="Mousepad")
    await agent("app_menu", menu_path="Datei > Speichern unter", app_name="mousepad")
    saved = await agent("save_dialog", filename="leer.txt", directory=str(folder))
    assert saved["bytes"] == 0


async def test_gtks_own_demo_is_worked_by_its_tree_its_dialogs_and_the_menus_of_what_it_starts(agent: Agent) -> None:
    """What it calls its actions is in German."""
    await agent.start("gtk3-demo", title="Application Class")

    async def shows(name: str) -> bool:
        seen = await agent.session.call("get_ui_context", {})
        return seen.ok and any(element["name"] == name for element in seen["elements"])

    async def use(element_name: str, action: str) -> str:
        await agent.until(lambda: shows(element_name), element_name)
        done = await agent("execute_accessible", element_name=element_name, action=action)
        assert done["effect"] == "confirmed", done
        return done["route"]

    assert await use("Entry", "expand") == "action"
    await use("Search Entry", "select")
    assert await use("Entry", "collapse") == "action"
    await use("Dialogs and Message Boxes", "select")
    await use("Run", "click")
    await use("Interactive Dialog", "click")
    await agent.until(lambda: shows("OK"), "the dialog")
    filled = await agent("fill_form", fields=[{"label": "Entry 1", "value": "eins"}, {"label": "Entry 2", "value": 2}])
    assert filled["effect"] == "confirmed"
    await use("OK", "click")
    given = await agent("execute_accessible", action="read", element_name="Entry 1", control_type="text")
    assert given["text"] == "eins"
    await agent("close_app", app_name=(await agent("window_list"))["windows"][0]["id"])
    await agent.start("gtk3-demo-application", title="Application Class")
    await agent.until(lambda: shows("Help"), "its menus")
    chosen = await agent("app_menu", menu_path="Preferences > Color > Green")
    assert chosen["effect"] == "confirmed"
    await agent("app_menu", menu_path="Help > About")
    assert (await agent("close_app", app_name="gtk3-demo-appli"))["how"] == "asked"


def said(**fields: str | bool) -> list[dict[str, str | bool]]:
    return [{"label": label, "value": value} for label, value in fields.items()]


async def test_a_form_is_filled_by_its_labels(agent: Agent) -> None:
    await agent.start(*QT_EDITOR, "de", title="Qt Editor")
    await agent("app_menu", menu_path="File > Form")
    filled = await agent("fill_form", fields=said(Name="Ayşe Öztürk", Country="Turkey", Subscribe=True))
    assert filled["filled"] == ["Name", "Country", "Subscribe"]
    shown = (await agent("get_ui_context"))["elements"]
    assert next(e for e in shown if e["type"] == "check box")["states"].count("checked") == 1
    partly = await agent.session.call("fill_form", {"fields": said(Name="Ali", Street="x")})
    assert partly["filled"] == ["Name"]
    assert partly["failed_fields"][0]["label"] == "Street"
    assert not partly.ok
    await agent("fill_form", fields=[{"label": "Name", "value": 1234567890123456}])
    read = await agent("execute_accessible", action="read", element_name="Name", control_type="text")
    assert read["text"] == "1234567890123456"
    waiting = await agent.session.call("fill_form", {"fields": said(Waits="x")})
    assert "is disabled" in waiting["failed_fields"][0]["reason"]
    either = await agent.session.call("fill_form", {"fields": said(City="Ankara", **{"By mail": False})})
    assert either["filled"] == []
    assert "2 fields are labelled 'City'" in either["failed_fields"][0]["reason"]
    assert "one of several choices" in either["failed_fields"][1]["reason"]
    shown = (await agent("get_ui_context"))["elements"]
    assert not any(element.get("value") == "Ankara" for element in shown)
    assert not any(element["name"] == "By mail" and "checked" in element["states"] for element in shown)


async def test_where_nothing_is_told_of_a_window_that_is_said_and_not_that_its_parts_are_missing(agent: Agent) -> None:
    assert "no window is active" in (await agent.fails("app_menu", menu_path="Datei > Neu"))["message"]
    await agent.start("galculator", title="galculator", NO_AT_BRIDGE="1")
    assert "publishes no tree" in (await agent.fails("app_menu", menu_path="Datei > Neu"))["message"]
    filled = await agent.session.call("fill_form", {"fields": said(Name="x")})
    assert "publishes no tree" in filled["failed_fields"][0]["reason"]
    assert "tells of no text" in (await agent.fails("extract_text"))["message"]


@pytest.mark.parametrize(
    ("label", "places"),
    [
        pytest.param("Street", [10, 100, 300, 400], id="left-to-right"),
        pytest.param("شارع", [300, 160, 10, -100], id="right-to-left"),
    ],
)
def test_a_field_without_a_name_is_the_one_behind_its_label(label: str, places: list[int]) -> None:
    """Two labels, each with its field behind it: that of the other label is as near."""
    shown = [
        UiElement(f"e{at}", role, name, "", frozenset(), "", frozenset(), Rect(x, 10, 80, 20))
        for at, (role, name, x) in enumerate(
            zip(["label", "text"] * 2, [label, "", label * 2, ""], places, strict=True)
        )
    ]
    assert find_field(shown, label).id == "e1"
    assert find_field(shown, label * 2).id == "e3"


async def test_text_is_copied_from_one_program_to_another_and_checked_at_both_ends(agent: Agent, folder: Path) -> None:
    await agent.start("mousepad", title="Mousepad")
    await agent("execute_gui", action="type", text="Grüße\n漢字")
    await agent.start(*QT_EDITOR, "de", title="Qt Editor")
    agent.own_clipboard(b"<b>meins</b>", "text/html", folder)
    copied = await agent("copy_between_apps", source_app="mousepad", target_app="Qt Editor")
    assert copied["effect"] == "confirmed"
    assert copied["source_checked"]
    assert (await agent("execute_accessible", action="read", control_type="text"))["text"] == "Grüße\n漢字"
    # Of which copying by keys knows nothing.
    assert "text/html" in (await agent("clipboard_read"))["formats"]
    asked = ["xclip", "-selection", "clipboard", "-t", "text/html", "-o"]
    assert (await anyio.run_process(asked, env=agent.environment)).stdout == b"<b>meins</b>"
    # The copied text is selected in no program: that is for whoever calls to do.
    await agent("window_focus", title="Mousepad")
    await agent("execute_gui", action="hotkey", key="ctrl+end")
    await agent("execute_gui", action="hotkey", key="shift+home")
    selected = await agent("copy_between_apps", source_app="mousepad", target_app="Qt Editor", content="selection")
    assert (selected["effect"], selected["length"]) == ("confirmed", 2)
    same = await agent.fails("copy_between_apps", source_app="mousepad", target_app="mousepad")
    assert same["code"] == "invalid_arguments"
    said = await agent("extract_text", window="mousepad")
    assert said["source"] == "accessibility"
    assert "Grüße" in said["text"]


async def test_all_is_copied_from_a_text_field_only(agent: Agent) -> None:
    """Elsewhere, as in a list of files or a sheet, selecting all is no copying of a text."""
    await agent.start(*QT_EDITOR, "de", title="Qt Editor")
    await agent.start("gtk3-demo", title="Application Class")
    refused = await agent.fails("copy_between_apps", source_app="Application Class", target_app="Qt Editor")
    assert 'content="selection"' in refused["message"], refused
    assert not any(step["tool"] == "execute_gui" for step in refused["details"]["steps_taken"])
    assert (await agent("execute_accessible", action="read", window="Qt Editor", control_type="text"))["text"] == ""
