"""Search for lines that match a pattern, in a file of any size and in linear time.

RE2 runs over entire blocks, not line by line.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from typing import TYPE_CHECKING, Any

from handrail.artifacts.line_paging import find_line_end
from handrail.errors import InvalidArguments

if TYPE_CHECKING:
    from handrail.artifacts.store import Artifact

# Read at once. What the processor has at hand is searched fastest.
PIECE_BYTES = 2**18
# Of a longer line, so much of the piece before is looked at once more with the next.
OVERLAP_BYTES = 4_096
LINE_FEED = 0x0A
# A shorter text stands in too many lines to be worth looking for by itself; and so does one that missed so often in one piece.
MIN_NEEDLE_BYTES = 3
MAX_MISSES = 60
_REGEX_TOKENS = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\{[0-9,]*\}|.", re.DOTALL)
# What RE2 may use for one pattern.
RE2_MEMORY_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class LineMatch:
    """A line that the pattern fits: its number, where it begins, and where in it the first fitting text stands (bytes)."""

    line: int
    start: int
    at: int


class LinePattern:
    """Regular expression in RE2 syntax, searched for in each line. Raises `InvalidArguments` for an invalid one."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        # It has no types.
        re2: Any = importlib.import_module("re2")
        options = re2.Options()
        options.never_nl = True
        options.never_capture = True
        options.log_errors = False
        options.max_mem = RE2_MEMORY_BYTES
        options.case_sensitive = not ignore_case
        try:
            compiled: Any = re2.compile(f"(?m){pattern}".encode("utf-8", "surrogatepass"), options)
        except re2.error as exc:
            told = exc.args[0].decode("utf-8", "replace") if isinstance(exc.args[0], bytes) else str(exc)
            raise InvalidArguments(
                f"the pattern {pattern!r} cannot be used: {told}",
                hint="the syntax is RE2's: no backreferences, no lookaround",
            ) from exc
        self._search = compiled.search
        needle = None if ignore_case else find_required_literal(pattern)
        # RE2 finds plain text faster than Python does.
        options.literal = True
        self._needle: Any = None if needle is None else re2.compile(needle, options).search

    def find(self, data: bytearray, start: int, end: int) -> int:
        """Return the position of the first match between the two positions, or -1."""
        needle = self._needle
        if needle is None:
            return self._first(data, start, end)
        misses = 0
        # Only a line that has the needle can fit, and looking for that is several times faster.
        while (plain := needle(data, start, end)) is not None:
            at = plain.start()
            begin = data.rfind(b"\n", start, at) + 1 or start
            stop = data.find(b"\n", at, end)
            stop = end if stop < 0 else stop
            if (found := self._first(data, begin, stop)) >= 0:
                return found
            start, misses = stop + 1, misses + 1
            if misses > MAX_MISSES:
                self._needle = None
                return self._first(data, start, end) if start < end else -1
        return -1

    def _first(self, data: bytearray, start: int, end: int) -> int:
        found = self._search(data, start, end)
        return -1 if found is None else found.start()


def find_required_literal(pattern: str) -> bytes | None:
    """Return a text contained in every line that matches the pattern: the longest that is easy to find, or None."""
    if "|" in pattern or "(?" in pattern:
        return None
    runs, depth = [""], 0
    for token in _REGEX_TOKENS.findall(pattern):
        depth += (token == "(") - (token == ")")
        escaped = token[0] == "\\" and len(token) == 2
        literal = token[-1] if len(token) == 1 or (escaped and not token[-1].isalnum()) else ""
        if escaped and not literal and token[1] not in "dDwWsSbB":
            # It may go on in what follows: \x41, \pL, \Q…
            return None
        if token in ("*", "?") or token[0] == "{":
            # What stands before may be absent.
            runs[-1] = runs[-1][:-1]
        if literal and not depth and (escaped or token not in "^$.+*?(){"):
            runs[-1] += literal
        else:
            runs.append("")
    longest = max(runs, key=len)
    return longest.encode("utf-8", "surrogatepass") if len(longest) >= MIN_NEEDLE_BYTES else None


def iter_matches(
    file: FileIO, pattern: LinePattern, artifact: Artifact, *, first: int = 1, position: int = 0
) -> Iterator[LineMatch]:
    """Yield every line that matches the pattern, in order, from number `first` on, which begins at `position`."""
    buffer = bytearray(PIECE_BYTES)
    view = memoryview(buffer)
    file.seek(position)
    # `position` is where the buffer's beginning stands in the file, `line_start` where the line does that it begins in.
    line, line_start, told, kept = first, position, 0, 0
    while True:
        artifact.checkpoint()
        size = file.readinto(view[kept:])
        filled = kept + size
        if not filled:
            return
        # The end of a line that goes on is looked at with its rest.
        end = filled if not size else buffer.rfind(b"\n", 0, filled) + 1
        long = not end and filled == PIECE_BYTES
        end = filled if long else end
        # In the middle of a line, nothing begins.
        at, counted = int(position > line_start), 0
        while at < end and (found := pattern.find(buffer, at, end)) >= 0:
            if found == end and (size or buffer[end - 1] == LINE_FEED):
                break
            ends = buffer.count(b"\n", counted, found)
            if ends:
                line += ends
                line_start = position + buffer.rfind(b"\n", counted, found) + 1
            counted = found
            if line > told:
                told = line
                yield LineMatch(line, line_start, position + found - line_start)
            at = buffer.find(b"\n", found, end) + 1 or end
        if ends := buffer.count(b"\n", counted, end):
            line += ends
            line_start = position + buffer.rfind(b"\n", counted, end) + 1
        if not size:
            return
        used = end - OVERLAP_BYTES if long else end
        kept = filled - used
        buffer[:kept] = buffer[used:filled]
        position += used


def read_line_at(file: FileIO, start: int, at: int, artifact: Artifact, *, limit: int) -> tuple[str | None, int | None]:
    """Return the line that begins at `start`, and the position of the next; None for both at the end of the file.

    At most about `limit` bytes around the position `at` within the line are returned.
    """
    skip = max(0, at - limit // 4) if at > limit // 2 else 0
    file.seek(start + skip)
    data = file.read(limit + 1)
    if not data:
        return None, None
    end = data.find(b"\n")
    whole = end >= 0 or len(data) <= limit
    text = data[: end if end >= 0 else limit].removesuffix(b"\r").decode("utf-8", "replace")
    ends = start + skip + end if end >= 0 else find_line_end(file, start + skip + len(data), artifact)
    return f"{'…' if skip else ''}{text}{'' if whole else '…'}", ends + 1
