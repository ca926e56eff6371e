"""Keys by name, as the DevTools protocol wants them (https://www.w3.org/TR/uievents-key/)."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from handrail import InvalidArguments

MODIFIERS = {"alt": 1, "control": 2, "ctrl": 2, "meta": 4, "super": 4, "cmd": 4, "command": 4, "shift": 8}
MODIFIER_KEYS = {
    1: ("Alt", "AltLeft", 18),
    2: ("Control", "ControlLeft", 17),
    4: ("Meta", "MetaLeft", 91),
    8: ("Shift", "ShiftLeft", 16),
}
# Name: code of the key, its number on Windows, and the text that it writes.
NAMED_KEYS = {
    "Enter": ("Enter", 13, "\r"), "Tab": ("Tab", 9, ""), "Backspace": ("Backspace", 8, ""), "Delete": ("Delete", 46, ""),
    "Escape": ("Escape", 27, ""), "ArrowUp": ("ArrowUp", 38, ""), "ArrowDown": ("ArrowDown", 40, ""), "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""), "Home": ("Home", 36, ""), "End": ("End", 35, ""), "PageUp": ("PageUp", 33, ""),
    "PageDown": ("PageDown", 34, ""), "Insert": ("Insert", 45, ""), "Space": ("Space", 32, " "), "ContextMenu": ("ContextMenu", 93, ""),
    **{f"F{n}": (f"F{n}", 111 + n, "") for n in range(1, 13)},
}  # fmt: skip
KEY_ALIASES = {
    "return": "Enter", "esc": "Escape", "up": "ArrowUp", "down": "ArrowDown", "left": "ArrowLeft", "right": "ArrowRight", "del": "Delete",
    "pgup": "PageUp", "pgdn": "PageDown", "page_up": "PageUp", "page_down": "PageDown", " ": "Space",
}  # fmt: skip
KEYS_BY_LOWERCASE = {name.lower(): name for name in NAMED_KEYS}
# What a modified key does in a field, where no menu of a desktop translates it.
EDIT_COMMANDS = {"a": "selectAll", "c": "copy", "v": "paste", "x": "cut", "z": "undo"}


@dataclass(frozen=True, slots=True)
class KeyChord:
    """A key and what is held with it: the events that press and release it, in order."""

    modifiers: int
    key: str
    code: str
    number: int
    text: str

    def events(self) -> list[dict[str, object]]:
        """Return the key events of the chord, as arguments of `Input.dispatchKeyEvent`."""
        held = [bit for bit in MODIFIER_KEYS if self.modifiers & bit]
        events: list[dict[str, object]] = []
        down = 0
        for bit in held:
            down |= bit
            events.append(_build_key_event("rawKeyDown", *MODIFIER_KEYS[bit], down))
        # With Control, Alt or Meta a key writes nothing.
        text = self.text if not self.modifiers & 7 else ""
        press = _build_key_event("keyDown" if text else "rawKeyDown", self.key, self.code, self.number, self.modifiers)
        if text:
            press |= {"text": text, "unmodifiedText": text}
        if self.modifiers & (4 if sys.platform == "darwin" else 2) and (command := EDIT_COMMANDS.get(self.key.lower())):
            press["commands"] = [command]
        events += [press, _build_key_event("keyUp", self.key, self.code, self.number, self.modifiers)]
        for bit in reversed(held):
            down &= ~bit
            events.append(_build_key_event("keyUp", *MODIFIER_KEYS[bit], down))
        return events


def parse_chord(text: str) -> KeyChord:
    """Parse the text of a chord, such as `Control+Shift+K`."""
    *held, last = (
        text.split("+")
        if not text.endswith("+")
        else [*text[:-1].rstrip("+").split("+"), "+"]
        if len(text) > 1
        else ["+"]
    )
    modifiers = 0
    for each in held:
        if each and each.strip().lower() not in MODIFIERS:
            raise InvalidArguments(f"{each!r} is no key to hold", hint=f"one of {', '.join(MODIFIERS)}")
        modifiers |= MODIFIERS.get(each.strip().lower(), 0)
    last = last if last == " " else last.strip()
    named = KEYS_BY_LOWERCASE.get(KEY_ALIASES.get(last.lower(), last).lower())
    if named is not None:
        code, number, written = NAMED_KEYS[named]
        return KeyChord(modifiers, " " if named == "Space" else named, code, number, written)
    if len(last) != 1:
        raise InvalidArguments(
            f"{last!r} is no key", hint=f"a character, or one of {', '.join(NAMED_KEYS)}; text goes into fill"
        )
    # Held with Control, a letter is the key and no capital.
    shown = last.upper() if modifiers & 8 else last.lower() if modifiers & 7 else last
    code = (
        f"Key{last.upper()}"
        if last.isascii() and last.isalpha()
        else f"Digit{last}"
        if last.isascii() and last.isdigit()
        else ""
    )
    return KeyChord(modifiers, shown, code, ord(last.upper()) if last.isascii() and last.isalnum() else 0, shown)


def _build_key_event(kind: str, key: str, code: str, number: int, modifiers: int) -> dict[str, object]:
    return {
        "type": kind,
        "key": key,
        "code": code,
        "windowsVirtualKeyCode": number,
        "nativeVirtualKeyCode": number,
        "modifiers": modifiers,
    }
