"""The text that a running command was given so far: new text is judged together with the text that it continues."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from handrail import Reason

if TYPE_CHECKING:
    from handrail_cli.process.key_input import KeyInput

# Characters, and lines, that are judged together; `parse_line` reads no more at once.
MAX_WRITTEN = 10_000
MAX_LINES = 200
ENTER_KEYS = frozenset((b"\r", b"\n"))
INTERRUPT = b"\x03"
# A shell that edits its line may take any other character for a key that edits.
NOT_PLAIN = re.compile(r"[^\n\x20-\x7e]")
# What an interactive bash replaces by an earlier command.
HISTORY_EXPANSION = re.compile(r"![^\s=]|^\^", re.MULTILINE)

KEYS_REASON = Reason("written_keys", "keys or control characters may have changed the line that the process reads")
HISTORY_REASON = Reason("terminal_history", "it brings back an earlier command, which is not known here")
LENGTH_REASON = Reason("written_length", "more was written to the process than is judged together")


@dataclass(frozen=True, slots=True)
class WrittenText:
    """Text that a process was given since its start; of long text only the end is kept.

    `unknown` says why `text` does not determine the input that the process reads. It is never reset: text after an
    unknown line may be inside that line's quotes.
    """

    text: str = ""
    unknown: Reason | None = None

    def with_text(self, text: str) -> WrittenText:
        """Return the value with more text appended."""
        text = self.text + text
        unknown = self.unknown
        if unknown is None and NOT_PLAIN.search(text):
            unknown = KEYS_REASON
        if unknown is None and HISTORY_EXPANSION.search(text):
            unknown = HISTORY_REASON
        if len(text) > MAX_WRITTEN or text.count("\n") > MAX_LINES:
            kept = "\n".join(text[-MAX_WRITTEN:].split("\n")[-MAX_LINES:])
            return WrittenText(kept, unknown or LENGTH_REASON)
        return WrittenText(text, unknown)

    def with_key(self, key: KeyInput) -> WrittenText:
        """Return the value after a key press."""
        if key.text in ENTER_KEYS:
            return self.with_text("\n")
        if key.text == b" ":
            return self.with_text(" ")
        if key.end:
            return self
        # A shell drops the line that it was given so far, or ignores it: both come to the same where there is none.
        if (key.signal is not None or key.text == INTERRUPT) and self.is_complete():
            return self
        return self.with_unknown_keys()

    def with_unknown_keys(self) -> WrittenText:
        """Return the value after keys that may have changed the line arbitrarily."""
        return replace(self, unknown=self.unknown or KEYS_REASON)

    def is_complete(self) -> bool:
        """Return True if a shell that has read the text waits for a new command."""
        from handrail_cli.shell.bash.line_parser import parse_line

        if not self.text:
            return True
        return self.text.endswith("\n") and not parse_line(self.text).opaque
