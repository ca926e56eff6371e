"""Giving an element a text or a number, and reading it back."""

from __future__ import annotations

import math
import re
import unicodedata

from handrail import Downstream, Element, InvalidArguments
from handrail_accessibility.action_execution import (
    ActionOutcome,
    ActionRequest,
    ensure_usable,
    no_effect_error,
    unchanged_outcome,
    wait_until_true,
)
from handrail_accessibility.change_detection import describe_element
from handrail_accessibility.state_actions import choose_option
from handrail_accessibility.tree.wording import format_number

# What presses a button or goes to the next field where there is one line only.
KEY_CHARS = re.compile("[\n\r\t]")
MAX_FOCUS_CLICKS = 2
# What is typed at one of these goes to the sheet or table around it, where select-all and Delete reach every cell.
CELL_ROLES = frozenset({"cell", "spreadsheet", "table", "tree table"})


async def set_value(act: ActionRequest) -> ActionOutcome:
    """Replace its text, set its number, or select the choice; then read it back."""
    value = act.needed_value("the text, number or choice to set")
    if act.element.role in CELL_ROLES:
        raise InvalidArguments(
            f"{describe_element(act.element)} cannot be written by execute_accessible; nothing was done",
            hint="for a workbook, call write_excel on its file; in the window, click the cell with execute_gui"
            " (double_click where that opens an editor), then type with execute_gui and press enter",
        )
    if act.element.role == "combo box":
        return await choose_option(act, value)
    ensure_usable(act.element)
    if act.element.role == "terminal":
        return await _type_command(act, value)
    if act.element.role in ("slider", "spin button", "dial") and not await _has_text_value(act):
        return await _set_number(act, value)
    if "readonly" in act.element.states:
        raise Downstream(
            f"{describe_element(act.element)} can only be read; nothing was done",
            hint="find out what lets it be changed, such as a button beside it",
            details={"states": sorted(act.element.states)},
        )
    if "set_value" not in act.element.actions and "editable" not in act.element.states:
        raise InvalidArguments(
            f"{describe_element(act.element)} takes no value",
            hint="use click, toggle or select, or execute_gui to type by keys",
        )
    return await (_set_password if "password" in act.element.states else _set_text)(act, value)


async def _type_command(act: ActionRequest, value: str) -> ActionOutcome:
    """Text in a terminal is a command: it is typed there by a call that is judged as one, and never set past it."""
    await act.pointer()
    await act.gui(action="type", text=value)
    return ActionOutcome("unverified", "pointer", note="it was typed into a terminal; look at what came of it")


async def _set_text(act: ActionRequest, value: str) -> ActionOutcome:
    if await _is_text_equal(act, value):
        return unchanged_outcome(act, "what is asked for")
    before = await act.control.read_text(act.element)
    route = await _write_text(act, value)
    if (
        route == "action"
        and not await wait_until_true(lambda: _is_text_equal(act, value))
        and await act.control.read_text(act.element) in ("", before)
    ):
        # It was taken and lost: GTK 4 does so with some fields.
        route = await _type_text(act, value)
    if await wait_until_true(lambda: _is_text_equal(act, value)):
        return ActionOutcome("confirmed", route, (f"its text reads back as given, {len(value)} characters",))
    found = await act.control.read_text(act.element)
    raise Downstream(
        f"{describe_element(act.element)} did not take the value: its text reads back differently",
        hint="the field may limit or reformat what it takes; read it"
        + ", or type with execute_gui" * (route == "action"),
        details={"wanted_characters": len(value), "found": found if found is None else found[:500]},
    )


async def _set_password(act: ActionRequest, value: str) -> ActionOutcome:
    """Set a password field.

    Only the number of characters can be read, so an unchanged number proves nothing.
    """
    before = await act.control.text_length(act.element)
    route = await _write_text(act, value)

    async def holds() -> bool:
        return await act.control.text_length(act.element) == len(value)

    if not await wait_until_true(holds):
        raise no_effect_error(act, f"does not hold {len(value)} characters")
    if before == len(value):
        return ActionOutcome("unverified", route, note="a password is never read, and its length is the same as before")
    return ActionOutcome("confirmed", route, (f"it now holds {len(value)} characters",))


async def _write_text(act: ActionRequest, value: str) -> str:
    """Set the text, by keys where the program takes no text; the route."""
    act.context.checkpoint()
    if await act.control.set_text(act.element, value):
        return "action"
    return await _type_text(act, value)


async def _type_text(act: ActionRequest, value: str) -> str:
    """Type over all of its text, once it has the keyboard; the route."""
    if "multiline" not in act.element.states and (key := KEY_CHARS.search(value)) is not None:
        raise InvalidArguments(
            f"{describe_element(act.element)} is a single line, where {key[0]!r} is a key and no letter",
            hint="leave it out of the value",
        )
    await _click_until_focused(act)
    if "editable" in act.element.states or value == "":
        await act.gui(action="replace_text", element_id=act.element.id, text=value, settle=False)
    else:
        # A part of a date in Chromium holds no text: the first key begins its number anew.
        await act.gui(action="type", text=value, settle=False)
    return "pointer"


async def _click_until_focused(act: ActionRequest) -> None:
    """Click it until it has the focus; a list of proposals that is open takes the first click for itself."""

    def focused(current: Element) -> bool:
        return "focused" in current.states

    for _ in range(MAX_FOCUS_CLICKS):
        act.context.checkpoint()
        await act.gui(action="click", element_id=act.element.id, settle=False)
        if await act.until(focused):
            return
    raise no_effect_error(act, "did not take the focus, so nothing was typed")


async def _has_text_value(act: ActionRequest) -> bool:
    """Return True if the element's value is a text, such as a date, rather than a number."""
    return "editable" in act.element.states and await act.control.number(act.element) is None


async def _set_number(act: ActionRequest, value: str) -> ActionOutcome:
    try:
        wanted = float(value)
    except ValueError:
        wanted = math.nan
    if not math.isfinite(wanted):
        raise InvalidArguments(f"{describe_element(act.element)} takes a number, not {value!r}")

    async def holds() -> bool:
        found = await act.control.number(act.element)
        return found is not None and format_number(found) == format_number(wanted)

    if await holds():
        return unchanged_outcome(act, f"at {format_number(wanted)}")
    act.context.checkpoint()
    before, route = await act.control.number(act.element), "action"
    lost = await act.control.set_number(act.element, wanted) and not await wait_until_true(holds)
    lost = lost and await act.control.number(act.element) == before
    if lost and act.element.role == "spin button" and "readonly" not in act.element.states:
        # Chromium takes numbers for fields that are written in, and leaves them as they are.
        route = await _type_text(act, format_number(wanted))
    if await wait_until_true(holds):
        return ActionOutcome("confirmed", route, (f"it now stands at {format_number(wanted)}",))
    found = await act.control.number(act.element)
    raise Downstream(
        f"{describe_element(act.element)} stands at {format_number(found)} and not at {format_number(wanted)}"
        if found is not None
        else f"{describe_element(act.element)} does not say what it stands at",
        hint="it may have limits or steps; read it, or use execute_gui",
        details={"wanted": wanted, "found": found},
    )


async def _is_text_equal(act: ActionRequest, value: str) -> bool:
    text = await act.control.read_text(act.element)
    return text is not None and unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", value)
