"""Selections of an X display, such as the clipboard: reading, owning, and lending for a paste.

Jobs for `X11Connection.run`. Nothing stores a selection: its owner answers requests for it, here between jobs in the
connection's thread. Standard: ICCCM 2.0, sections 2.4 to 2.7; INCR for anything larger than a request.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from Xlib import X, Xatom, error
from Xlib.protocol import event, request
from Xlib.xobject.drawable import Window as XWindow

from handrail import Downstream
from handrail.desktop.load_timeouts import scale_timeout
from handrail_gui.platforms.x11.connection import X11Client

# Bytes of one piece of a large transfer; a request holds 262,140.
TRANSFER_PIECE_BYTES = 200_000
# Bytes of all formats together that are kept, and of one read.
MAX_CLIPBOARD_BYTES = 64 * 1024 * 1024
MAX_FORMATS = 64

# Seconds for one answer of another program, for a large format, and for all formats together.
OWNER_TIMEOUT_S = 1.0
TRANSFER_TIMEOUT_S = 10.0
ALL_FORMATS_TIMEOUT_S = 12.0
# Seconds for a program to take what it was told to paste. One that takes it later would get what is put back, so that one that has not even
# read the keys is given more.
TAKE_TIMEOUT_S = 2.0
BUSY_TIMEOUT_S = 8.0
PASTE_POLL_S = 0.5

UNANSWERED_ERROR = "the program that owns the clipboard does not answer"
OWNER_HINT = "wait for it, or write something new into it"

# Targets that are not formats of the content.
META_TARGETS = frozenset(
    {"TARGETS", "TIMESTAMP", "MULTIPLE", "SAVE_TARGETS", "DELETE", "INSERT_PROPERTY", "INSERT_SELECTION", "LENGTH"}
)
# Targets that are text, best first, with their encoding.
TEXT_TARGETS: Mapping[str, str] = {
    "UTF8_STRING": "utf-8",
    "text/plain;charset=utf-8": "utf-8",
    "text/plain": "utf-8",
    "STRING": "latin-1",
}


@dataclass(frozen=True, slots=True)
class FormatContent:
    """One format of the clipboard: the X type's name, the bits of an item (8, 16, 32) and the items."""

    type: str
    bits: int
    data: bytes | tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.data) * self.bits // 8 if not isinstance(self.data, bytes) else len(self.data)


SelectionContents = Mapping[str, FormatContent]


@dataclass(slots=True)
class _LargeTransfer:
    """A large format on its way to another program, piece by piece."""

    content: FormatContent
    type: int
    sent: int = 0
    since: float = field(default_factory=monotonic)


