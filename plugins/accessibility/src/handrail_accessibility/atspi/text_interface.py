"""Texts: reading, replacing, and inserting by value."""

from __future__ import annotations

from handrail_accessibility.atspi.actions import call_returns_true
from handrail_accessibility.atspi.bus import A11Y_PREFIX, AccessibilityBus, call_or_none
from handrail_accessibility.atspi.nodes import AtSpiNode, fetch_text
from handrail_accessibility.atspi.roles import AtSpiState
from handrail_accessibility.atspi.toolkits import fetch_toolkit

TEXT_INTERFACE = A11Y_PREFIX + "Text"


async def fetch_whole_text(bus: AccessibilityBus, node: AtSpiNode) -> str | None:
    """Return the whole text; None if there is none to read, and for passwords, which are never read."""
    if node.kind.word == "password" or not node.offers("Text"):
        return None
    return await call_or_none(fetch_text, bus, node)


async def fetch_text_length(bus: AccessibilityBus, node: AtSpiNode) -> int | None:
    """Return the number of characters; None without text."""
    return (
        await call_or_none(bus.get, node.app, node.path, TEXT_INTERFACE, "CharacterCount")
        if node.offers("Text")
        else None
    )


async def set_text(bus: AccessibilityBus, node: AtSpiNode, text: str) -> bool:
    """Replace the whole text if the field applies the same validation as to keyboard input; return True on success."""
    return not await _is_validation_bypassed(bus, node) and await call_returns_true(
        bus, node, "EditableText", "SetTextContents", "s", [text]
    )


async def insert_text(bus: AccessibilityBus, node: AtSpiNode, text: str) -> bool:
    """Replace the selection with the text, or insert it at the caret, and verify it; a wrong result is removed again.

    Returns False if the text is not there afterwards, so that it may be written in another way. If a paragraph
    continues on the next page, only a part can be read: if less text shows than was given, or more is gone than can be
    removed, it counts as inserted.
    """
    before = await fetch_text_length(bus, node)
    if (
        before is None
        or not (node.offers("EditableText") and node.writable)
        or await _is_validation_bypassed(bus, node)
    ):
        return False
    start, end = await _fetch_selection(bus, node)
    # After the selection, which goes only when the new text is there.
    await call_returns_true(
        bus, node, "EditableText", "InsertText", "isi", [end, text, await _compute_insert_length(bus, node, text)]
    )
    after = await fetch_text_length(bus, node)
    if after is None or after < before:
        return True
    added = after - before
    if added == 0:
        return False
    if not await _is_text_in_range(bus, node, text, end, end + added):
        if added < len(text) and start == end:
            return True
        await call_returns_true(bus, node, "EditableText", "DeleteText", "ii", [end, end + added])
        return await fetch_text_length(bus, node) != before
    if start < end:
        await call_returns_true(bus, node, "EditableText", "DeleteText", "ii", [start, end])
    await call_returns_true(bus, node, "Text", "SetCaretOffset", "i", [start + added])
    return True


async def _is_validation_bypassed(bus: AccessibilityBus, node: AtSpiNode) -> bool:
    """Return True if text set here would bypass the field's input validation."""
    return not node.has(AtSpiState.MULTI_LINE) and (await fetch_toolkit(bus, node.app)).sets_unchecked


async def _fetch_selection(bus: AccessibilityBus, node: AtSpiNode) -> tuple[int, int]:
    """Start and end of the selection, both the caret's place where nothing is selected."""
    reply = await call_or_none(bus.call, node.app, node.path, TEXT_INTERFACE, "GetSelection", "i", [0])
    if reply is not None and len(reply) == 2 and 0 <= min(reply) < max(reply):
        return min(reply), max(reply)
    caret = await call_or_none(bus.get, node.app, node.path, TEXT_INTERFACE, "CaretOffset") or 0
    return max(0, caret), max(0, caret)


async def _compute_insert_length(bus: AccessibilityBus, node: AtSpiNode, text: str) -> int:
    """Return the length `InsertText` expects: AT-SPI says bytes; Qt counts UTF-16 units and pads what is missing."""
    toolkit = await fetch_toolkit(bus, node.app)
    return len(text.encode("utf-16-le")) // 2 if toolkit.name.casefold() == "qt" else len(text.encode())


async def _is_text_in_range(bus: AccessibilityBus, node: AtSpiNode, text: str, start: int, end: int) -> bool:
    if node.kind.word == "password":
        return end - start == len(text)
    reply = await call_or_none(bus.call, node.app, node.path, TEXT_INTERFACE, "GetText", "ii", [start, end])
    return reply is not None and reply[0] == text
