"""The screen of a terminal: what a program that draws on one shows, as lines of text.

What programs for xterm use, of ECMA-48 and https://invisible-island.net/xterm/ctlseqs/ctlseqs.html: letters, moves, erasing, inserting and
deleting, scrolling within margins, the alternate screen. Colours and all else that shows no text are passed over.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

SCREEN_TOKEN = re.compile(
    r"""\x1b\[(?P<given>[0-?]*)(?P<between>[ -/]*)(?P<final>[@-~])
      | \x1b\][^\x07\x1b]*(?:\x07|\x1b\\)
      | \x1b[PX^_][^\x1b]*\x1b\\
      | \x1b(?P<escape>[ -/]*[0-OQ-WYZ\\`-~])
      | (?P<control>[\x00-\x1a\x1c-\x1f\x7f])
      | (?P<text>[^\x00-\x1f\x7f]+)""",
    re.VERBOSE,
)
# A sequence that is longer than this and not ended is none.
MAX_SEQUENCE = 4_096
TAB_WIDTH = 8
# Modes by which a program draws on a screen of its own, beside the one that scrolls.
ALTERNATE_MODES = frozenset(("47", "1047", "1049"))
# "I am a VT100 with an advanced video option", and "all is well".
DEVICE_ATTRIBUTES, DEVICE_STATUS_OK = "\x1b[?1;2c", "\x1b[0n"


def _ignore_text(_: str) -> None:
    """Ignore the text."""


class TerminalScreen:
    """Terminal screen of `width` columns and `height` rows, fed with a program's output.

    `gone` receives each line that leaves at the top, `reply` the terminal's answers to queries about its cursor or its
    type.
    """

    def __init__(
        self,
        width: int,
        height: int,
        *,
        gone: Callable[[str], None] = _ignore_text,
        reply: Callable[[str], None] = _ignore_text,
    ) -> None:
        self.width, self.height = width, height
        self._gone, self._reply = gone, reply
        self._rows = self._blank()
        self._row = self._column = 0
        self._saved = (0, 0)
        self._top, self._bottom = 0, height - 1
        self._main: list[list[str]] | None = None
        self._rest = ""
        self._last = " "

    @property
    def alternate(self) -> bool:
        """True if the program draws on the alternate screen, from which no lines scroll off."""
        return self._main is not None

    def rows(self) -> list[str]:
        """Return the rows down to the last non-empty one or the cursor's, whichever is lower."""
        rows = ["".join(row).rstrip() for row in self._rows]
        # Where the cursor stands behind a blank, the blank was written: it tells an open prompt.
        here = "".join(self._rows[self._row][: self._column])
        rows[self._row] = max(rows[self._row], here, key=len)
        while len(rows) > self._row + 1 and not rows[-1]:
            rows.pop()
        return rows

    def feed(self, text: str) -> None:
        """Process a program's output; an incomplete sequence at its end is completed by the next call."""
        text, self._rest = self._rest + text, ""
        at = 0
        while (piece := SCREEN_TOKEN.match(text, at)) is not None or at < len(text):
            if piece is None:
                if len(text) - at < MAX_SEQUENCE and text[at] == "\x1b":
                    self._rest = text[at:]
                    return
                at += 1
                continue
            at = piece.end()
            if (run := piece["text"]) is not None:
                self._write(run)
            elif (control := piece["control"]) is not None:
                self._control(control)
            elif piece["final"] is not None and not piece["between"]:
                self._sequence(piece["given"], piece["final"])
            elif (escape := piece["escape"]) is not None:
                self._escape(escape)

    def _blank(self) -> list[list[str]]:
        return [[" "] * self.width for _ in range(self.height)]

    def _write(self, run: str) -> None:
        self._last = run[-1]
        if run.isascii():
            while run:
                if self._column >= self.width:
                    self._next_line()
                room = self.width - self._column
                part, run = run[:room], run[room:]
                self._rows[self._row][self._column : self._column + len(part)] = part
                self._column += len(part)
            return
        for letter in run:
            self._put(letter)

    def _put(self, letter: str) -> None:
        if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Mn", "Me"):
            if self._column:
                self._rows[self._row][min(self._column, self.width) - 1] += letter
            return
        wide = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if self._column + wide > self.width:
            self._next_line()
        row = self._rows[self._row]
        row[self._column] = letter
        if wide == 2 and self._column + 1 < self.width:
            row[self._column + 1] = ""
        self._column += wide

    def _next_line(self) -> None:
        self._column = 0
        self._down()

    def _down(self) -> None:
        if self._row == self._bottom:
            self._scroll_up()
        elif self._row < self.height - 1:
            self._row += 1

    def _scroll_up(self) -> None:
        row = self._rows.pop(self._top)
        if self._top == 0 and not self.alternate:
            self._gone("".join(row).rstrip())
        self._rows.insert(self._bottom, [" "] * self.width)

    def _scroll_down(self) -> None:
        del self._rows[self._bottom]
        self._rows.insert(self._top, [" "] * self.width)

    def _control(self, control: str) -> None:
        if control in "\n\x0b\x0c":
            self._down()
        elif control == "\r":
            self._column = 0
        elif control == "\b":
            self._column = max(0, min(self._column, self.width) - 1)
        elif control == "\t":
            self._column = min(self.width - 1, (self._column // TAB_WIDTH + 1) * TAB_WIDTH)

    def _escape(self, escape: str) -> None:
        if escape == "7":
            self._saved = (self._row, self._column)
        elif escape == "8":
            self._row, self._column = self._saved
        elif escape == "D":
            self._down()
        elif escape == "E":
            self._next_line()
        elif escape == "M":
            if self._row == self._top:
                self._scroll_down()
            else:
                self._row = max(0, self._row - 1)
        elif escape == "c":
            self._erase_screen(2)
            self._row = self._column = 0
            self._top, self._bottom = 0, self.height - 1

    def _sequence(self, given: str, final: str) -> None:
        if given[:1] in "?<=>" and given:
            if given[0] == "?" and final in "hl":
                self._mode(given[1:], on=final == "h")
            return
        numbers = [int(word[:5]) if word.isdigit() else 0 for word in given.split(";")]
        first = max(1, numbers[0])
        if final in CURSOR_MOVES:
            self._move(final, first)
        elif final in "Hf":
            self._row = min(first, self.height) - 1
            self._column = min(max(1, numbers[1] if len(numbers) > 1 else 1), self.width) - 1
        elif final == "J":
            self._erase_screen(numbers[0])
        elif final == "K":
            self._erase_line(numbers[0])
        elif final in "LM":
            self._lines(first, insert=final == "L")
        elif final in "@PX":
            self._letters(final, first)
        elif final in "ST":
            for _ in range(min(first, self.height)):
                (self._scroll_up if final == "S" else self._scroll_down)()
        elif final == "r":
            self._margins(numbers)
        elif final in "su":
            if final == "s":
                self._saved = (self._row, self._column)
            else:
                self._row, self._column = self._saved
        elif final == "b":
            self._write(self._last * min(first, self.width * self.height))
        elif final in "nc":
            self._answer(final, numbers[0])

    def _move(self, final: str, by: int) -> None:
        column = min(self._column, self.width - 1)
        if final in "AF":
            self._row = max(self._top if self._row >= self._top else 0, self._row - by)
        elif final in "BeE":
            self._row = min(self._bottom if self._row <= self._bottom else self.height - 1, self._row + by)
        elif final in "Ca":
            column = min(self.width - 1, column + by)
        elif final == "D":
            column = max(0, column - by)
        elif final in "G`":
            column = min(self.width, by) - 1
        elif final == "d":
            self._row = min(self.height, by) - 1
        self._column = 0 if final in "EF" else column

    def _erase_screen(self, what: int) -> None:
        if what in (0, 1):
            self._erase_line(what)
        first, last = {0: (self._row + 1, self.height), 1: (0, self._row)}.get(what, (0, self.height))
        if what == 2 and not self.alternate:
            # What a program wipes was still shown.
            for row in self.rows():
                self._gone(row.rstrip())
        for row in range(first, last):
            self._rows[row] = [" "] * self.width

    def _erase_line(self, what: int) -> None:
        row = self._rows[self._row]
        column = min(self._column, self.width - 1)
        first, last = {0: (self._column, self.width), 1: (0, column + 1)}.get(what, (0, self.width))
        row[first:last] = [" "] * (last - first)

    def _lines(self, count: int, *, insert: bool) -> None:
        if not self._top <= self._row <= self._bottom:
            return
        for _ in range(min(count, self._bottom - self._row + 1)):
            gone, fresh = (self._bottom, self._row) if insert else (self._row, self._bottom)
            del self._rows[gone]
            self._rows.insert(fresh, [" "] * self.width)

    def _letters(self, final: str, count: int) -> None:
        row, at = self._rows[self._row], min(self._column, self.width - 1)
        count = min(count, self.width - at)
        if final == "@":
            row[at:at] = [" "] * count
            del row[self.width :]
        elif final == "P":
            del row[at : at + count]
            row.extend([" "] * count)
        else:
            row[at : at + count] = [" "] * count

    def _margins(self, numbers: list[int]) -> None:
        top = max(1, numbers[0])
        bottom = min(numbers[1] if len(numbers) > 1 and numbers[1] else self.height, self.height)
        if top < bottom:
            self._top, self._bottom = top - 1, bottom - 1
            self._row = self._column = 0

    def _mode(self, given: str, *, on: bool) -> None:
        if not ALTERNATE_MODES.intersection(given.split(";")) or on == self.alternate:
            return
        if on:
            self._saved = (self._row, self._column)
            self._main, self._rows = self._rows, self._blank()
        elif self._main is not None:
            self._rows, self._main = self._main, None
            self._row, self._column = self._saved
        self._top, self._bottom = 0, self.height - 1

    def _answer(self, final: str, number: int) -> None:
        if final == "c":
            self._reply(DEVICE_ATTRIBUTES)
        elif number == 6:
            self._reply(f"\x1b[{self._row + 1};{min(self._column, self.width - 1) + 1}R")
        elif number == 5:
            self._reply(DEVICE_STATUS_OK)


CURSOR_MOVES = frozenset("ABCDEFGade`")
