"""Text into whatever has the focus: by accessibility, else by the clipboard, else by keys; read back wherever it can be read."""

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
    """How a text went in, and whether it was seen there."""

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
        """Replace the whole text of the field that has the focus; `field` is the one that it has to be.

        The focus is proved to be in an editable text field right before all is selected, and again before that is deleted or typed over.
        Raises `Downstream` where it is not.
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
        """Which ways may work, best first.

        A terminal takes keys only: its text cannot be set, and Ctrl+V is something else to a shell. Where nothing editable has the focus, keys
        are commands. A line break or tab in a single line is a key to press, not a letter.
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
        """Whether the text was taken."""
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
        """The window that gets the keys: the one that got them at first, or that which has become active in its place.

        A window manager says which is active a moment before or after the keys go there.
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
        """What reading back shows, once it shows the text or time is up. `replaces`: it has to be all of the text."""
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
        """Its text; None for what keeps none, is gone, or does not answer in time: what cannot be read is not verified."""
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
    """Whether a text has been added to what was there before, in place of some or all of it, or in the middle of the same."""
    now, text, before = _normalize_newlines(now), _normalize_newlines(text), _normalize_newlines(before)
    if now == before:
        return False
    return now.count(text) > before.count(text) or now == text or (text in now and len(now) == len(before) + len(text))


def _normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
