from __future__ import annotations

import signal
from typing import Any

import pytest

from handrail import Session
from handrail_accessibility.tree.protocol import AccessibilityController

from .conftest import Launch, Use
from .published import BUTTON, EDITABLE, ENTRY, FIELD, PASSWORD, SENSITIVE, SHOWING, USABLE, Published, Thing

pytestmark = pytest.mark.anyio

PRESSABLE = ("Accessible", "Component", "Action")


async def test_keys_pressed_one_by_one_give_the_answer_on_the_display(launch: Launch, use: Use) -> None:
    await launch("galculator", title="galculator")
    # The display shows "8" too, when the second one is pressed.
    for key in ("8", "8", "AC", "1", "2", ".", "5", "*", "8", "="):
        pressed = await use(action="click", element_name=key)
        assert pressed["effect"] == "confirmed", pressed
        assert pressed["route"] == "action"
    display = await use(action="read", control_type="text")
    assert display["text"] == "100"


async def test_what_changed_is_the_evidence(launch: Launch, use: Use) -> None:
    await launch("galculator", title="galculator")
    pressed = await use(action="click", element_name="7")
    assert pressed["evidence"] == ["unnamed text went from '0' to '7'"]


async def test_an_item_of_a_closed_menu_is_used_by_name(launch: Launch, use: Use) -> None:
    await launch("galculator", title="galculator")
    chosen = await use(action="toggle", element_name="View > Scientific Mode", value="on")
    assert chosen["effect"] == "confirmed", chosen
    assert "checked" in chosen["states"]
    again = await use(action="toggle", element_name="View > Scientific Mode", value="on")
    assert again["effect"] == "none"


async def test_a_dialog_that_an_action_opened_can_be_read_and_answered(
    session: Session, control: AccessibilityController, launch: Launch, use: Use
) -> None:
    """Asked over the bus, GTK serves no further call until its dialog is closed."""
    await launch("mousepad", title="Mousepad")
    opened = await use(action="click", element_name="File > Save As...")
    assert opened["evidence"] == ["window 'Save As' opened"], opened
    seen = await session.call("get_ui_context", {"window": "Save As", "query": "Name:"})
    assert seen["elements"][0]["type"] == "text", seen
    closed = await use(action="click", element_name="Cancel", window="Save As")
    assert closed["evidence"] == ["window 'Save As' closed"], closed


@pytest.mark.parametrize("action", ["set_value", "type"])
async def test_a_text_in_many_scripts_reads_back_as_it_was_given(launch: Launch, use: Use, action: str) -> None:
    await launch("mousepad", title="Mousepad")
    text = "Ergebnis: 100 — 漢字 ✓ 😀\nزبان é é"
    written = await use(action=action, control_type="text", value=text)
    assert written["effect"] == "confirmed", written
    assert (await use(action="read", control_type="text"))["text"] == text
    again = await use(action=action, control_type="text", value=text)
    assert again["effect"] == "none"


async def test_a_field_that_takes_something_else_is_an_error(use: Use, published: Published) -> None:
    published.show("/name", Thing(ENTRY, "Name", states=USABLE | {EDITABLE}, interfaces=FIELD, taken=str.upper))
    result = await use(action="set_value", element_name="Name", value="ada", window="Published")
    assert result["error"]["code"] == "downstream_error"
    assert result["error"]["details"]["found"] == "ADA"


async def test_a_password_is_set_without_being_told(use: Use, published: Published) -> None:
    published.show("/secret", Thing(PASSWORD, "Password", states=USABLE | {EDITABLE}, interfaces=FIELD))
    result = await use(action="set_value", element_name="Password", value="hunter2", window="Published")
    assert result["effect"] == "confirmed", result
    assert "hunter2" not in str(result)
    assert published.things["/secret"].text == "hunter2"
    other = await use(action="set_value", element_name="Password", value="hunter3", window="Published")
    assert other["effect"] == "unverified", other
    assert published.things["/secret"].text == "hunter3"


async def test_an_action_that_changes_nothing_is_no_success_claimed(use: Use, published: Published) -> None:
    published.show("/button", Thing(BUTTON, "Nothing", interfaces=PRESSABLE))
    result = await use(action="click", element_name="Nothing", window="Published")
    assert result["status"] == "success"
    assert result["effect"] == "unverified"
    assert "evidence" not in result


async def test_a_disabled_element_is_named_as_such(use: Use, published: Published) -> None:
    pressed: list[str] = []
    button = Thing(BUTTON, "Save", states=USABLE - {SENSITIVE}, interfaces=PRESSABLE)
    button.pressed = lambda: pressed.append("Save")
    published.show("/save", button)
    result = await use(action="click", element_name="Save", window="Published")
    assert result["status"] == "error"
    assert "disabled" in result["error"]["message"]
    assert pressed == []


async def test_an_element_that_has_been_hidden_is_named_as_such(
    session: Session, use: Use, published: Published
) -> None:
    published.show("/save", Thing(BUTTON, "Save", interfaces=PRESSABLE))
    seen = await session.call("get_ui_context", {"window": "Published"})
    published.show("/save", Thing(BUTTON, "Save", states=USABLE - {SHOWING}, interfaces=PRESSABLE))
    result = await use(action="click", element_id=seen["elements"][0]["id"])
    assert "hidden" in result["error"]["message"]
    assert ("/save", "DoAction") not in published.asked


