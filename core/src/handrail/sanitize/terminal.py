"""Rendering of text with terminal control sequences: the text as displayed, without control characters.

The grammar of the sequences is from ECMA-48 (sections 5.3, 5.4, 5.6), including the 8-bit forms of their introducers.
"""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["render_terminal_text"]

# Anything that is neither text, tab nor a plain line end.
STEERING_CHARS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")

_EIGHT_BIT = {code: f"\x1b{chr(code - 0x40)}" for code in (0x90, 0x98, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F)}
# NUL serves as a mark of ours below, so those of others go first. BEL, CAN and SUB end sequences, BS and ESC are looked at.
_IGNORED_CHARS = re.compile(r"[\x00-\x06\x0e-\x17\x19\x1c-\x1f\x7f-\x84\x86-\x8f\x91-\x97\x99\x9a]")
_LINE_ENDS = re.compile(r"[\x0b\x0c\x85]")
_REMAINING_CONTROLS = re.compile(r"[\x07\x08\x18\x1a]")

# Each branch stops at the next ESC, so that no text is looked at more than a few times. What is never ended ends with its line.
_ESCAPE_SEQUENCE = re.compile(
    r"""\x1b(?:
        (?P<osc>\]   (?:[^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\|[\x18\x1a]) | [^\x07\x18\x1a\x1b\n]*))
      | (?P<dcs>[PX^_](?:[^\x18\x1a\x1b]*(?:\x1b\\|[\x18\x1a])         | [^\x18\x1a\x1b\n]*))
      | \[(?P<csi>[0-?]*[ -/]*)(?P<final>[@-~]?)
      | [ -/]+[0-~]?
      | [0-~]?
    )""",
    re.VERBOSE,
)
# Parameters that may hide text: conceal, and any colour behind the letters.
_HIDING_SEQUENCE = re.compile(r"\x1b\[(?:[\d;:]*[;:])?0*(?:8|4[0-8]|10[0-7])(?=[;:m])")
_ERASED_MARK = "\x00"
_CARRIAGE_RETURNS = re.compile(r"\x00*\r[\x00\r]*")
# Colours nearer than this (of 255, on each channel) cannot be told apart.
_NEAR = 16
_MOST_PARAMETERS = 64
_WIDEST_GAP = 200

RgbColor = tuple[int, int, int]
_BASIC: tuple[RgbColor, ...] = (
    *((0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)),
    *((127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255)),
    (255, 255, 255),
)


def render_terminal_text(text: str, removed: Counter[str]) -> str:
    """Return the text that a terminal would show, and count what was removed in `removed`.

    The counts are ansi, osc, dcs, concealed, overwritten and control.
    """
    if STEERING_CHARS.search(text) is None:
        return text
    text = text.translate(_EIGHT_BIT)
    text = _remove_matches(_IGNORED_CHARS, text, removed, "control")
    text = _remove_matches(_LINE_ENDS, text, removed, "control", by="\n")
    if "\x1b" in text:
        text = _remove_sequences(text, removed)
    if "\b" in text:
        text = _remove_overstrikes(text, removed)
    text = _remove_matches(_REMAINING_CONTROLS, text, removed, "control")
    if "\r" in text and STEERING_CHARS.search(text) is not None:
        *lines, last = text.split("\n")
        shown = [_render_overwritten_line(line, removed) + ("\r" if line.endswith("\r") else "") for line in lines]
        text = "\n".join([*shown, _render_overwritten_line(last, removed)])
    return text.replace(_ERASED_MARK, "")


def _remove_matches(unwanted: re.Pattern[str], text: str, removed: Counter[str], code: str, *, by: str = "") -> str:
    text, count = unwanted.subn(by, text)
    if count:
        removed[code] += count
    return text


def _remove_sequences(text: str, removed: Counter[str]) -> str:
    if _HIDING_SEQUENCE.search(text) is not None:
        return _remove_hidden_text(text, removed)

    def shown(match: re.Match[str]) -> str:
        removed[_sequence_kind(match)] += 1
        return _replace_sequence(match)

    return _ESCAPE_SEQUENCE.sub(shown, text)


def _sequence_kind(match: re.Match[str]) -> str:
    return "osc" if match["osc"] is not None else "dcs" if match["dcs"] is not None else "ansi"


def _replace_sequence(match: re.Match[str]) -> str:
    """Return a sequence's substitute until lines are assembled: erase mark, carriage return, spaces, or nothing."""
    final, given = match["final"], match["csi"]
    if final == "K":
        return _ERASED_MARK
    if final == "G" and given in ("", "0", "1"):
        return "\r"
    if final == "C" and (given == "" or given.isdigit()):
        return " " * min(int(given[:6] or 1), _WIDEST_GAP)
    return ""


