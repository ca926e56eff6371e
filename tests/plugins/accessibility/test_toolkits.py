"""What toolkits say in their own ways, on real programs: their names, places and cells."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import handrail
from handrail import Element, Rect, Session, Window
from handrail_accessibility.atspi.coordinate_transform import (
    IDENTITY_TRANSFORM,
    CoordinateTransform,
    compute_transform,
    disambiguate_window,
    find_process_windows,
)
from handrail_accessibility.atspi.toolkits import ToolkitInfo
from handrail_accessibility.tree.protocol import AccessibilityController

from .conftest import Drawn, Launch, Use, begin, lacks, until, yes

pytestmark = pytest.mark.anyio

QT_FORM = str(Path(__file__).with_name("qt_form.py"))
CALC = ("soffice", "--norestore", "--nologo", "--calc")


async def observe(session: Session, **args: Any) -> dict[str, Any]:
    result = await session.call("observe_screen", {"image": "none", **args})
    assert result.ok, result
    return result.wire()


async def shown(session: Session, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The screen once it shows what is waited for."""
    seen: dict[str, Any] = {}

    async def there() -> bool:
        result = await session.call("observe_screen", {"image": "none"})
        # A program that is busy starting may not answer yet.
        if result.ok:
            seen.update(result.wire())
        return result.ok and enough(seen)

    await until(there, "what the test waits for")
    return seen


def has(role: str, text: str) -> Callable[[dict[str, Any]], bool]:
    return lambda seen: any((e["role"], e["text"]) == (role, text) for e in seen["ui_elements"])


def is_there(**wanted: str) -> Callable[[dict[str, Any]], bool]:
    return lambda seen: any(wanted.items() <= e.items() for e in seen["ui_elements"])


def the(seen: dict[str, Any], role: str, text: str) -> dict[str, Any]:
    return next(e for e in seen["ui_elements"] if (e["role"], e["text"]) == (role, text))


async def click(session: Session, element: dict[str, Any]) -> dict[str, Any]:
    result = await session.call("execute_gui", {"action": "click", "element_id": element["id"]})
    assert result.ok, result
    return result.wire()


async def test_gtk_4_is_read_and_clicked_where_it_shows(session: Session, launch: Launch, use: Use) -> None:
    """It tells places from its window's corner, and of no widget that it shows."""
    await launch("gtk4-widget-factory", title="GTK Widget Factory")
    needed = (
        has("check box", "checkbutton"),
        is_there(role="spin button", value="50"),
        is_there(role="text", value="comboboxentry"),
    )
    seen = await shown(session, lambda seen: all(there(seen) for there in needed))
    box = the(seen, "check box", "checkbutton")
    assert "checked" in box["states"]
    clicked = await click(session, box)
    assert clicked["effect"] == "confirmed", clicked
    now = the(await shown(session, needed[0]), "check box", "checkbutton")
    assert (now["id"], "checked" in now["states"]) == (box["id"], False)
    assert not any(e["text"].startswith("Gtk") for e in seen["ui_elements"])
    number = next(e for e in seen["ui_elements"] if e["role"] == "spin button" and e["value"] == "50")
    set_to = await use(action="set_value", element_id=number["id"], value="77")
    assert set_to["effect"] == "confirmed", set_to
    # The entry of a combo box tells no text to who does not say how long it is.
    entry = next(e for e in seen["ui_elements"] if e["role"] == "text" and e["value"] == "comboboxentry")
    written = await use(action="set_value", element_id=entry["id"], value="Äpfel 漢")
    assert written["effect"] == "confirmed", written
    typed = await session.call("execute_gui", {"action": "type", "element_id": entry["id"], "text": "!"})
    assert (typed["effect"], typed["route"]) == ("confirmed", "accessibility"), typed


async def test_a_qt_window_keeps_its_ids(session: Session, launch: Launch) -> None:
    """Its column headers are other objects at each look."""
    await launch(sys.executable, QT_FORM, title="Qt form")
    seen = await shown(session, has("column header", "Price"))
    again = await observe(session, since=seen["observation_id"])
    assert again["stdout"] == "nothing changed"