async def test_a_program_that_hangs_since_is_not_said_to_have_closed(use: Use, published: Published) -> None:
    button = Thing(BUTTON, "Go", interfaces=PRESSABLE)
    button.pressed = published.hang
    published.show("/go", button)
    result = await use(action="click", element_name="Go", window="Published")
    assert result["effect"] == "unverified", result
    assert "does not answer" in result["note"]


async def test_another_program_that_hangs_meanwhile_is_not_said_to_have_closed(
    launch: Launch, use: Use, published: Published
) -> None:
    hung = await launch("mousepad", title="Mousepad")
    button = Thing(BUTTON, "Go", interfaces=PRESSABLE)
    button.pressed = lambda: hung.send_signal(signal.SIGSTOP)
    published.show("/go", button)
    result = await use(action="click", element_name="Go", window="Published")
    hung.send_signal(signal.SIGCONT)
    assert result["effect"] == "unverified", result


async def element(session: Session, **wanted: Any) -> dict[str, Any]:
    seen = await session.call("get_ui_context", {"window": "gtk3-widget-factory"})
    return next(e for e in seen["elements"] if all(e[key] == value for key, value in wanted.items()))


async def test_a_box_is_ticked_once_and_flipped_when_nothing_is_said(
    session: Session, launch: Launch, use: Use
) -> None:
    await launch("gtk3-widget-factory", title="gtk3-widget-factory")
    box = (await element(session, type="check box", states=["checked"]))["id"]
    assert (await use(action="toggle", element_id=box, value="on"))["effect"] == "none"
    off = await use(action="toggle", element_id=box)
    assert (off["effect"], off["states"]) == ("confirmed", [])
    on = await use(action="toggle", element_id=box, value="on")
    assert (on["effect"], on["states"]) == ("confirmed", ["checked"])


async def test_a_choice_of_a_combo_box_is_selected_by_name(session: Session, launch: Launch, use: Use) -> None:
    await launch("gtk3-widget-factory", title="gtk3-widget-factory")
    box = (await element(session, type="combo box", name="Left"))["id"]
    chosen = await use(action="select", element_id=box, value="Right")
    assert chosen["effect"] == "confirmed", chosen
    assert (await use(action="select", element_id=box, value="right"))["effect"] == "none"
    missing = await use(action="select", element_id=box, value="Nowhere")
    assert missing["error"]["details"]["choices"] == ["Left", "Middle", "Right"]


async def test_a_combo_box_opens_and_closes_and_stays_so(session: Session, launch: Launch, use: Use) -> None:
    await launch("gtk3-widget-factory", title="gtk3-widget-factory")
    box = (await element(session, type="combo box", name="Middle"))["id"]
    effects = [(await use(action=a, element_id=box))["effect"] for a in ("expand", "expand", "collapse", "collapse")]
    assert effects == ["confirmed", "none", "confirmed", "none"]


async def test_a_number_is_set_within_its_limits(session: Session, launch: Launch, use: Use) -> None:
    await launch("gtk3-widget-factory", title="gtk3-widget-factory")
    spin = (await element(session, type="spin button", value="50"))["id"]
    assert (await use(action="set_value", element_id=spin, value="77"))["effect"] == "confirmed"
    beyond = await use(action="set_value", element_id=spin, value="7777")
    assert beyond["error"]["details"] == {"wanted": 7777.0, "found": 77.0}


async def test_what_has_no_action_of_its_own_is_clicked(session: Session, launch: Launch, use: Use) -> None:
    await launch("gtk3-widget-factory", title="gtk3-widget-factory")
    tab = (await element(session, type="tab", name="page 2"))["id"]
    clicked = await use(action="click", element_id=tab)
    assert (clicked["effect"], clicked["route"]) == ("confirmed", "pointer"), clicked
    assert "selected" in clicked["states"]


async def test_a_row_and_a_tab_are_selected(session: Session, launch: Launch, use: Use) -> None:
    await launch("gtk3-widget-factory", title="gtk3-widget-factory")
    for wanted in ({"type": "cell", "name": "Otto"}, {"type": "tab", "name": "page 3"}):
        id = (await element(session, **wanted))["id"]
        assert "selected" in (await use(action="select", element_id=id))["states"]
        assert (await use(action="select", element_id=id))["effect"] == "none"


async def test_a_field_is_found_by_its_label_and_given_the_focus(launch: Launch, use: Use) -> None:
    await launch("mousepad", title="Mousepad")
    await use(action="click", element_name="Search > Find and Replace...")
    focused = await use(action="focus", element_name="Replace with", control_type="text", window="Find and Replace")
    assert "focused" in focused["states"], focused


@pytest.mark.parametrize("value", ["a\0b", "a\ud800b"])
async def test_what_no_program_can_be_sent_is_refused(use: Use, published: Published, value: str) -> None:
    published.show("/name", Thing(ENTRY, "Name", states=USABLE | {EDITABLE}, interfaces=FIELD))
    result = await use(action="set_value", element_name="Name", value=value, window="Published")
    assert result["error"]["code"] == "invalid_arguments"
