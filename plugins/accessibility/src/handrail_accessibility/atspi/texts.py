"""Texts: reading, replacing, and inserting by value."""

from __future__ import annotations

from handrail_accessibility.atspi.actions import accepted
from handrail_accessibility.atspi.bus import A11Y, Bus, maybe
from handrail_accessibility.atspi.nodes import Node, text_of
from handrail_accessibility.atspi.roles import State
from handrail_accessibility.atspi.toolkits import toolkit_of

TEXT = A11Y + "Text"


async def whole_text(bus: Bus, node: Node) -> str | None:
    """The whole text; None for what keeps none, and for passwords, which are never read."""
    if node.kind.word == "password" or not node.offers("Text"):
        return None
    return await maybe(text_of, bus, node)


async def text_length(bus: Bus, node: Node) -> int | None:
    """How many characters it holds."""
    return await maybe(bus.get, node.app, node.path, TEXT, "CharacterCount") if node.offers("Text") else None


async def set_text(bus: Bus, node: Node, text: str) -> bool:
    """Replace the whole text, where the field takes of it what it would take from a keyboard."""
    return not await _unchecked(bus, node) and await accepted(bus, node, "EditableText", "SetTextContents", "s", [text])


async def insert(bus: Bus, node: Node, text: str) -> bool:
    """Put the text in place of the selection, or at the caret, and read it back; what came out wrong is taken out again.

    False where it is not there, so that it may be written in another way. Of a paragraph that goes on on the next page only a part can be read:
    where less shows than was given, or more is gone than can be taken out, it was taken all the same.
    """
    before = await text_length(bus, node)
    if before is None or not (node.offers("EditableText") and node.writable) or await _unchecked(bus, node):
        return False
    start, end = await _selection(bus, node)
    # After the selection, which goes only when the new text is there.
    await accepted(bus, node, "EditableText", "InsertText", "isi", [end, text, await _units(bus, node, text)])
    after = await text_length(bus, node)
    if after is None or after < before:
        return True
    added = after - before
    if added == 0:
        return False
    if not await _reads(bus, node, text, end, end + added):
        if added < len(text) and start == end:
            return True
        await accepted(bus, node, "EditableText", "DeleteText", "ii", [end, end + added])
        return await text_length(bus, node) != before
    if start < end:
        await accepted(bus, node, "EditableText", "DeleteText", "ii", [start, end])
    await accepted(bus, node, "Text", "SetCaretOffset", "i", [start + added])
    return True


async def _unchecked(bus: Bus, node: Node) -> bool:
    """Whether a text that is set here goes past what the field lets a person write."""
    return not node.has(State.MULTI_LINE) and (await toolkit_of(bus, node.app)).sets_unchecked


async def _selection(bus: Bus, node: Node) -> tuple[int, int]:
    """Start and end of the selection, both the caret's place where nothing is selected."""
    reply = await maybe(bus.call, node.app, node.path, TEXT, "GetSelection", "i", [0])
    if reply is not None and len(reply) == 2 and 0 <= min(reply) < max(reply):
        return min(reply), max(reply)
    caret = await maybe(bus.get, node.app, node.path, TEXT, "CaretOffset") or 0
    return max(0, caret), max(0, caret)


async def _units(bus: Bus, node: Node, text: str) -> int:
    """The length that `InsertText` wants: AT-SPI says bytes; Qt counts UTF-16 units, and pads what is missing."""
    toolkit = await toolkit_of(bus, node.app)
    return len(text.encode("utf-16-le")) // 2 if toolkit.name.casefold() == "qt" else len(text.encode())


async def _reads(bus: Bus, node: Node, text: str, start: int, end: int) -> bool:
    if node.kind.word == "password":
        return end - start == len(text)
    reply = await maybe(bus.call, node.app, node.path, TEXT, "GetText", "ii", [start, end])
    return reply is not None and reply[0] == text
