"""The keyboard of an X display by XTEST: chords, and text of any script by lending it spare keys. Jobs for `X11Connection.run`.

A letter that the layout has is typed with its own key. For others a key code that the layout leaves empty is given the letter for a moment.
Programs read the new layout when they get to it, so it must stay until they have worked through the key presses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from Xlib import XK, X, error
from Xlib.ext import xtest
from Xlib.protocol import event

from handrail import Downstream
from handrail.desktop.key_chords import KeyChord
from handrail_gui.platforms.x11.connection import X11Client
from handrail_gui.platforms.x11.windows import active_window_id

# The keysym of each named key.
KEYSYM_NAMES: dict[str, str] = {
    "ctrl": "Control_L",
    "alt": "Alt_L",
    "shift": "Shift_L",
    "super": "Super_L",
    "altgr": "ISO_Level3_Shift",
    "enter": "Return",
    "tab": "Tab",
    "esc": "Escape",
    "space": "space",
    "backspace": "BackSpace",
    "delete": "Delete",
    "insert": "Insert",
    "home": "Home",
    "end": "End",
    "pageup": "Page_Up",
    "pagedown": "Page_Down",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "print": "Print",
    "pause": "Pause",
    "capslock": "Caps_Lock",
    "numlock": "Num_Lock",
    "scrolllock": "Scroll_Lock",
    "menu": "Menu",
}
CONTROL_KEYSYMS = {"\n": "Return", "\r": "Return", "\t": "Tab"}

# Keysyms from here on to 0xFFFF are keys, not characters.
FIRST_FUNCTION_KEYSYM = 0xFE00

# Keysyms of a lent key: without and with Shift, the same in two groups.
KEYSYM_COLUMNS = 4
LETTERS_PER_KEY = 2

# How long programs that cannot be asked may need to read a changed layout.
UNCERTAIN_WAIT_S = 0.1
PING_TIMEOUT_S = 0.5
# And one that can be asked, before a letter that it was typed loses its key: it would read the key as another, or as none.
READ_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class KeyStroke:
    """A key code, and whether Shift goes with it."""

    code: int
    shift: bool = False


@dataclass(slots=True)
class XTestKeyboard:
    """The keys that we hold down, and the spare keys that we have lent to letters."""

    held: list[int] = field(default_factory=list[int])
    _lent: dict[int, KeyStroke] = field(default_factory=dict[int, KeyStroke])
    _caps_off: bool = False
    _pinged: int = 0
    _ponged: set[int] = field(default_factory=set[int])
    _listening: bool = False

    def press_chord(self, client: X11Client, chord: KeyChord) -> None:
        """Press the keys in order and release them in reverse."""
        keysyms = [_keysym_of_key(key) for key in chord.keys]
        strokes = self._strokes_for(client, keysyms)
        try:
            for stroke in strokes:
                self._press(client, stroke)
        finally:
            self.release_all(client)

    def type_text(self, client: X11Client, piece: str) -> None:
        """Type one of the `pieces` of a text; the keys it needed lent stay so, and Caps Lock off, until `give_back`."""
        if client.root.query_pointer().mask & X.LockMask:
            self._tap_caps(client)
        for stroke in self._strokes_for(client, [_keysym_of_letter(letter) for letter in piece]):
            self._press(client, stroke)
            self.release_all(client, sync=False)
        client.display.sync()

    def pieces(self, client: X11Client, text: str, *, longest: int = 40) -> list[str]:
        """Split the text into pieces, none of which needs more characters than the spare keys can hold."""
        strokes = _layout_strokes(client)
        room = len(_find_spare_codes(client)) * LETTERS_PER_KEY + len(self._lent)
        pieces: list[str] = []
        piece, foreign = "", set[int]()
        for letter in text:
            new: set[int] = set() if (keysym := _keysym_of_letter(letter)) in strokes else {keysym}
            if piece and (len(foreign | new) > room or len(piece) >= longest):
                pieces.append(piece)
                piece, foreign = "", set[int]()
            piece, foreign = piece + letter, foreign | new
        return [*pieces, piece] if piece else pieces

    def give_back(self, client: X11Client) -> None:
        """Take the letters off the spare keys again, once the program has read what was typed with them; put Caps Lock back."""
        if self._caps_off:
            self._tap_caps(client)
        if not self._lent:
            return
        self.worked_through(client, within=READ_TIMEOUT_S)
        for code in {stroke.code for stroke in self._lent.values()}:
            client.display.change_keyboard_mapping(code, [(X.NoSymbol,) * KEYSYM_COLUMNS])
        self._lent.clear()
        client.display.sync()

    def release_all(self, client: X11Client, *, sync: bool = True) -> None:
        """Release every key that we hold."""
        while self.held:
            xtest.fake_input(client.display, X.KeyRelease, self.held.pop())
        if sync:
            client.display.sync()

    def worked_through(self, client: X11Client, *, within: float = PING_TIMEOUT_S) -> bool:
        """Wait until the active window's program has read all input so far.

        Returns False if it cannot be asked or does not answer. It is asked by _NET_WM_PING, which reaches it after the
        input.
        """
        number = self._asked(client)
        if number is None:
            client.pump(lambda: False, timeout=UNCERTAIN_WAIT_S)
        return number is not None and self._answers(client, number, within)

    def falls_behind(self, client: X11Client) -> bool:
        """Return True if the active window's program can be asked and has not read all input."""
        number = self._asked(client)
        return number is not None and not self._answers(client, number, PING_TIMEOUT_S)

    def _answers(self, client: X11Client, number: int, within: float) -> bool:
        self._listen(client)
        self._pinged = sent = (self._pinged % 0x7FFF0000) + 1
        values = [client.atom("_NET_WM_PING"), sent, number, 0, 0]
        window = client.window(number)
        ping = event.ClientMessage(window=window, client_type=client.atom("WM_PROTOCOLS"), data=(32, values))
        window.send_event(ping)
        answered = client.pump(lambda: sent in self._ponged, timeout=within)
        self._ponged.clear()
        return answered

    def _asked(self, client: X11Client) -> int | None:
        """Return the id of the active window, or None if its program cannot be asked."""
        number = active_window_id(client)
        try:
            asked = number and client.atom("_NET_WM_PING") in client.numbers(client.window(number), "WM_PROTOCOLS")
        except error.BadWindow:
            return None
        return number if asked else None

    def _listen(self, client: X11Client) -> None:
        """Listen for answers, which go to the root window, where everyone who selects its events receives them."""
        if not self._listening:
            client.on(X.ClientMessage, lambda told: self._pong(client, told))
            client.root.change_attributes(event_mask=X.SubstructureNotifyMask)
            self._listening = True

    def _pong(self, client: X11Client, told: event.ClientMessage) -> None:
        if told.client_type == client.atom("WM_PROTOCOLS") and told.data[1][0] == client.atom("_NET_WM_PING"):
            self._ponged.add(int(told.data[1][1]))

    def _strokes_for(self, client: X11Client, keysyms: Sequence[int]) -> list[KeyStroke]:
        """Return the keystroke for each keysym, assigning spare keys to those the layout lacks."""
        strokes = _layout_strokes(client)
        foreign = sorted({keysym for keysym in keysyms if keysym not in strokes})
        if any(keysym not in self._lent for keysym in foreign):
            self._lend(client, foreign)
        return [self._lent[keysym] if keysym in foreign else strokes[keysym] for keysym in keysyms]

    def _lend(self, client: X11Client, keysyms: Sequence[int]) -> None:
        """Assign spare keys to keysyms without one; if there are too few, all earlier assignments are undone first.

        Each key is changed separately: writing back the keys in between would lose the third level of a layout.
        """
        new = [keysym for keysym in keysyms if keysym not in self._lent]
        if len(_find_spare_codes(client)) * LETTERS_PER_KEY < len(new):
            self.give_back(client)
            new = list(keysyms)
        spare = _find_spare_codes(client)
        if len(spare) * LETTERS_PER_KEY < len(new):
            raise Downstream(
                f"{len(new)} letters need keys of their own, and the keyboard has {len(spare)} spare ones",
                hint="put the text into the clipboard and paste it",
            )
        for index, code in zip(range(0, len(new), LETTERS_PER_KEY), spare, strict=False):
            plain, shifted = new[index], new[min(index + LETTERS_PER_KEY, len(new)) - 1]
            client.display.change_keyboard_mapping(code, [(plain, shifted) * (KEYSYM_COLUMNS // 2)])
            self._lent[plain] = KeyStroke(code)
            self._lent.setdefault(shifted, KeyStroke(code, shift=True))
        client.display.sync()

    def _tap_caps(self, client: X11Client) -> None:
        self._caps_off = not self._caps_off
        self._press(client, KeyStroke(client.display.keysym_to_keycode(XK.XK_Caps_Lock)))
        self.release_all(client)

    def _press(self, client: X11Client, stroke: KeyStroke) -> None:
        if stroke.shift:
            self._hold(client, client.display.keysym_to_keycode(XK.XK_Shift_L))
        self._hold(client, stroke.code)

    def _hold(self, client: X11Client, code: int) -> None:
        self.held.append(code)
        xtest.fake_input(client.display, X.KeyPress, code)


def _iterate_keycodes(client: X11Client) -> Iterator[tuple[int, Sequence[int]]]:
    first, last = client.display.display.info.min_keycode, client.display.display.info.max_keycode
    return zip(range(first, last + 1), client.display.get_keyboard_mapping(first, last - first + 1), strict=True)


def _find_spare_codes(client: X11Client) -> list[int]:
    """Key codes that mean nothing; the lowest, which some programs take for mouse buttons, are left alone."""
    return [code for code, keysyms in _iterate_keycodes(client) if code > 8 and not any(keysyms)]


def _layout_strokes(client: X11Client) -> dict[int, KeyStroke]:
    """Return what the layout types unmodified; omits characters while another keyboard group is active."""
    group = client.root.query_pointer().mask >> 13 & 3
    found: dict[int, KeyStroke] = {}
    for code, keysyms in _iterate_keycodes(client):
        for level, keysym in enumerate(keysyms[:2]):
            if keysym and (FIRST_FUNCTION_KEYSYM <= keysym <= 0xFFFF or not group):
                found.setdefault(keysym, KeyStroke(code, shift=level == 1))
    return found


def _keysym_of_key(key: str) -> int:
    """Return the keysym for a key name as spelled in `key_chords`."""
    return _keysym_of_letter(key) if len(key) == 1 else XK.string_to_keysym(KEYSYM_NAMES.get(key, key.upper()))


def _keysym_of_letter(letter: str) -> int:
    """Return the keysym of a character: named for controls, unchanged for Latin-1, else its code point."""
    if letter in CONTROL_KEYSYMS:
        return XK.string_to_keysym(CONTROL_KEYSYMS[letter])
    code = ord(letter)
    return code if 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF else 0x01000000 + code