@dataclass(slots=True)
class X11Selection:
    """One selection: CLIPBOARD, or PRIMARY, which is whatever was selected last.

    `contents` is what we offer while we own it, None while another program does.
    """

    name: str = "CLIPBOARD"
    contents: SelectionContents | None = None
    _window: XWindow | None = None
    _requests: list[str] = field(default_factory=list[str])
    _transfers: dict[tuple[int, int], _LargeTransfer] = field(default_factory=dict[tuple[int, int], _LargeTransfer])
    _answer: Any = None
    _asked: tuple[int, int] = (0, 0)
    _stamp: int = 0
    _changed: set[int] = field(default_factory=set[int])

    def formats(self, client: X11Client) -> list[str]:
        """Return the names of the clipboard's current formats; raise `Downstream` if its owner does not answer."""
        if self._ours(client):
            return list(self.contents or ())
        found = self._convert(client, "TARGETS")
        if found is None or isinstance(found.data, bytes):
            return []
        names = [client.display.get_atom_name(number) for number in found.data[:MAX_FORMATS] if number]
        return [name for name in names if name not in META_TARGETS]

    def text(self, client: X11Client) -> str | None:
        """Return the clipboard's text, or None without any.

        Raises `Downstream` if there is text that cannot be retrieved.
        """
        offered = self.formats(client)
        for name, encoding in TEXT_TARGETS.items():
            if name in offered and (found := self.read(client, name)) and isinstance(found.data, bytes):
                return found.data.decode(encoding, "replace")
        if not TEXT_TARGETS.keys().isdisjoint(offered):
            raise Downstream("the program that owns the clipboard offers a text and does not give it")
        return None

    def read(self, client: X11Client, name: str) -> FormatContent | None:
        """Return one format, or None if unavailable; raise `Downstream` if the clipboard's owner does not answer."""
        return (self.contents or {}).get(name) if self._ours(client) else self._convert(client, name)

    def write_text(self, client: X11Client, text: str) -> None:
        """Offer a text to all programs, for as long as the connection lives."""
        self.own(client, build_text_contents(text))

    def own(self, client: X11Client, contents: SelectionContents) -> None:
        """Become the owner and offer these formats; `Downstream` when another program keeps the clipboard."""
        window = self._prepared(client)
        self._stamp = self._now(client)
        self.contents = contents
        window.set_selection_owner(client.atom(self.name), self._stamp)
        if not self._ours(client):
            raise Downstream("another program keeps the clipboard")

    def lend(self, client: X11Client, text: str, paste: Callable[[], None], *, busy: Callable[[], bool]) -> bool:
        """Offer a text, let `paste` make a program take it, and restore every previous format.

        `busy` returns True while the program has not yet read that input. Returns True if a program took the text. If
        not all formats can be retrieved, and so could not be restored, nothing is lent.
        """
        try:
            before = self.saved(client)
        except Downstream:
            return False
        self._requests.clear()
        self.write_text(client, text)
        try:
            paste()
            taken = self._taken(client, busy)
            if taken:
                self._until_quiet(client)
        finally:
            self.put_back(client, before)
        return taken

    def offered(self, client: X11Client) -> SelectionContents | None:
        """Return what we offer; None if another program owns the selection."""
        return self.contents if self._ours(client) else None

    def put_back(self, client: X11Client, before: SelectionContents | None) -> None:
        """Offer what was `saved` in the place of what there is now."""
        if before is not None:
            self.own(client, before)
            return
        self._now(client)
        self._disown(client)

    def saved(self, client: X11Client) -> SelectionContents | None:
        """Return all formats as they are; None if nothing owns the selection.

        Raises `Downstream` if one cannot be retrieved in time, or if they are too large.
        """
        if self._ours(client):
            return self.contents
        if self._owner(client) == X.NONE:
            return None
        saved: dict[str, FormatContent] = {}
        deadline = monotonic() + ALL_FORMATS_TIMEOUT_S
        for name in self.formats(client):
            content = self._convert(client, name)
            # A program may name a format that it then has not.
            if content is not None:
                saved[name] = content
            if monotonic() > deadline or sum(content.size for content in saved.values()) > MAX_CLIPBOARD_BYTES:
                raise Downstream("what is in the clipboard is too much to be put back")
        return saved

    def _taken(self, client: X11Client, busy: Callable[[], bool]) -> bool:
        """Return True if a program takes the text soon, or soon after it has read the keys that ask for it."""
        enough = scale_timeout(TAKE_TIMEOUT_S)
        deadline = monotonic() + max(BUSY_TIMEOUT_S, 2 * enough)
        behind = monotonic()
        while not client.pump(lambda: any(name in TEXT_TARGETS for name in self._requests), timeout=PASTE_POLL_S):
            now = monotonic()
            if busy():
                behind = monotonic()
            if now > min(behind + enough, deadline):
                return False
        return True

    def _until_quiet(self, client: X11Client) -> None:
        """Wait until a program that pastes has asked for all it wants and got it."""
        deadline = monotonic() + TRANSFER_TIMEOUT_S
        while monotonic() < deadline:
            asked = len(self._requests)
            client.pump(lambda before=asked: len(self._requests) > before, timeout=0.05)
            if len(self._requests) == asked and not self._transfers:
                return

    def _disown(self, client: X11Client) -> None:
        self.contents = None
        request.SetSelectionOwner(
            display=client.display.display, window=X.NONE, selection=client.atom(self.name), time=self._stamp
        )
        client.display.sync()

    def _ours(self, client: X11Client) -> bool:
        if self._window is None or self.contents is None:
            return False
        return self._owner(client) == self._window.id

    def _owner(self, client: X11Client) -> int:
        """Return the id of the window that owns the selection; 0 without an owner."""
        owner: Any = client.display.get_selection_owner(client.atom(self.name))
        return X.NONE if owner == X.NONE else owner.id

    def _prepared(self, client: X11Client) -> XWindow:
        """Return the window that receives requests and holds the answers."""
        if self._window is None:
            self._window = client.root.create_window(
                -1, -1, 1, 1, 0, X.CopyFromParent, X.InputOnly, event_mask=X.PropertyChangeMask
            )
            client.on(X.SelectionRequest, lambda told: self._requested(client, told))
            client.on(X.SelectionClear, self._cleared)
            client.on(X.SelectionNotify, self._answered)
            client.on(X.PropertyNotify, lambda told: self._property(client, told))
        return self._window

    def _now(self, client: X11Client) -> int:
        """Return the server's time, which decides ownership."""
        window = self._prepared(client)
        mark = client.atom("_HANDRAIL_TIME")
        self._stamp = 0
        window.change_property(mark, Xatom.INTEGER, 32, [], mode=X.PropModeAppend)
        client.pump(lambda: self._stamp != 0, timeout=OWNER_TIMEOUT_S)
        return self._stamp

    # Reading what another program owns

    def _convert(self, client: X11Client, name: str) -> FormatContent | None:
        window, place = self._prepared(client), client.atom("_HANDRAIL_CLIPBOARD")
        window.delete_property(place)
        # An owner that was late with another request may answer that one now: an answer repeats its request's target and time.
        self._answer, self._asked = None, (client.atom(name), self._now(client))
        window.convert_selection(client.atom(self.name), client.atom(name), place, self._asked[1])
        if not client.pump(lambda: self._answer is not None, timeout=OWNER_TIMEOUT_S):
            raise Downstream(UNANSWERED_ERROR, hint=OWNER_HINT)
        if self._answer.property == X.NONE:
            return None
        self._changed.discard(place)
        found = window.get_full_property(place, X.AnyPropertyType, sizehint=MAX_CLIPBOARD_BYTES // 4)
        if found is None:
            return None
        if found.property_type == client.atom("INCR"):
            return self._pieces(client, window, place)
        window.delete_property(place)
        return _build_content(client, found)

    def _pieces(self, client: X11Client, window: XWindow, place: int) -> FormatContent | None:
        """Read a format that arrives in pieces.

        Each piece is written after we have removed the previous one; an empty one marks the end.
        """
        data = bytearray()
        numbers: list[int] = []
        deadline = monotonic() + TRANSFER_TIMEOUT_S
        while monotonic() < deadline:
            self._changed.discard(place)
            window.delete_property(place)
            if not client.pump(lambda: place in self._changed, timeout=OWNER_TIMEOUT_S):
                raise Downstream(UNANSWERED_ERROR, hint=OWNER_HINT)
            found = window.get_full_property(place, X.AnyPropertyType, sizehint=MAX_CLIPBOARD_BYTES // 4)
            piece = _build_content(client, found) if found is not None else None
            if piece is None or not piece.data:
                window.delete_property(place)
                return FormatContent(piece.type, piece.bits, tuple(numbers) or bytes(data)) if piece else None
            if isinstance(piece.data, bytes):
                data += piece.data
            else:
                numbers += piece.data
            if len(data) + 4 * len(numbers) > MAX_CLIPBOARD_BYTES:
                raise Downstream(f"what is in the clipboard has more than {MAX_CLIPBOARD_BYTES} bytes")
        raise Downstream(UNANSWERED_ERROR, hint=OWNER_HINT)

    def _answered(self, told: event.SelectionNotify) -> None:
        if (
            self._window is not None
            and told.requestor.id == self._window.id
            and (told.target, told.time) == self._asked
        ):
            self._answer = told

    def _property(self, client: X11Client, told: event.PropertyNotify) -> None:
        if self._window is not None and told.window.id == self._window.id:
            if told.atom == client.atom("_HANDRAIL_TIME"):
                self._stamp = told.time
            elif told.state == X.PropertyNewValue:
                self._changed.add(told.atom)
        elif told.state == X.PropertyDelete and (told.window.id, told.atom) in self._transfers:
            self._next_piece(client, told.window, told.atom)

    # Answering other programs

    def _cleared(self, told: event.SelectionClear) -> None:
        if self._window is not None and told.window.id == self._window.id:
            self.contents = None

    def _requested(self, client: X11Client, told: event.SelectionRequest) -> None:
        if self._window is None or told.owner.id != self._window.id:
            return
        place = told.property or told.target
        try:
            given = self._give(client, told.requestor, told.target, place)
            answer = event.SelectionNotify(
                time=told.time,
                requestor=told.requestor,
                selection=told.selection,
                target=told.target,
                property=place if given else X.NONE,
            )
            told.requestor.send_event(answer)
            client.display.flush()
        except (error.BadWindow, error.BadAtom):
            # Whoever asked is gone.
            self._transfers.pop((told.requestor.id, place), None)

    def _give(self, client: X11Client, to: XWindow, target: int, place: int) -> bool:
        name = client.display.get_atom_name(target)
        if name == "TARGETS":
            offered = [client.atom(n) for n in ("TARGETS", "TIMESTAMP", "MULTIPLE", *(self.contents or ()))]
            to.change_property(place, Xatom.ATOM, 32, offered)
        elif name == "TIMESTAMP":
            to.change_property(place, Xatom.INTEGER, 32, [self._stamp])
        elif name == "MULTIPLE":
            self._give_several(client, to, place)
        elif (content := (self.contents or {}).get(name)) is not None:
            self._requests.append(name)
            self._give_content(client, to, place, content)
        else:
            return False
        return True

    def _give_several(self, client: X11Client, to: XWindow, place: int) -> None:
        """Supply targets given as pairs of target and property; an unavailable target's property becomes None."""
        asked = to.get_full_property(place, X.AnyPropertyType)
        pairs = [int(number) for number in asked.value] if asked is not None else []
        for index in range(0, len(pairs) - 1, 2):
            if not self._give(client, to, pairs[index], pairs[index + 1]):
                pairs[index + 1] = X.NONE
        to.change_property(place, client.atom("ATOM_PAIR"), 32, pairs)

    def _give_content(self, client: X11Client, to: XWindow, place: int, content: FormatContent) -> None:
        if content.size <= TRANSFER_PIECE_BYTES:
            to.change_property(place, client.atom(content.type), content.bits, content.data)
            return
        self._forget_stuck()
        self._transfers[to.id, place] = _LargeTransfer(content, client.atom(content.type))
        to.change_attributes(event_mask=X.PropertyChangeMask)
        to.change_property(place, client.atom("INCR"), 32, [content.size])

    def _next_piece(self, client: X11Client, to: XWindow, place: int) -> None:
        transfer = self._transfers[to.id, place]
        items = TRANSFER_PIECE_BYTES * 8 // transfer.content.bits
        piece = transfer.content.data[transfer.sent : transfer.sent + items]
        transfer.sent += items
        to.change_property(place, transfer.type, transfer.content.bits, piece)
        if not piece:
            del self._transfers[to.id, place]
        client.display.flush()

    def _forget_stuck(self) -> None:
        """Drop transfers whose taker went away in the middle."""
        limit = monotonic() - 3 * TRANSFER_TIMEOUT_S
        for key in [key for key, transfer in self._transfers.items() if transfer.since < limit]:
            del self._transfers[key]


def build_text_contents(text: str) -> SelectionContents:
    """Return the formats in which other programs request text."""
    data = text.encode("utf-8", "surrogatepass")
    utf8 = FormatContent("UTF8_STRING", 8, data)
    contents = {
        "UTF8_STRING": utf8,
        "text/plain;charset=utf-8": FormatContent("text/plain;charset=utf-8", 8, data),
        "text/plain": FormatContent("text/plain", 8, data),
        "TEXT": utf8,
    }
    # STRING is Latin-1 by definition; a program that knows no other format gets none.
    with contextlib.suppress(UnicodeEncodeError):
        contents["STRING"] = FormatContent("STRING", 8, text.encode("latin-1"))
    return contents


def _build_content(client: X11Client, found: Any) -> FormatContent:
    value: bytes | array[int] = found.value
    data = value if isinstance(value, bytes) else tuple(int(item) for item in value)
    return FormatContent(client.display.get_atom_name(found.property_type), found.format, data)