async def test_qt_is_worked_by_its_own_actions(session: Session, launch: Launch, use: Use) -> None:
    await launch(sys.executable, QT_FORM, title="Qt form")
    await shown(session, has("button", "Send"))
    for args in (
        {"action": "set_value", "automation_id": "name", "value": "Ada 漢字"},
        {"action": "toggle", "element_name": "Paid"},
        {"action": "select", "element_name": "Country", "value": "Spain"},
        {"action": "set_value", "element_name": "Count", "value": "7"},
        {"action": "click", "element_name": "Send"},
    ):
        done = await use(**args)
        assert done["effect"] == "confirmed", (args, done)
    asked = await use(action="click", element_name="Ask")
    assert asked.get("evidence", [""])[0] == "window 'Sure' opened", asked
    answered = await use(action="click", element_name="No", window="Sure")
    assert answered["evidence"][0] == "window 'Sure' closed", answered


async def test_a_number_is_told_with_all_its_digits_and_what_can_only_be_read_is_not_written(
    session: Session, launch: Launch, use: Use
) -> None:
    await launch(sys.executable, QT_FORM, title="Qt form")
    seen = await shown(session, has("button", "Send"))
    await use(action="set_value", element_name="Count", value="1234567")
    count = next(e for e in (await observe(session))["ui_elements"] if e["role"] == "spin button")
    assert count["value"] == "1234567"
    given = next(e for e in seen["ui_elements"] if (e["role"], e["text"]) == ("text", "Given"))
    assert "editable" not in given["states"]
    refused = await session.call("execute_accessible", {"action": "set_value", "element_id": given["id"], "value": "x"})
    assert "can only be read" in refused["error"]["message"]
    await session.call("execute_gui", {"action": "type", "element_id": given["id"], "text": "x"})
    assert (await use(action="read", element_id=given["id"]))["text"] == "as it is"


async def test_a_line_of_qt_takes_what_a_person_could_write_there(session: Session, launch: Launch, use: Use) -> None:
    """Its own way to set a text goes past the validator, and tells nobody of an edit."""
    await launch(sys.executable, QT_FORM, title="Qt form")
    await shown(session, has("button", "Send"))
    order = {"action": "set_value", "element_name": "Age", "control_type": "text"}
    refused = await session.call("execute_accessible", {**order, "value": "old"})
    assert refused["error"]["details"]["found"] == "", refused
    written = await use(**order, value="42")
    assert written["effect"] == "confirmed", written
    seen = await shown(session, is_there(role="text", value="42"))
    field = the(seen, "text", "Age")
    await use(action="read", element_name="heard 42")
    typed = await session.call("execute_gui", {"action": "type", "element_id": field["id"], "text": "x"})
    assert typed["effect"] == "none", typed
    emptied = await use(**order, value="")
    assert emptied["effect"] == "confirmed", emptied
    two_lines = await session.call("execute_accessible", {**order, "value": "4\n2"})
    assert "single line" in two_lines["error"]["message"]


async def test_dates_and_long_lists_of_choices_of_qt_are_told_and_set(
    session: Session, launch: Launch, use: Use
) -> None:
    await launch(sys.executable, QT_FORM, title="Qt form")
    seen = await shown(session, has("button", "Send"))
    assert the(seen, "spin button", "Born")["value"] == "2024-01-01"
    assert the(seen, "combo box", "Room")["value"] == "room 0"
    for name, value in (("Born", "1999-12-24"), ("Room", "room 70")):
        done = await use(action="set_value", element_name=name, value=value)
        assert done.get("effect") == "confirmed", done
    now = await observe(session)
    assert the(now, "spin button", "Born")["value"] == "1999-12-24"
    assert the(now, "combo box", "Room")["value"] == "room 70"


