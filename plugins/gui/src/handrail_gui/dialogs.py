"""A dialog that an action opened, told at once: it has to be answered before anything else goes on."""

from __future__ import annotations

from typing import Any

from handrail import Accessibility, HandrailError, ToolContext
from handrail_gui import outline

# A window with more than this is no question.
MOST_ELEMENTS = 60
MOST_SAID = 500
STATIC = frozenset({"label", "heading", "paragraph", "text"})


async def opened(
    context: ToolContext, accessibility: Accessibility | None, changed: dict[str, Any]
) -> dict[str, Any] | None:
    """What a window that was opened by an action and is active now says, and its buttons with their ids; None for what is no dialog."""
    if changed.get("active_window") not in changed.get("windows_opened", ()):
        return None
    return await told(context, accessibility, changed["active_window"])


async def told(context: ToolContext, accessibility: Accessibility | None, title: str) -> dict[str, Any] | None:
    """What the active window says, and its buttons with their ids; None for what is no dialog."""
    if accessibility is None:
        return None
    try:
        tree = await accessibility.tree(full=True, budget=MOST_ELEMENTS)
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
    said = " ".join(e.text for e in tree.elements if e.role in STATIC and e.text and "editable" not in e.states)
    return {
        "title": title,
        "says": outline.seen(said[:MOST_SAID]),
        "buttons": [{"id": button.id, "text": outline.seen(button.text)} for button in buttons],
    }
