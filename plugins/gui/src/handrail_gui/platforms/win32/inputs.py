"""Mouse and keyboard of Windows by SendInput.

Source: learn.microsoft.com on SendInput, MOUSEINPUT, KEYBDINPUT and virtual-key codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from ctypes import byref, c_size_t, sizeof
from ctypes.wintypes import POINT
from dataclasses import dataclass, field

from handrail import Downstream, InvalidArguments, Rect
from handrail.desktop.key_chords import MODIFIER_KEYS, KeyChord
from handrail_gui.platforms.win32.api import (
    InputRecord,
    InputUnion,
    KeyInput,
    LastInputInfo,
    MouseInput,
    kernel32,
    user32,
)
from handrail_gui.platforms.win32.windows import get_foreground_window

INPUT_MOUSE, INPUT_KEYBOARD = 0, 1
MOUSE_MOVE, MOUSE_ABSOLUTE, MOUSE_VIRTUAL_DESK = 0x1, 0x8000, 0x4000
MOUSE_WHEEL, MOUSE_HORIZONTAL_WHEEL = 0x800, 0x1000
WHEEL_DELTA = 120
EXTENDED_KEY, KEY_UP, UNICODE_KEY = 0x1, 0x2, 0x4
# Each button's flags for down and up.
BUTTON_FLAGS = {"left": (0x2, 0x4), "right": (0x8, 0x10), "middle": (0x20, 0x40)}
# How far a turn goes, and which wheel it is. A positive one turns away from the person, or to the right.
WHEEL_TURNS = {
    "up": (MOUSE_WHEEL, WHEEL_DELTA),
    "down": (MOUSE_WHEEL, -WHEEL_DELTA),
    "right": (MOUSE_HORIZONTAL_WHEEL, WHEEL_DELTA),
    "left": (MOUSE_HORIZONTAL_WHEEL, -WHEEL_DELTA),
}
SM_SWAPBUTTON, SM_XVIRTUALSCREEN = 23, 76
DESKTOP_READOBJECTS = 0x1
WM_NULL, SMTO_ABORTIFHUNG = 0, 0x2
ANSWER_MS = 500
# Our own input may be counted a little after it was sent.
OWN_INPUT_MS = 40

# Virtual-key codes of the named keys.
VIRTUAL_KEYS: dict[str, int] = {
    "ctrl": 0xA2,
    "alt": 0xA4,
    "shift": 0xA0,
    "super": 0x5B,
    "altgr": 0xA5,
    "enter": 0x0D,
    "tab": 0x09,
    "esc": 0x1B,
    "space": 0x20,
    "backspace": 0x08,
    "delete": 0x2E,
    "insert": 0x2D,
    "home": 0x24,
    "end": 0x23,
    "pageup": 0x21,
    "pagedown": 0x22,
    "up": 0x26,
    "down": 0x28,
    "left": 0x25,
    "right": 0x27,
    "print": 0x2C,
    "pause": 0x13,
    "capslock": 0x14,
    "numlock": 0x90,
    "scrolllock": 0x91,
    "menu": 0x5D,
    **{f"f{number}": 0x6F + number for number in range(1, 25)},
}
# Those that stand twice on a keyboard; without the flag they are the ones of the number pad.
EXTENDED_KEYS = frozenset(
    VIRTUAL_KEYS[name]
    for name in (
        *("super", "altgr", "delete", "insert", "home", "end", "pageup", "pagedown", "up", "down", "left", "right"),
        *("print", "numlock", "menu"),
    )
)
SHIFT_STATES = ((1, "shift"), (2, "ctrl"), (4, "alt"))
TYPED_AS_KEYS = {"\n": "enter", "\r": "enter", "\t": "tab"}


@dataclass(slots=True)
class Win32Input:
    """`NativeInput` on Windows; `held` are the keys that we hold down."""

    held: list[int] = field(default_factory=list[int])
    # The system's time of the last input that was ours, or that was there before us (milliseconds, wrapping).
    _ours: int = field(default_factory=lambda: last_input_time())

    def pointer(self) -> tuple[int, int]:
        """Return the position of the pointer."""
        found = POINT()
        if not user32.GetCursorPos(byref(found)):
            raise Downstream("Windows does not tell where the pointer is", hint="unlock the screen")
        return found.x, found.y

    def move(self, x: int, y: int) -> None:
        """Put the pointer there."""
        nx, ny = normalize_point(x, y, virtual_screen_rect())
        self._send([build_mouse_input(MOUSE_MOVE | MOUSE_ABSOLUTE | MOUSE_VIRTUAL_DESK, dx=nx, dy=ny)])

    def button(self, button: str, *, down: bool, nth: int = 1) -> None:
        """Press a button or let it go, as it is for the person: where they are swapped, the other one. Windows counts the clicks itself."""
        if user32.GetSystemMetrics(SM_SWAPBUTTON):
            button = {"left": "right", "right": "left"}.get(button, button)
        self._send([build_mouse_input(BUTTON_FLAGS[button][0 if down else 1])])

    def wheel(self, direction: str) -> None:
        """Turn the wheel by one notch."""
        flags, turn = WHEEL_TURNS[direction]
        self._send([build_mouse_input(flags, data=turn)])

    def chord(self, chord: KeyChord) -> None:
        """Press keys together and release them."""
        codes = list(dict.fromkeys(code for key in chord.keys for code in self._codes(key, chord)))
        try:
            for code in codes:
                self.held.append(code)
                self._send([build_key_input(code)])
        finally:
            self.release_keys()

    def type_text(self, text: str) -> None:
        """Type a short text of any script by its UTF-16 code units, whatever the keyboard layout.

        No other input can come in between.
        """
        self._send([stroke for letter in text for stroke in build_character_inputs(letter)])

    def release_keys(self) -> None:
        """Release every held key, the last one first. Never fails, because nothing else could be done."""
        while self.held:
            with suppress(Downstream):
                self._send([build_key_input(self.held.pop(), up=True)])

    def check_open(self) -> None:
        """Raise `Downstream` while Windows shows its own desktop, as for a password: it takes no program input."""
        desktop = user32.OpenInputDesktop(0, False, DESKTOP_READOBJECTS)
        if not desktop:
            raise Downstream(
                "Windows shows a screen of its own, which takes no input of programs",
                hint="a person has to unlock the screen, or answer what Windows asks",
            )
        user32.CloseDesktop(desktop)

    def person(self) -> float | None:
        """Return the seconds since input that was not ours; None without any since we began."""
        last = last_input_time()
        if elapsed_ms(self._ours, last) <= OWN_INPUT_MS:
            return None
        return elapsed_ms(last, kernel32.GetTickCount()) / 1000

    def idle(self) -> float | None:
        """Return the seconds since the last input by anyone."""
        return elapsed_ms(last_input_time(), kernel32.GetTickCount()) / 1000

    def worked_through(self) -> bool:
        """Wait until the active program answers a message. It may still have input to read: Windows has no word for that."""
        if window := get_foreground_window():
            answer = c_size_t()
            user32.SendMessageTimeoutW(window, WM_NULL, 0, 0, SMTO_ABORTIFHUNG, ANSWER_MS, byref(answer))
        return False

    def _codes(self, name: str, chord: KeyChord) -> list[int]:
        """Return the virtual keys for one key of a chord, with the modifiers its character needs on this keyboard."""
        if name in VIRTUAL_KEYS:
            return [VIRTUAL_KEYS[name]]
        thread = user32.GetWindowThreadProcessId(get_foreground_window(), None)
        found = user32.VkKeyScanExW(name, user32.GetKeyboardLayout(thread))
        if found != -1:
            needed = [word for bit, word in SHIFT_STATES if found >> 8 & bit and word not in chord.keys]
            return [*(VIRTUAL_KEYS[word] for word in needed), found & 0xFF]
        # A keyboard of another script: programs know a shortcut by the key's place, which has the code of the Latin letter.
        if name.isascii() and name.isalnum() and any(modifier in chord.keys for modifier in MODIFIER_KEYS):
            return [ord(name.upper())]
        raise InvalidArguments(f"no key of this keyboard gives {name!r}", hint="type it as text")

    def _send(self, inputs: Sequence[InputRecord]) -> None:
        batch = (InputRecord * len(inputs))(*inputs)
        if user32.SendInput(len(inputs), batch, sizeof(InputRecord)) != len(inputs):
            raise Downstream(
                "Windows did not take the input",
                hint="the active window may belong to an administrator, whose programs take no input of others",
            )
        self._ours = max(last_input_time(), self._ours, key=lambda time: elapsed_ms(self._ours, time))


def build_mouse_input(flags: int, *, dx: int = 0, dy: int = 0, data: int = 0) -> InputRecord:
    """Build one mouse input. `data` may be negative: it is sent as 32 bits."""
    return InputRecord(
        type=INPUT_MOUSE, of=InputUnion(mouse=MouseInput(dx=dx, dy=dy, data=data & 0xFFFFFFFF, flags=flags))
    )


def build_key_input(code: int, *, up: bool = False) -> InputRecord:
    """Build a key press or release with its scan code, the only thing some programs read."""
    flags = (KEY_UP if up else 0) | (EXTENDED_KEY if code in EXTENDED_KEYS else 0)
    scan = user32.MapVirtualKeyW(code, 0)
    return InputRecord(type=INPUT_KEYBOARD, of=InputUnion(key=KeyInput(vk=code, scan=scan, flags=flags)))


def build_character_inputs(letter: str) -> list[InputRecord]:
    """Build the inputs for a character: press and release of its key or keys.

    A line end or tab uses its own key, everything else its one or two UTF-16 code units.
    """
    if letter in TYPED_AS_KEYS:
        code = VIRTUAL_KEYS[TYPED_AS_KEYS[letter]]
        return [build_key_input(code), build_key_input(code, up=True)]
    return [build_unit_input(number, up=up) for number in split_utf16_units(letter) for up in (False, True)]


def build_unit_input(number: int, *, up: bool) -> InputRecord:
    """Build the input for one UTF-16 code unit as a key."""
    return InputRecord(
        type=INPUT_KEYBOARD, of=InputUnion(key=KeyInput(vk=0, scan=number, flags=UNICODE_KEY | (KEY_UP if up else 0)))
    )


def split_utf16_units(text: str) -> list[int]:
    """Return the UTF-16 code units of a text: two for a character outside the Basic Multilingual Plane."""
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[start : start + 2], "little") for start in range(0, len(data), 2)]


def normalize_point(x: int, y: int, screen: Rect) -> tuple[int, int]:
    """Convert a pixel of the whole desktop to SendInput coordinates: 65,536 steps from the left and upper edges.

    Windows multiplies and truncates. The smallest number that yields the pixel is the one to send.
    """
    return -(-(x - screen.x) * 65536 // screen.width), -(-(y - screen.y) * 65536 // screen.height)


def virtual_screen_rect() -> Rect:
    """Return the rectangle around all monitors."""
    x, y, width, height = (user32.GetSystemMetrics(SM_XVIRTUALSCREEN + number) for number in range(4))
    return Rect(x, y, width, height)


def last_input_time() -> int:
    """Return the time of the last input by anyone: milliseconds since Windows started, modulo 32 bits."""
    info = LastInputInfo(size=sizeof(LastInputInfo))
    user32.GetLastInputInfo(byref(info))
    return info.time


def elapsed_ms(since: int, until: int) -> int:
    """Return the milliseconds from one such time to another; negative if the second is earlier."""
    return (until - since + 0x80000000) % 0x100000000 - 0x80000000