@pytest.fixture(scope="module")
async def sheet(session: Session, environment: dict[str, str], tmp_path_factory: Any) -> AsyncIterator[None]:
    """Calc with an empty sheet; it takes seconds to start."""
    process = begin(CALC, environment, tmp_path_factory.mktemp("calc"))
    try:
        await shown(session, has("tool bar", "Formatting"))
        yield
    finally:
        process.kill()
        process.wait()


async def test_a_sheet_is_told_in_few_words_and_keeps_its_ids(session: Session, sheet: None) -> None:
    """It makes a new object of each cell at each look."""
    seen = await observe(session)
    table = next(e for e in seen["ui_elements"] if e["role"] == "table")
    assert table["value"].startswith("rows 1 to ")
    assert not seen["truncated"]
    again = await observe(session, since=seen["observation_id"])
    assert again["stdout"] == "nothing changed"


async def test_what_libreoffice_draws_and_gtks_widgets_in_it_are_told_where_they_show(
    session: Session, sheet: None
) -> None:
    seen = await shown(session, has("tab", "Sheet1"))
    for drawn, widget in (("Sheet1", "Move To Home"), ("Function Wizard", "Expand Formula Bar")):
        first, second = (next(e["bbox"] for e in seen["ui_elements"] if e["text"] == text) for text in (drawn, widget))
        assert max(first[1], second[1]) < min(first[3], second[3]), (drawn, first, widget, second)


async def test_cells_are_used_by_address_in_view_and_out_of_it(session: Session, sheet: None, use: Use) -> None:
    """Until the pointer has been in the sheet, LibreOffice tells each cell's place as a line higher than it is."""
    there = await use(action="click", element_name="C5", window="Calc")
    assert there["status"] == "success", there
    typed = await session.call("execute_gui", {"action": "type", "text": "Äpfel 漢"})
    assert typed.ok, typed
    await session.call("execute_gui", {"action": "press_key", "key": "enter"})
    seen = await shown(session, has("cell", "C5"))
    assert the(seen, "cell", "C5")["value"] == "Äpfel 漢"
    read = await use(action="read", element_name="AZ2000", window="Calc")
    assert (read["element_name"], read["element_type"]) == ("AZ2000", "cell"), read


# Programs with much in their windows, by a part of their titles.
FULL = {
    "galculator": "galculator",
    "gtk3-demo": "Application Class",
    "gtk4-widget-factory": "GTK Widget Factory",
    "gtk3-widget-factory": "gtk3-widget-factory",
}
# Programs say of what is only read, and of what is only scrolled, that it can be clicked.
READ = frozenset({"label", "image", "scroll bar"})


def usable(element: Element, screen: Rect) -> bool:
    """Whether a person would name it and act on it: what only takes the focus is a box around others."""
    shows = element.rect is not None and not element.rect.intersect(screen).empty and "offscreen" not in element.states
    acted_on = set(element.actions) - {"focus"} and "disabled" not in element.states and element.role not in READ
    return bool(element.text and shows and acted_on)


async def look_at_all(session: Session, control: AccessibilityController) -> str:
    """The text of a look at the active window, once that names everything in it that can be used."""
    screen = (await (await session.service("screen")).monitors())[0]
    seen = await observe(session, max_elements=1000)
    every = session.observations.number((await control.tree(full=True, budget=5000, deadline=30)).elements)
    told = set(re.findall(r"\be\d+\b", seen["stdout"]))
    assert [element for element in every if usable(element, screen) and element.id not in told] == []
    return seen["stdout"]


async def test_a_window_is_told_in_few_words_and_nothing_that_can_be_used_is_left_out(
    session: Session, control: AccessibilityController, environment: dict[str, str], sheet: None, tmp_path: Path
) -> None:
    await until(Drawn(control, "Calc"), "the sheet")
    sizes = {"calc": len(await look_at_all(session, control))}
    for program, title in FULL.items():
        process = begin((program,), environment, tmp_path)
        try:
            await until(Drawn(control, title), program)
            sizes[program] = len(await look_at_all(session, control))
        finally:
            process.kill()
            process.wait()
        await until(partial(lacks, control, title), f"the end of {program}")
    assert median(sizes.values()) <= 2_000, sizes
    assert max(sizes.values()) <= 3_000, sizes


