"""What keys make of the line that a shell reads: the commands that it would run, what stands on the line then, and what cannot be known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from handrail import Reason
from handrail.desktops.chords import Chord

RUNS = frozenset((("enter",), ("ctrl", "m"), ("ctrl", "j"), ("shift", "enter"), ("ctrl", "enter")))
# Runs the line, and brings back the one that followed it in the history.
RUNS_AND_RECALLS = ("ctrl", "o")
DROPS = ("ctrl", "c")
# Drops what stands before the caret, which is all of a line that is known.
KILLS = ("ctrl", "u")
RUBS = frozenset((("backspace",), ("ctrl", "h"), ("shift", "backspace")))
RECALLS = frozenset((
    ("up",), ("down",), ("pageup",), ("pagedown",), ("ctrl", "p"), ("ctrl", "n"), ("ctrl", "r"), ("ctrl", "s"), ("alt", "."), ("alt", "_"),
    ("alt", "<"), ("alt", ">"), ("alt", "p"), ("alt", "n"), ("alt", "shift", "<"), ("alt", "shift", ">"), ("alt", "shift", "_"),
))  # fmt: skip
COMPLETES = frozenset((("tab",), ("ctrl", "i"), ("alt", "*"), ("alt", "?"), ("alt", "/"), ("alt", "shift", "*")))
PASTES = frozenset(
    (("shift", "insert"), ("ctrl", "shift", "v"), ("ctrl", "y"), ("alt", "y"), ("ctrl", "shift", "insert"))
)
SIGNALS = frozenset((("ctrl", "d"), ("ctrl", "z"), ("ctrl", "\\"), ("ctrl", "q")))
# They hold something down, and type nothing.
SILENT = frozenset(("ctrl", "alt", "shift", "super", "capslock", "numlock", "scrolllock", "altgr", "print", "pause"))

HISTORY = Reason("terminal_history", "it brings back an earlier command, which is not known here")
COMPLETION = Reason("terminal_completion", "the shell completes the line, with what is not known here")
PASTED = Reason("terminal_paste", "it pastes into a terminal what is not known here")
SIGNAL = Reason("terminal_signal", "it ends or stops what runs in the terminal")
UNKNOWN_LINE = Reason("terminal_unknown_line", "what stands on the terminal's line already is not known")


@dataclass(frozen=True, slots=True)
class Typed:
    """What comes of keys: `lines` that run, `rest` on the line afterwards (None: not known), and the reasons for not knowing what will be done."""

    lines: tuple[str, ...] = ()
    rest: str | None = ""
    unknown: tuple[Reason, ...] = ()


def after_text(line: str | None, text: str) -> Typed:
    """What typing a text on a line makes of it. Each line end in it is the key Enter, each tab the key Tab."""
    if "\t" in text:
        return Typed(_parts(line, text)[0], None, (COMPLETION,))
    lines, rest = _parts(line, text)
    history = (HISTORY,) if "!" in text or "!" in (line or "") else ()
    unknown = (UNKNOWN_LINE,) if line is None and lines else ()
    return Typed(lines, rest if lines or line is not None else None, (*unknown, *history))


def _parts(line: str | None, text: str) -> tuple[tuple[str, ...], str]:
    *lines, rest = ((line or "") + text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    return tuple(lines), rest


def after_chord(line: str | None, chord: Chord) -> Typed:
    """What pressing keys makes of a line. Keys that only move in it make it unknown, which is said when it is to be run."""
    keys = chord.keys
    if keys in RUNS:
        return after_text(line, "\n")
    if keys == RUNS_AND_RECALLS:
        return replace(after_text(line, "\n"), rest=None, unknown=(HISTORY,))
    if keys == DROPS:
        return Typed()
    if keys == KILLS:
        return Typed(rest=None if line is None else "")
    if keys in RUBS:
        return Typed(rest=line[:-1] if line is not None else None)
    if (letter := _letter(keys)) is not None:
        return after_text(line, letter)
    if SILENT.issuperset(keys):
        return Typed(rest=line)
    for known, reason in ((RECALLS, HISTORY), (COMPLETES, COMPLETION), (PASTES, PASTED), (SIGNALS, SIGNAL)):
        if keys in known:
            return Typed((), None, (reason,))
    return Typed(rest=None)


def _letter(keys: tuple[str, ...]) -> str | None:
    """The letter that a key types; None when it types none."""
    plain = [key for key in keys if key != "shift"]
    if len(plain) != 1:
        return None
    if plain[0] == "space":
        return " "
    if len(plain[0]) != 1:
        return None
    return plain[0].upper() if "shift" in keys else plain[0]
