"""Key names: one spelling for what people and models use, and detection of chords that must never be pressed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from handrail.errors import InvalidArguments

__all__ = ["MODIFIER_KEYS", "ChordName", "KeyChord", "find_blocked_chord", "parse_chord"]

MODIFIER_KEYS = ("ctrl", "alt", "shift", "super")

# What else a key is called: an alias is resolved once.
KEY_ALIASES = {
    "control": "ctrl",
    "strg": "ctrl",
    "option": "alt",
    "opt": "alt",
    "meta": "super",
    "cmd": "super",
    "command": "super",
    "win": "super",
    "windows": "super",
    "return": "enter",
    "escape": "esc",
    "del": "delete",
    "ins": "insert",
    "bksp": "backspace",
    "back": "backspace",
    "page up": "pageup",
    "page down": "pagedown",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "pgdown": "pagedown",
    "prior": "pageup",
    "next": "pagedown",
    "arrowup": "up",
    "arrowdown": "down",
    "arrowleft": "left",
    "arrowright": "right",
    "spacebar": "space",
    "printscreen": "print",
    "prtsc": "print",
    "caps": "capslock",
    "contextmenu": "menu",
    "plus": "+",
    "minus": "-",
    "add": "+",
    "altgr": "altgr",
    "altgraph": "altgr",
}
# A side of the keyboard does not matter: `ctrl_l`, `lctrl`, `left ctrl`, `control_right`.
SIDED_MODIFIER = re.compile(
    r"(?:(?:left|right|l|r)[_ ]?)?(ctrl|control|alt|option|shift|super|meta|cmd|command|win|windows)(?:[_ ]?(?:left|right|l|r))?"
)

MAX_FUNCTION_KEY = 24
KEY_WORDS = frozenset(
    (
        *("enter", "tab", "esc", "space", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown"),
        *("up", "down", "left", "right", "print", "pause", "capslock", "numlock", "scrolllock", "menu", "altgr"),
    )
)
NAMED_KEYS = KEY_WORDS | {f"f{number}" for number in range(1, MAX_FUNCTION_KEY + 1)}


@dataclass(frozen=True, slots=True)
class KeyChord:
    """Keys held together: modifiers in a fixed order, then the others as given."""

    keys: tuple[str, ...]

    def __str__(self) -> str:
        return "+".join(self.keys)


def normalize_key_name(given: str) -> str:
    """Return the canonical name of a key: a single character, or a word of `MODIFIER_KEYS` or `NAMED_KEYS`.

    Raises `InvalidArguments` for an unknown key.
    """
    if len(given) == 1:
        return {" ": "space", "\n": "enter", "\t": "tab"}.get(given, given)
    plain = given.strip().lower().replace("-", "_")
    if sided := SIDED_MODIFIER.fullmatch(plain):
        plain = sided[1]
    for spelling in (plain, plain.replace("_", " "), plain.replace("_", "").replace(" ", "")):
        name = KEY_ALIASES.get(spelling, spelling)
        if name in NAMED_KEYS or name in MODIFIER_KEYS or len(name) == 1:
            return name
    raise InvalidArguments(
        f"there is no key {given!r}",
        hint=f"a key is one character, {', '.join((*MODIFIER_KEYS, *sorted(KEY_WORDS)))}, f1 to f{MAX_FUNCTION_KEY}",
    )


def parse_chord(given: str | Sequence[str]) -> KeyChord:
    """Return the chord for `"ctrl+shift+s"` or `["ctrl", "s"]`. The `+` key is `plus`, or a `+` at the end.

    Raises `InvalidArguments` for an unknown key, or none at all.
    """
    parts = _split_chord(given) if isinstance(given, str) else [part for key in given for part in _split_chord(key)]
    names = list(dict.fromkeys(normalize_key_name(part) for part in parts))
    if not names:
        raise InvalidArguments("no key was given", hint='give for example key="ctrl+s"')
    shown = [name.lower() if len(name) == 1 and any(m in names for m in MODIFIER_KEYS) else name for name in names]
    return KeyChord((*(m for m in MODIFIER_KEYS if m in shown), *(name for name in shown if name not in MODIFIER_KEYS)))


def find_blocked_chord(chord: KeyChord, blocked: Iterable[str]) -> str | None:
    """Return the blocked chord that the chord equals or contains, or None for a harmless one."""
    pressed = set(_fold_keys(chord))
    return next((given for given in blocked if set(_fold_keys(parse_chord(given))) <= pressed), None)


def validate_chord(given: str) -> str:
    """Return a configured chord unchanged. Raises ValueError for one with an unknown key."""
    try:
        parse_chord(given)
    except InvalidArguments as exc:
        raise ValueError(str(exc)) from exc
    return given


# A chord in a configuration.
ChordName = Annotated[str, AfterValidator(validate_chord)]


def _fold_keys(chord: KeyChord) -> Iterable[str]:
    return (key.lower() for key in chord.keys)


def _split_chord(given: str) -> list[str]:
    if len(given) == 1:
        return [given]
    if given.endswith("++"):
        return [*_split_chord(given[:-2]), "+"]
    return [part for part in given.split("+") if part.strip()]
