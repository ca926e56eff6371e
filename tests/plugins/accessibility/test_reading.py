from __future__ import annotations

import signal
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import pytest

from handrail import NotFound, Session
from handrail_accessibility.tree.protocol import AccessibilityController

from .conftest import Launch, begin, until
from .published import BUTTON, EDITABLE, ENTRY, FOCUSED, LABEL, LIST, PANEL, PASSWORD, SHOWING, USABLE, Published, Thing

pytestmark = pytest.mark.anyio


async def look(session: Session, **args: Any) -> dict[str, Any]:
    result = await session.call("get_ui_context", args)
    assert result.ok, result
    return result.wire()


def named(seen: dict[str, Any], name: str) -> dict[str, Any]:
    return next(element for element in seen["elements"] if element["name"] == name)


async def test_a_window_is_read_with_what_a_person_could_use(session: Session, launch: Launch) -> None:
    await launch("galculator", title="galculator")
    seen = await look(session)
    assert seen["foreground_window"] == "galculator"
    key = named(seen, "8")
    assert key["type"] == "toggle button"
    assert key["actions"] == ["click", "toggle", "focus"]
    x1, y1, x2, y2 = key["bbox"]
    assert 0 <= x1 < x2 <= 1280
    assert 0 <= y1 < y2 <= 800
    assert not seen["truncated"]


async def test_a_display_that_is_a_text_shows_its_content(session: Session, launch: Launch) -> None:
    await launch("galculator", title="galculator")
    seen = await look(session)
    (display,) = [element for element in seen["elements"] if element["type"] == "text"]
    assert display["value"] == "0"


async def test_elements_come_in_reading_order(session: Session, launch: Launch) -> None:
    await launch("galculator", title="galculator")
    names = [element["name"] for element in (await look(session))["elements"]]
    digits = [name for name in names if name in set("123456789")]
    assert digits == ["7", "8", "9", "4", "5", "6", "1", "2", "3"]


async def test_a_closed_menu_is_one_line(session: Session, launch: Launch) -> None:
    await launch("mousepad", title="Mousepad")
    seen = await look(session)
    assert named(seen, "File")["value"].endswith(" items, closed")
    assert not [element for element in seen["elements"] if element["type"] == "menu item"]


async def test_an_open_menu_shows_its_items(session: Session, launch: Launch) -> None:
    await launch("mousepad", title="Mousepad")
    opened = await session.call("execute_accessible", {"action": "expand", "element_name": "File"})
    assert opened["effect"] == "confirmed", opened
    seen = await look(session)
    assert named(seen, "Save As...")["type"] == "menu item"


async def test_static_text_is_left_out_unless_full_is_asked_for(session: Session, published: Published) -> None:
    published.show("/label", Thing(LABEL, "just words"))
    published.show("/button", Thing(BUTTON, "Go"))
    assert [element["name"] for element in (await look(session))["elements"]] == ["Go"]
    assert "just words" in [element["name"] for element in (await look(session, full=True))["elements"]]


async def test_a_query_keeps_what_contains_it(session: Session, launch: Launch) -> None:
    await launch("mousepad", title="Mousepad")
    seen = await look(session, query="edit")
    assert [element["name"] for element in seen["elements"]] == ["Edit"]


async def test_a_depth_leaves_out_what_is_deeper(session: Session, launch: Launch) -> None:
    await launch("mousepad", title="Mousepad")
    shallow, deep = await look(session, max_depth=1), await look(session)
    assert 0 < shallow["element_count"] < deep["element_count"]


async def test_a_budget_that_is_too_small_is_said(control: AccessibilityController, launch: Launch) -> None:
    await launch("galculator", title="galculator")
    tree = await control.tree(budget=5)
    assert len(tree.elements) == 5
    assert tree.truncated


async def test_a_window_that_is_not_there_is_answered_with_those_that_are(session: Session, launch: Launch) -> None:
    await launch("galculator", title="galculator")
    result = await session.call("get_ui_context", {"window": "no such window"})
    assert result.error_code == "not_found"
    assert "galculator" in result["error"]["message"]


async def test_a_program_that_publishes_nothing_is_named_with_the_cure(
    session: Session, programs: list[Any], environment: dict[str, str], tmp_path: Path
) -> None:
    programs.append(begin(("xterm", "-T", "silent"), environment, tmp_path))

    async def named_in_the_note() -> bool:
        return "'silent' is of xterm" in (await look(session)).get("note", "")

    await until(named_in_the_note, "a note that names it")
    assert "--force-renderer-accessibility" in (await look(session))["note"]


async def test_an_empty_desktop_is_said_and_is_no_error(session: Session) -> None:
    seen = await look(session)
    assert seen["elements"] == []
    assert "there is no window" in seen["note"]


async def test_a_program_that_hangs_does_not_hold_up_the_others(
    control: AccessibilityController, launch: Launch
) -> None:
    hung = await launch("mousepad", title="Mousepad")
    await launch("galculator", title="galculator")
    hung.send_signal(signal.SIGSTOP)
    began = perf_counter()
    tree = await control.tree(window="galculator")
    assert perf_counter() - began < 20
    assert any(element.text == "8" for element in tree.elements)
    assert "does not answer" in tree.note
    assert "mousepad" in tree.note
    again = perf_counter()
    await control.tree(window="galculator")
    assert perf_counter() - again < 20
    hung.send_signal(signal.SIGCONT)