@pytest.mark.parametrize(
    ("command", "variables", "element"),
    [
        pytest.param(("galculator",), {"GDK_SCALE": "2"}, ("toggle button", "7"), id="gtk-3-twice"),
        pytest.param(("gtk4-widget-factory",), {"GDK_SCALE": "2"}, ("check box", "checkbutton"), id="gtk-4-twice"),
        pytest.param((sys.executable, QT_FORM), {"QT_SCALE_FACTOR": "1.5"}, ("check box", "Paid"), id="qt-half-more"),
    ],
)
async def test_a_program_that_is_shown_larger_is_clicked_where_it_shows(
    large: tuple[Session, dict[str, str]],
    tmp_path: Path,
    command: tuple[str, ...],
    variables: dict[str, str],
    element: tuple[str, str],
) -> None:
    session, environment = large
    process = begin(command, {**environment, **variables}, tmp_path)
    try:
        seen = await shown(session, has(*element))
        (window,) = await (await session.service("screen")).windows()
        known = the(seen, *element)
        clicked = await click(session, known)
        assert window.rect.contains(*clicked["coordinates"]["screen"])
        assert clicked["effect"] == "confirmed", clicked
        now = await shown(session, is_there(id=known["id"]))
        assert the(now, *element)["states"] != known["states"]
    finally:
        process.kill()
        process.wait()
    screen = await session.service("screen")

    async def bare() -> bool:
        return await screen.windows() == []

    await until(bare, "an empty desktop")


@pytest.mark.parametrize("variables", [pytest.param({}, id="plain"), pytest.param({"GDK_SCALE": "2"}, id="twice")])
async def test_the_menu_of_a_right_click_is_told_and_clicked_where_it_shows(
    large: tuple[Session, dict[str, str]], tmp_path: Path, variables: dict[str, str]
) -> None:
    """It is a window of its own to the tree, and the window manager knows nothing of it."""
    session, environment = large
    (tmp_path / "words.txt").write_text("some words")
    command = ("mousepad", "--disable-server", str(tmp_path / "words.txt"))
    process = begin(command, {**environment, **variables}, tmp_path)
    try:
        text = the(await shown(session, is_there(role="text", value="some words")), "text", "")
        opened = await session.call("execute_gui", {"action": "right_click", "element_id": text["id"]})
        assert opened["effect"] == "confirmed", opened
        item = the(await shown(session, has("menu item", "Select All")), "menu item", "Select All")
        screen = await session.service("screen")
        menu = next(surface for surface in await screen.surfaces() if surface.state == "popup")
        clicked = await click(session, item)
        assert menu.rect.contains(*clicked["coordinates"]["screen"])
        assert clicked["effect"] == "confirmed", clicked
        await session.call("execute_gui", {"action": "press_key", "key": "delete"})
        await shown(session, lambda seen: the(seen, "text", "").get("value") != "some words")
        await session.call("execute_gui", {"action": "right_click", "element_id": text["id"]})
        item = the(await shown(session, has("menu item", "Undo")), "menu item", "Undo")
        undone = await session.call("execute_accessible", {"action": "click", "element_id": item["id"]})
        assert (undone["effect"], undone["route"]) == ("confirmed", "action"), undone
    finally:
        process.kill()
        process.wait()

    async def bare() -> bool:
        return await screen.windows() == []

    await until(bare, "an empty desktop")


@pytest.fixture(scope="module")
async def large(session: Session, tmp_path_factory: Any) -> AsyncIterator[tuple[Session, dict[str, str]]]:
    desktops = await session.runtime.service("desktops", session=None, desktop=None)
    desktop = await desktops.start("large", width=2560, height=1600)
    folder = tmp_path_factory.mktemp("large")
    environment = {**dict(session.environment), **desktop.environment}
    async with handrail.open(
        desktop="current", confirm=yes, cwd=folder, environment=environment, backend="accessibility"
    ) as opened:
        yield opened, environment


