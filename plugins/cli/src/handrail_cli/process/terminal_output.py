"""The output of a command in a terminal: lines as they leave its screen, and then the screen."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import replace

from handrail_cli.process.output_capture import ENDING_BYTES, HeadTailBuffer, OutputText
from handrail_cli.process.terminal_screen import TerminalScreen

# A terminal gives no more at once.
BUFFER_BYTES = 65_536


class TerminalOutput:
    """Bytes for a terminal as they come, kept as the text that it shows.

    Lines that scroll away are kept in `lines`; what is still on the screen is added when somebody looks.
    """

    def __init__(self, width: int, height: int, lines: HeadTailBuffer, *, reply: Callable[[str], None]) -> None:
        self._lines = lines
        self._buffer = bytearray(BUFFER_BYTES)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._screen = TerminalScreen(width, height, gone=self._left, reply=reply)
        # Rows by their number since the start, with what was told of them: they are told again only when they are other ones.
        self._told: dict[int, str] = {}
        self._scrolled = 0
        self._drawn: list[str] = []

    def space(self) -> memoryview:
        """Return the buffer space for the next bytes."""
        return memoryview(self._buffer)

    def took(self, size: int) -> None:
        """So many bytes have been put into `space()`."""
        self._screen.feed(self._decode.decode(bytes(self._buffer[:size])))

    def _left(self, line: str) -> None:
        if self._told.pop(self._scrolled, None) != line:
            self._lines.feed(f"{line}\n".encode("utf-8", "replace"))
        self._scrolled += 1

    @property
    def whole_screen(self) -> bool:
        """True if the program draws on the alternate screen, which is then the visible output."""
        return self._screen.alternate

    def take(self, *, last: bool = False) -> OutputText:
        """Return the output since the last call: lines, and screen rows that are new or changed."""
        return self._with_rows(self._lines.take(last=last))

    def finish(self) -> OutputText:
        """Return all output in the form of `take`, and stop keeping complete lines."""
        return self._with_rows(self._lines.finish())

    def _with_rows(self, lines: OutputText) -> OutputText:
        rows = self._screen.rows()
        if self.whole_screen:
            drawn, self._drawn = self._drawn, rows
            text = "" if rows == drawn else "\n".join(rows)
            return replace(lines, text=lines.text + text)
        told = {self._scrolled + at: row for at, row in enumerate(rows)}
        new = [row for number, row in told.items() if self._told.get(number) != row]
        # An empty last row is only where the next line begins.
        self._told = {number: row for number, row in told.items() if row or number < self._scrolled + len(rows) - 1}
        text = "\n".join(new)
        return replace(lines, text=lines.text + text)

    def beginning(self) -> bytes:
        """Return the beginning of the lines that scrolled off the screen."""
        return self._lines.beginning()

    def ending(self) -> bytes:
        """Return the end of the screen's content."""
        return "\n".join(self._screen.rows()).encode("utf-8", "replace")[-ENDING_BYTES:]

    def close(self) -> None:
        """Stop keeping complete lines."""
        self._lines.close()
