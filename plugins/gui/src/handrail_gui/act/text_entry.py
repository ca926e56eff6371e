"""Text entry into the focused element: by accessibility, else the clipboard, else keys; read back wherever possible."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from time import monotonic
from typing import Literal

import anyio

from handrail import Accessibility, Downstream, Element, HandrailError, Screen, ToolContext, Window
from handrail.desktop.key_chords import KeyChord
from handrail.desktop.load_timeouts import scale_timeout
from handrail_gui.act.text_fields import require_focused_field
from handrail_gui.observe import outline
from handrail_gui.platforms.input_driver import InputDriver

EntryEffect = Literal["confirmed", "partial", "none", "unverified"]
EntryRoute = Literal["accessibility", "clipboard", "keys"]

_COMMAND_KEY = "super" if sys.platform == "darwin" else "ctrl"
PASTE_CHORD = KeyChord((_COMMAND_KEY, "v"))
SELECT_ALL_CHORD = KeyChord((_COMMAND_KEY, "a"))
DELETE_CHORD = KeyChord(("delete",))
# Seconds that a program is given to show what it was given, and between two looks.
SHOW_TIMEOUT_S = 2.0
TEXT_POLL_S = 0.02
# And to say anything at all.
READ_TIMEOUT_S = 10.0
# Text up to this length goes by keys where nothing is known of the program.
MAX_KEYED_CHARS = 200
# Longer ones may not end on the page that a paragraph of a document begins on.
MAX_PARAGRAPH_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class TextEntryResult:
    """Result of a text entry: the route that was used and whether the text was verified."""

    route: EntryRoute
    effect: EntryEffect


@dataclass(frozen=True, slots=True)
class TextWriter:
    """Writes into the focus of one desktop."""

    context: ToolContext
    hands: InputDriver
    screen: Screen
    accessibility: Accessibility | None
    # Whether what has the focus is a terminal.
    terminal: bool

    async def write(self, text: str) -> TextEntryResult:
        """Write by the first route that works; nothing is written twice."""
        focus = await self._focused()
        return await self._put(focus, await self._read(focus), text)

    async def replace(self, text: str, field: Element | None = None) -> TextEntryResult:
        """Replace the whole text of the focused field, which must be `field` if given.

        Verifies that an editable text field has the focus right before selecting all, and again before deleting or
        typing over the selection. Raises `Downstream` if not.
        """
        focus = require_focused_field(await self._focused(), field)
        before = await self._read(focus)
        await self.hands.chord(SELECT_ALL_CHORD)
        await self.hands.worked_through()
        focus = require_focused_field(await self._focused(), focus)
        if text:
            return await self._put(focus, before, text, replaces=True)
        await self.hands.chord(DELETE_CHORD)
        await self.hands.worked_through()
        return TextEntryResult("keys", await self._effect(focus, before, text, replaces=True))

    async def _put(
        self, focus: Element | None, before: str | None, text: str, *, replaces: bool = False
    ) -> TextEntryResult:
        """Write into what has the focus, which held `before`."""
        written = TextEntryResult("keys", "none")
        for route in await self._routes(focus, text):
            self.context.checkpoint()
            went = await self._send(route, focus, text)
            if went:
                written = TextEntryResult(route, await self._effect(focus, before, text, replaces=replaces))
                # What the tree accepted and does not show was not written; by any other route it may have been.
                if route != "accessibility" or written.effect != "none":
                    return written
        return written

    async def _routes(self, focus: Element | None, text: str) -> list[EntryRoute]:
        """Return the routes that may work, best first.

        A terminal takes only keys: its text cannot be set, and Ctrl+V means something else to a shell. If nothing
        editable has the focus, keys are commands. In a single-line field, a line break or tab is a key to press, not a
        character.
        """
        if self.terminal or (focus is not None and focus.role == "terminal"):
            return ["keys"]
        if focus is None:
            return ["keys", "clipboard"] if text.isascii() and len(text) <= MAX_KEYED_CHARS else ["clipboard", "keys"]
        if "editable" not in focus.states:
            return ["keys"]
        if "multiline" not in focus.states and any(letter in text for letter in "\n\r\t"):
            return ["keys"]
        # It may go on on the next page, where it cannot be read back, nor be taken out again.
        if focus.role == "paragraph" and len(text) > MAX_PARAGRAPH_CHARS:
            return ["clipboard", "keys"]
        return ["accessibility", "clipboard", "keys"]

    async def _send(self, route: EntryRoute, focus: Element | None, text: str) -> bool:
        """Send the text by a route; return True if it was accepted."""
        if route == "accessibility":
            return focus is not None and await self._insert(focus, text)
        if route == "clipboard":
            return await self.hands.paste(text, PASTE_CHORD)
        await self._type(text)
        await self.hands.worked_through()
        await self.hands.release_all()
        return True

    async def _type(self, text: str) -> None:
        """Type it piece by piece, as long as the same window gets the keys."""
        began, typed = await self._active(), 0
        for piece in await self.hands.pieces(text):
            self.context.checkpoint()
            now = await self._getting(began)
            if (began and began.id) != (now and now.id):
                raise Downstream(
                    f"{outline.format_window_title(now) if now else 'no window'!r} took the keyboard after {typed} of {len(text)} characters;"
                    " the rest was not typed",
                    hint="observe, answer or close it, give the focus back by window_focus, and type the rest",
                    details={"typed": typed},
                )
            await self.hands.type_piece(piece)
            typed += len(piece)

    async def _getting(self, began: Window | None) -> Window | None:
        """Return the window that receives the keys: the initial one, or the window that has become active instead.

        A window manager reports the active window a moment before or after it receives keys. Returns None if they still
        disagree after the timeout.
        """
        deadline = monotonic() + scale_timeout(SHOW_TIMEOUT_S)
        while True:
            now = await self._active()
            if began is None or now is None or now.id != began.id or await self.hands.gets_keys(now.id):
                return now
            if monotonic() > deadline:
                return None
            await anyio.sleep(TEXT_POLL_S)

    async def _active(self) -> Window | None:
        return next((window for window in await self.screen.windows() if window.active), None)

    async def _insert(self, focus: Element, text: str) -> bool:
        try:
            return self.accessibility is not None and await self.accessibility.insert_text(focus, text)
        # A program that refuses or does not answer is written to another way.
        except HandrailError:
            return False

    async def _effect(self, focus: Element | None, before: str | None, text: str, *, replaces: bool) -> EntryEffect:
        """Return what reading back shows once the text appears or time is up. `replaces`: it must be the whole text."""
        if focus is None or before is None or "password" in focus.states:
            return "unverified"
        deadline = monotonic() + scale_timeout(SHOW_TIMEOUT_S)
        while True:
            now = await self._read(focus)
            if now is None:
                return "unverified"
            if _normalize_newlines(now) == _normalize_newlines(text) if replaces else _is_text_added(now, text, before):
                return "confirmed"
            if monotonic() > deadline:
                # The same text written over itself leaves no trace.
                return (
                    "partial"
                    if now != before
                    else "unverified"
                    if _normalize_newlines(text) in _normalize_newlines(now)
                    else "none"
                )
            await anyio.sleep(TEXT_POLL_S)

    async def _focused(self) -> Element | None:
        try:
            return await self.accessibility.focused() if self.accessibility is not None else None
        # Without a tree there are still clipboard and keys.
        except HandrailError:
            return None

    async def _read(self, element: Element | None) -> str | None:
        """Return the element's text; None if it has none, is gone, or does not answer in time.

        Text that cannot be read is not verified.
        """
        if self.accessibility is None or element is None:
            return None
        deadline = monotonic() + READ_TIMEOUT_S
        while True:
            try:
                return await self.accessibility.read_text(element)
            except Downstream:
                if monotonic() > deadline:
                    return None
                await anyio.sleep(TEXT_POLL_S)
            except HandrailError:
                return None


def _is_text_added(now: str, text: str, before: str) -> bool:
    """Return True if a text was added to the earlier one, replacing some or all of it or inserted in the middle."""
    now, text, before = _normalize_newlines(now), _normalize_newlines(text), _normalize_newlines(before)
    if now == before:
        return False
    return now.count(text) > before.count(text) or now == text or (text in now and len(now) == len(before) + len(text))


def _normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