@pytest.mark.parametrize(
    ("real", "told", "relative", "wanted"),
    [
        pytest.param(Rect(10, 20, 800, 600), Rect(10, 20, 800, 600), False, IDENTITY_TRANSFORM, id="as-told"),
        pytest.param(Rect(9, 30, 800, 600), Rect(8, 10, 802, 622), False, IDENTITY_TRANSFORM, id="decorated"),
        pytest.param(Rect(100, 60, 800, 600), Rect(50, 20, 400, 310), False, CoordinateTransform(2.0), id="twice"),
        pytest.param(Rect(100, 60, 900, 750), Rect(66, 40, 600, 500), False, CoordinateTransform(1.5), id="half-more"),
        pytest.param(
            Rect(40, 50, 810, 610), Rect(0, 0, 800, 600), True, CoordinateTransform(1.0, 45, 55), id="from-its-corner"
        ),
        pytest.param(
            Rect(-1880, 50, 1610, 1210), Rect(0, 0, 800, 600), True, CoordinateTransform(2.0, -1875, 55), id="both"
        ),
        pytest.param(None, Rect(0, 0, 800, 600), True, IDENTITY_TRANSFORM, id="no-window"),
    ],
)
def test_what_is_wrong_with_places_is_found_by_the_window(
    real: Rect | None, told: Rect, relative: bool, wanted: CoordinateTransform
) -> None:
    assert compute_transform(real, told, relative=relative) == wanted


def test_a_pane_that_tells_another_place_than_what_it_fills_is_put_right() -> None:
    twice = CoordinateTransform(2.0)
    assert IDENTITY_TRANSFORM.inside(Rect(0, 21, 100, 50), Rect(0, 48, 100, 50)) == CoordinateTransform(1.0, 0, 27)
    assert twice.inside(Rect(28, 306, 1224, 466), Rect(14, 153, 612, 233)) == IDENTITY_TRANSFORM
    assert twice.inside(Rect(14, 200, 612, 100), Rect(14, 153, 612, 233)) == twice


def test_a_window_is_known_by_process_and_title() -> None:
    rect = Rect(0, 0, 10, 10)
    one, two = Window("0x1", "Page", "p", 7, rect), Window("0x2", "Other", "p", 7, rect)
    front = Window("0x3", "Save Changes", "p", 7, rect, active=True)
    assert find_process_windows([one, two], pid=7, title="Page", active=True) == [one]
    assert find_process_windows([one, two], pid=7, title="neither", active=True) == [one, two]
    assert find_process_windows([one], pid=7, title="an older title", active=False) == [one]
    assert find_process_windows([front, one], pid=7, title="Question", active=True) == [front]
    assert find_process_windows([one], pid=8, title="Page", active=True) == []


def test_windows_of_one_title_are_told_apart_by_their_places() -> None:
    left = Window("0x1", "Page", "p", 7, Rect(0, 0, 400, 300))
    right = Window("0x2", "Page", "p", 7, Rect(20, 20, 400, 300), active=True)
    both = [left, right]
    assert disambiguate_window(both, place=Rect(20, 20, 400, 300), active=False) is right
    shadow = Rect(-26, -23, 452, 352)
    assert disambiguate_window(both, place=shadow, active=True) is left
    half = Rect(10, 10, 200, 150)
    assert disambiguate_window(both, place=half, active=True) is right
    assert disambiguate_window(both, place=None, active=False) is left
    assert disambiguate_window([left, left], place=left.rect, active=False) is None


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ("GtkEntry", ""),
        ("_Act Act", "Act"),
        ("S_elect Select", "Select"),
        ("my_file my_file", "my_file my_file"),
        ("Save", "Save"),
    ],
)
def test_names_that_gtk_4_makes_up_are_left_out(told: str, known: str) -> None:
    assert ToolkitInfo("GTK", "4.8.3").name_of(told) == known
    assert ToolkitInfo("gtk", "3.24.38").name_of(told) == told
