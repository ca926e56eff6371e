"""Mouse and keyboard input on macOS by Quartz events.

Key codes: HIToolbox/Events.h. Events are posted to the session, so the hardware state still distinguishes the user's
own input from ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from handrail import Downstream, InvalidArguments
from handrail.desktop.key_chords import MODIFIER_KEYS, KeyChord
from handrail_gui.platforms.macos.frameworks import MacFrameworks
from handrail_gui.platforms.macos.windows import ACCESSIBILITY_HINT

SESSION_STATE, HARDWARE_STATE, ANY_INPUT = 0, 1, 0xFFFFFFFF
SESSION_TAP = 1
MOUSE_MOVED_EVENT = 5
CLICK_STATE_FIELD = 1
SCROLL_UNIT_LINES = 1
# Each button's number, and the events of it going down, going up, and moving while it is down.
BUTTON_EVENTS = {"left": (0, 1, 2, 6), "right": (1, 3, 4, 7), "middle": (2, 25, 26, 27)}
# Lines down and to the side: positive ones turn up and to the left.
WHEEL_TURNS = {"up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1)}
# The most UTF-16 units that one event has room for.
MAX_EVENT_UNITS = 20

MODIFIER_FLAGS = {"shift": 1 << 17, "ctrl": 1 << 18, "alt": 1 << 19, "super": 1 << 20}
FUNCTION_KEY_CODES = (122, 120, 99, 118, 96, 97, 98, 100, 101, 109, 103, 111, 105, 107, 113, 106, 64, 79, 80, 90)
KEY_CODES: dict[str, int] = {
    "ctrl": 59,
    "alt": 58,
    "shift": 56,
    "super": 55,
    "altgr": 61,
    "capslock": 57,
    "enter": 36,
    "tab": 48,
    "esc": 53,
    "space": 49,
    "backspace": 51,
    "delete": 117,
    "insert": 114,
    "home": 115,
    "end": 119,
    "pageup": 116,
    "pagedown": 121,
    "up": 126,
    "down": 125,
    "left": 123,
    "right": 124,
    **dict(zip((f"f{number}" for number in range(1, 21)), FUNCTION_KEY_CODES, strict=True)),
    **dict(zip("asdfhgzxcv", range(10), strict=True)),
    **dict(zip("bqweryt123465=97-80]ou[ip", range(11, 36), strict=True)),
    **dict(zip("lj'k;\\,/nm.", (37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47), strict=True)),
    "`": 50,
}
TYPED_AS_KEYS = {"\n": "enter", "\r": "enter", "\t": "tab"}


@dataclass(slots=True)
class MacInput:
    """`NativeInput` on macOS; `held` are the keys, `buttons` the mouse buttons that we hold down."""

    parts: MacFrameworks
    held: list[str] = field(default_factory=list[str])
    buttons: list[str] = field(default_factory=list[str])

    def pointer(self) -> tuple[int, int]:
        """Return the position of the pointer."""
        place = self.parts.quartz.CGEventGetLocation(self.parts.quartz.CGEventCreate(None))
        return int(place.x), int(place.y)

    def move(self, x: int, y: int) -> None:
        """Move the pointer there; with a button down this is a drag, which has an event type of its own."""
        number, kind = (
            (BUTTON_EVENTS[self.buttons[-1]][0], BUTTON_EVENTS[self.buttons[-1]][3])
            if self.buttons
            else (0, MOUSE_MOVED_EVENT)
        )
        self._mouse(kind, (x, y), number)

    def button(self, button: str, *, down: bool, nth: int = 1) -> None:
        """Press or release a button as the nth click of a gesture, which macOS does not count automatically."""
        number, pressed, released, _ = BUTTON_EVENTS[button]
        self.buttons = [*(held for held in self.buttons if held != button), *([button] if down else [])]
        self._mouse(pressed if down else released, self.pointer(), number, nth)

    def wheel(self, direction: str) -> None:
        """Turn the wheel by one notch."""
        vertical, horizontal = WHEEL_TURNS[direction]
        quartz = self.parts.quartz
        self._post(quartz.CGEventCreateScrollWheelEvent2(self._source(), SCROLL_UNIT_LINES, 2, vertical, horizontal, 0))

    def chord(self, chord: KeyChord) -> None:
        """Press keys together and release them."""
        unknown = [key for key in chord.keys if key.lower() not in KEY_CODES]
        if unknown:
            raise InvalidArguments(f"no key of a Mac gives {unknown[0]!r}", hint="type it as text")
        try:
            for key in chord.keys:
                self.held.append(key)
                self._key(key, down=True)
        finally:
            self.release_keys()

    def type_text(self, text: str) -> None:
        """Type a short text of any script, whatever the keyboard layout; line ends and tabs by their keys."""
        for part in split_event_texts(text):
            name = TYPED_AS_KEYS.get(part)
            for down in (True, False):
                if name is not None:
                    self._key(name, down=down)
                else:
                    event = self.parts.quartz.CGEventCreateKeyboardEvent(self._source(), 0, down)
                    self.parts.quartz.CGEventKeyboardSetUnicodeString(event, count_utf16_units(part), part)
                    # Modifiers that a person holds would make it a shortcut.
                    self.parts.quartz.CGEventSetFlags(event, 0)
                    self._post(event)

    def release_keys(self) -> None:
        """Release every held key, the last one first."""
        while self.held:
            self._key(self.held.pop(), down=False)

    def check_open(self) -> None:
        """`Downstream` without the permission to give input, and while the screen is locked."""
        if not self.parts.accessibility.AXIsProcessTrusted():
            raise Downstream("macOS takes no input from this program", hint=ACCESSIBILITY_HINT)
        session = self.parts.quartz.CGSessionCopyCurrentDictionary()
        if session is None or session.get("CGSSessionScreenIsLocked"):
            raise Downstream("the screen is locked, or nobody is logged in at it", hint="a person has to unlock it")

    def person(self) -> float | None:
        """Return the seconds since the hardware was last used."""
        return self.parts.quartz.CGEventSourceSecondsSinceLastEventType(HARDWARE_STATE, ANY_INPUT)

    def idle(self) -> float | None:
        """Return the seconds since the last input by anyone."""
        return self.parts.quartz.CGEventSourceSecondsSinceLastEventType(SESSION_STATE, ANY_INPUT)

    def worked_through(self) -> bool:
        """Return False: programs on a Mac do not report what they have read."""
        return False

    def _key(self, key: str, *, down: bool) -> None:
        event = self.parts.quartz.CGEventCreateKeyboardEvent(self._source(), KEY_CODES[key.lower()], down)
        modifiers = [held for held in self.held if held in MODIFIER_KEYS]
        self.parts.quartz.CGEventSetFlags(event, sum(MODIFIER_FLAGS[name] for name in modifiers))
        if len(key) == 1:
            # The code is the place of the key; another layout has another letter there.
            self.parts.quartz.CGEventKeyboardSetUnicodeString(event, 1, key)
        self._post(event)

    def _mouse(self, kind: int, place: tuple[int, int], number: int, nth: int = 1) -> None:
        point = (float(place[0]), float(place[1]))
        event = self.parts.quartz.CGEventCreateMouseEvent(self._source(), kind, point, number)
        self.parts.quartz.CGEventSetIntegerValueField(event, CLICK_STATE_FIELD, nth)
        self._post(event)

    def _source(self) -> Any:
        return self.parts.quartz.CGEventSourceCreate(SESSION_STATE)

    def _post(self, event: Any) -> None:
        if event is None:
            raise Downstream("macOS did not make the input", hint=ACCESSIBILITY_HINT)
        self.parts.quartz.CGEventPost(SESSION_TAP, event)


def split_event_texts(text: str) -> list[str]:
    """Split a text into parts that fit into one event.

    No character is cut, and line ends and tabs are parts of their own.
    """
    found: list[str] = []
    for letter in text:
        joins = found and found[-1] not in TYPED_AS_KEYS and letter not in TYPED_AS_KEYS
        if joins and count_utf16_units(found[-1] + letter) <= MAX_EVENT_UNITS:
            found[-1] += letter
        else:
            found.append(letter)
    return found


def count_utf16_units(text: str) -> int:
    """Return the number of UTF-16 code units in a text."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
