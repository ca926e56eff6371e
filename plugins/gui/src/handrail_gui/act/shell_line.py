"""Effect of keys on a shell's input line.

This covers the commands it would run, the text left on the line, and what cannot be known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from handrail import Reason
from handrail.desktop.key_chords import KeyChord

RUN_KEYS = frozenset((("enter",), ("ctrl", "m"), ("ctrl", "j"), ("shift", "enter"), ("ctrl", "enter")))
# Runs the line, and brings back the one that followed it in the history.
RUN_AND_RECALL_KEYS = ("ctrl", "o")
DISCARD_KEYS = ("ctrl", "c")
# Drops what stands before the caret, which is all of a line that is known.
KILL_LINE_KEYS = ("ctrl", "u")
BACKSPACE_KEYS = frozenset((("backspace",), ("ctrl", "h"), ("shift", "backspace")))
HISTORY_KEYS = frozenset((
    ("up",), ("down",), ("pageup",), ("pagedown",), ("ctrl", "p"), ("ctrl", "n"), ("ctrl", "r"), ("ctrl", "s"), ("alt", "."), ("alt", "_"),
    ("alt", "<"), ("alt", ">"), ("alt", "p"), ("alt", "n"), ("alt", "shift", "<"), ("alt", "shift", ">"), ("alt", "shift", "_"),
))  # fmt: skip
COMPLETION_KEYS = frozenset((("tab",), ("ctrl", "i"), ("alt", "*"), ("alt", "?"), ("alt", "/"), ("alt", "shift", "*")))
PASTE_KEYS = frozenset(
    (("shift", "insert"), ("ctrl", "shift", "v"), ("ctrl", "y"), ("alt", "y"), ("ctrl", "shift", "insert"))
)
SIGNAL_KEYS = frozenset((("ctrl", "d"), ("ctrl", "z"), ("ctrl", "\\"), ("ctrl", "q")))
# They hold something down, and type nothing.
SILENT_KEYS = frozenset(
    ("ctrl", "alt", "shift", "super", "capslock", "numlock", "scrolllock", "altgr", "print", "pause")
)

HISTORY_REASON = Reason("terminal_history", "it brings back an earlier command, which is not known here")
COMPLETION_REASON = Reason("terminal_completion", "the shell completes the line, with what is not known here")
PASTE_REASON = Reason("terminal_paste", "it pastes into a terminal what is not known here")
SIGNAL_REASON = Reason("terminal_signal", "it ends or stops what runs in the terminal")
UNKNOWN_LINE_REASON = Reason("terminal_unknown_line", "what stands on the terminal's line already is not known")


@dataclass(frozen=True, slots=True)
class KeystrokeEffect:
    """Effect of keys on an input line.

    The `lines` that run, the `rest` left on it (None: unknown), and the reasons why the effect is `unknown`.
    """

    lines: tuple[str, ...] = ()
    rest: str | None = ""
    unknown: tuple[Reason, ...] = ()


def apply_text(line: str | None, text: str) -> KeystrokeEffect:
    """Return the effect of typing a text on a line. Each line end in it is the Enter key, each tab the Tab key."""
    if "\t" in text:
        return KeystrokeEffect(_split_lines(line, text)[0], None, (COMPLETION_REASON,))
    lines, rest = _split_lines(line, text)
    history = (HISTORY_REASON,) if "!" in text or "!" in (line or "") else ()
    unknown = (UNKNOWN_LINE_REASON,) if line is None and lines else ()
    return KeystrokeEffect(lines, rest if lines or line is not None else None, (*unknown, *history))


def _split_lines(line: str | None, text: str) -> tuple[tuple[str, ...], str]:
    *lines, rest = ((line or "") + text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    return tuple(lines), rest


def apply_chord(line: str | None, chord: KeyChord) -> KeystrokeEffect:
    """Return the effect of pressing a chord on a line.

    Keys that only move the cursor make the line unknown, which is reported when it is about to run.
    """
    keys = chord.keys
    if keys in RUN_KEYS:
        return apply_text(line, "\n")
    if keys == RUN_AND_RECALL_KEYS:
        return replace(apply_text(line, "\n"), rest=None, unknown=(HISTORY_REASON,))
    if keys == DISCARD_KEYS:
        return KeystrokeEffect()
    if keys == KILL_LINE_KEYS:
        return KeystrokeEffect(rest=None if line is None else "")
    if keys in BACKSPACE_KEYS:
        return KeystrokeEffect(rest=line[:-1] if line is not None else None)
    if (letter := _typed_letter(keys)) is not None:
        return apply_text(line, letter)
    if SILENT_KEYS.issuperset(keys):
        return KeystrokeEffect(rest=line)
    for known, reason in (
        (HISTORY_KEYS, HISTORY_REASON),
        (COMPLETION_KEYS, COMPLETION_REASON),
        (PASTE_KEYS, PASTE_REASON),
        (SIGNAL_KEYS, SIGNAL_REASON),
    ):
        if keys in known:
            return KeystrokeEffect((), None, (reason,))
    return KeystrokeEffect(rest=None)


def _typed_letter(keys: tuple[str, ...]) -> str | None:
    """Return the character that a key types; None if it types none."""
    plain = [key for key in keys if key != "shift"]
    if len(plain) != 1:
        return None
    if plain[0] == "space":
        return " "
    if len(plain[0]) != 1:
        return None
    return plain[0].upper() if "shift" in keys else plain[0]