def _remove_hidden_text(text: str, removed: Counter[str]) -> str:
    """Remove the sequences from text with colors, along with any text that they make invisible."""
    pen = _TextStyle()
    pieces: list[str] = []
    at = 0
    for match in _ESCAPE_SEQUENCE.finditer(text):
        pieces.append(_drop_if_hidden(text[at : match.start()], pen, removed))
        at = match.end()
        removed[_sequence_kind(match)] += 1
        pieces.append(_replace_sequence(match))
        if match["final"] == "m":
            pen.take(match["csi"])
    pieces.append(_drop_if_hidden(text[at:], pen, removed))
    return "".join(pieces)


def _drop_if_hidden(piece: str, pen: _TextStyle, removed: Counter[str]) -> str:
    if not pen.hides or not piece.strip():
        return piece
    removed["concealed"] += 1
    return "".join(letter for letter in piece if letter in "\r\n")


class _TextStyle:
    """Style of the characters that follow (SGR, ECMA-48 section 8.3.117)."""

    def __init__(self) -> None:
        self._concealed = False
        self._letters: RgbColor | None = None
        self._behind: RgbColor | None = None

    @property
    def hides(self) -> bool:
        if self._concealed or self._letters is None or self._behind is None:
            return self._concealed
        return all(abs(a - b) < _NEAR for a, b in zip(self._letters, self._behind, strict=True))

    def take(self, parameters: str) -> None:
        """Change it as one sequence says."""
        numbers = [int(word[:6]) if word.isdigit() else 0 for word in re.split("[;:]", parameters)[:_MOST_PARAMETERS]]
        while numbers:
            number = numbers.pop(0)
            if number == 0:
                self._concealed, self._letters, self._behind = False, None, None
            elif number in (8, 28):
                self._concealed = number == 8
            elif number in (38, 48):
                self._set(_parse_extended_color(numbers, colon=":" in parameters), behind=number == 48)
            elif number in (39, 49):
                self._set(None, behind=number == 49)
            elif 30 <= number <= 47:
                self._set(_BASIC[number % 10], behind=number >= 40)
            elif 90 <= number <= 107:
                self._set(_BASIC[8 + number % 10], behind=number >= 100)

    def _set(self, colour: RgbColor | None, *, behind: bool) -> None:
        if behind:
            self._behind = colour
        else:
            self._letters = colour


def _parse_extended_color(numbers: list[int], *, colon: bool) -> RgbColor | None:
    """Return the color after 38 or 48, and remove its parameters from `numbers`: `5;n` of 256, or `2;r;g;b`.

    Returns None if it is invalid.
    """
    form = numbers.pop(0) if numbers else 0
    if form == 5 and numbers:
        return _convert_256_color(numbers.pop(0))
    if form == 2:
        # With colons the number of a colour space comes first.
        skipped = 1 if colon and len(numbers) > 3 else 0
        taken = numbers[skipped : skipped + 3]
        del numbers[: skipped + 3]
        return (taken[0], taken[1], taken[2]) if len(taken) == 3 else None
    return None


def _convert_256_color(number: int) -> RgbColor:
    if number < 16:
        return _BASIC[number]
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return (grey, grey, grey)
    steps = (0, 95, 135, 175, 215, 255)
    number -= 16
    return (steps[number // 36], steps[number // 6 % 6], steps[number % 6])


def _remove_overstrikes(text: str, removed: Counter[str]) -> str:
    """Remove the backspaces that printers used for underline and bold, and those of a spinner.

    Both texts around any other backspace stay.
    """
    text = _remove_matches(re.compile(r"_\x08(?=[^\n\x08])"), text, removed, "control")
    text = _remove_matches(re.compile(r"([^\n\x08])(?:\x08\1)+"), text, removed, "control", by=r"\1")
    text = _remove_matches(re.compile(r"(?<=[^\n\x08])\x08_"), text, removed, "control")
    return _remove_matches(re.compile(r"[-|/\\]\x08+(?=[-|/\\])"), text, removed, "control")


def _render_overwritten_line(line: str, removed: Counter[str]) -> str:
    """Return what is visible of a line that was overwritten from its start several times.

    If a text is only partly covered by the next, it was not an earlier state of the line: then all stay, on separate
    lines.
    """
    body = line.rstrip("\r")
    if "\r" not in body:
        return body
    states = _CARRIAGE_RETURNS.split(body)
    erased = [_ERASED_MARK in move for move in _CARRIAGE_RETURNS.findall(body)]
    widths = [len(state.replace(_ERASED_MARK, "").rstrip()) for state in states]
    covered = [gone or after >= before for before, after, gone in zip(widths, widths[1:], erased, strict=False)]
    if not all(covered):
        return "\n".join(state for state in states if state)
    if hidden := sum(1 for width in widths[:-1] if width):
        removed["overwritten"] += hidden
    return states[-1]
