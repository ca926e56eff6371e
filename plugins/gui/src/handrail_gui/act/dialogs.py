"""Description of a dialog that an action opened.

It is reported at once because it must be answered before anything else can happen.
"""

from __future__ import annotations

from typing import Any

from handrail import Accessibility, HandrailError, ToolContext
from handrail_gui.observe import outline

# A window with more than this is no question.
MAX_DIALOG_ELEMENTS = 60
MAX_DIALOG_CHARS = 500
STATIC_TEXT_ROLES = frozenset({"label", "heading", "paragraph", "text"})


async def describe_opened_dialog(
    context: ToolContext, accessibility: Accessibility | None, changed: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the text and buttons (with ids) of the window an action opened and made active; None if not a dialog.

    None also if the action opened no such window.
    """
    if changed.get("active_window") not in changed.get("windows_opened", ()):
        return None
    return await describe_dialog(context, accessibility, changed["active_window"])


async def describe_dialog(
    context: ToolContext, accessibility: Accessibility | None, title: str
) -> dict[str, Any] | None:
    """Return the text of the active window and its buttons with their ids; None if it is not a dialog.

    A window without enabled, labelled buttons or with too many elements is not taken for a dialog.
    """
    if accessibility is None:
        return None
    try:
        tree = await accessibility.tree(full=True, budget=MAX_DIALOG_ELEMENTS)
    # It is reported by its title, whatever else it says.
    except HandrailError:
        return None
    if tree.truncated:
        return None
    buttons = context.observations.number(
        e for e in tree.elements if e.role == "button" and e.text and "disabled" not in e.states
    )
    if not buttons:
        return None
    said = " ".join(
        e.text for e in tree.elements if e.role in STATIC_TEXT_ROLES and e.text and "editable" not in e.states
    )
    return {
        "title": title,
        "says": outline.escape_invisible(said[:MAX_DIALOG_CHARS]),
        "buttons": [{"id": button.id, "text": outline.escape_invisible(button.text)} for button in buttons],
    }