async def test_a_window_of_a_program_that_hangs_is_an_error_that_says_so(session: Session, launch: Launch) -> None:
    hung = await launch("mousepad", title="Mousepad")
    hung.send_signal(signal.SIGSTOP)
    result = await session.call("get_ui_context", {"window": "Mousepad"})
    assert result.error_code == "downstream_error", result
    assert "does not answer" in result["error"]["message"]
    hung.send_signal(signal.SIGCONT)


async def test_a_program_that_hangs_while_it_is_read_ends_with_the_deadline(
    control: AccessibilityController, launch: Launch, published: Published
) -> None:
    for number in range(200):
        published.show(f"/button{number}", Thing(BUTTON, f"button {number}"))
    published.slow = frozenset({"GetExtents"})
    began = perf_counter()
    tree = await control.tree(window="Published", deadline=1.0)
    assert perf_counter() - began < 20
    assert tree.truncated
    assert "deadline" in tree.note


async def test_the_focus_is_found_among_any_number_of_things(
    control: AccessibilityController, published: Published
) -> None:
    for panel in range(3):
        inside = {f"/button{panel}x{number}": Thing(BUTTON, f"button {number}") for number in range(200)}
        published.things |= inside
        published.show(f"/panel{panel}", Thing(PANEL, "", children=list(inside)))
    published.show("/field", Thing(ENTRY, "field", states=USABLE | {FOCUSED}))
    found = await control.focused()
    assert found is not None
    assert (found.role, found.text) == ("text", "field")


async def test_of_a_pane_and_the_text_in_it_the_text_has_the_focus(
    control: AccessibilityController, published: Published
) -> None:
    published.things["/field"] = Thing(ENTRY, "field", states=USABLE | {FOCUSED, EDITABLE})
    published.show("/pane", Thing(PANEL, "", children=["/field"], states=USABLE | {FOCUSED}))
    found = await control.focused()
    assert found is not None
    assert (found.role, found.text) == ("text", "field")


async def test_a_program_that_is_slow_to_answer_is_asked_again_for_its_focus(
    control: AccessibilityController, published: Published
) -> None:
    published.show("/field", Thing(ENTRY, "field", states=USABLE | {FOCUSED}))
    assert await control.focused() is not None
    published.hangs = True
    published.asked.clear()

    async def asked_twice() -> bool:
        return len(published.asked) > 1

    async with anyio.create_task_group() as group:

        async def answer_at_last() -> None:
            await until(asked_twice, "a second question")
            published.hangs = False

        group.start_soon(answer_at_last)
        found = await control.focused()
    assert found is not None
    assert found.text == "field"


async def test_a_list_without_end_is_cut(control: AccessibilityController, published: Published) -> None:
    published.show("/item", Thing(BUTTON, "item"))
    published.show("/list", Thing(LIST, "endless", children=["/item"], child_count=2_147_483_647))
    began = perf_counter()
    tree = await control.tree(window="Published")
    assert perf_counter() - began < 20
    assert tree.truncated
    assert any(element.text == "item" for element in tree.elements)


async def test_a_password_is_never_read(
    session: Session, control: AccessibilityController, published: Published
) -> None:
    field = Thing(PASSWORD, "Password", text="hunter2", interfaces=("Accessible", "Component", "Text", "EditableText"))
    published.show("/secret", field)
    seen = await look(session)
    entry = named(seen, "Password")
    assert "password" in entry["states"]
    assert "value" not in entry
    read = await session.call("execute_accessible", {"action": "read", "element_id": entry["id"]})
    assert read["text"] is None
    tree = await control.tree(window="Published")
    assert await control.read_text(tree.elements[0]) is None
    assert ("/secret", "GetText") not in published.asked


async def test_what_does_not_show_is_not_asked_for_its_place(
    control: AccessibilityController, published: Published
) -> None:
    published.show("/shown", Thing(BUTTON, "shown"))
    published.show("/hidden", Thing(BUTTON, "hidden", states=USABLE - {SHOWING}))
    tree = await control.tree(window="Published")
    assert [element.text for element in tree.elements] == ["shown"]
    assert ("/shown", "GetExtents") in published.asked
    assert ("/hidden", "GetExtents") not in published.asked


async def test_a_window_without_a_cache_is_walked(control: AccessibilityController, published: Published) -> None:
    published.show("/name", Thing(ENTRY, "Name", text="Ada", interfaces=("Accessible", "Component", "Text")))
    tree = await control.tree(window="Published")
    assert [(element.role, element.text, element.value) for element in tree.elements] == [("text", "Name", "Ada")]


async def test_the_fingerprint_is_equal_until_something_changes(
    control: AccessibilityController, published: Published
) -> None:
    published.show("/button", Thing(BUTTON, "Go"))
    before = await control.glance()
    assert (await control.glance()).fingerprint == before.fingerprint
    published.show("/button", Thing(BUTTON, "Gone"))
    assert (await control.glance()).fingerprint != before.fingerprint


async def test_a_window_that_no_one_has_is_not_found(control: AccessibilityController) -> None:
    with pytest.raises(NotFound, match="there is no window"):
        await control.tree(window="anything")
