"""Lines of a file of any size, by number: found by an index of one number for each MiB, which is made as far as it is needed."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import SEEK_END, FileIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.artifacts.store import Artifact

BLOCK_BYTES = 2**20
# Bytes that are read at once where lines are looked for.
STEP_BYTES = 65_536


@dataclass(slots=True)
class LineIndex:
    """Number of newlines before each full block of a file, as far as counted."""

    before: list[int] = field(default_factory=lambda: [0])
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class LinePage:
    """Some lines of a file, `first` (from 1) to `last`, as one text. `last` < `first`: none. `cut`: bytes left out at the end of the last one."""

    text: str
    first: int
    last: int
    cut: int = 0


class ArtifactLines:
    """The lines of one artifact, counted from 1. A line ends at a line feed; one before its end is a carriage return is shown without that."""

    def __init__(self, artifact: Artifact, marks: LineIndex) -> None:
        self._artifact = artifact
        self._marks = marks

    def count(self) -> int:
        """Return the number of lines, including a last one without a line feed."""
        with self._artifact.open() as file:
            full, position = self._counted(file, upto=None)
            rest = _read_at(file, position, BLOCK_BYTES)
            size = position + len(rest)
            ends = full + rest.count(b"\n")
            return ends + int(size > 0 and not (rest or _read_at(file, size - 1, 1)).endswith(b"\n"))

    def page(self, first: int, count: int, *, skip: int = 0, limit: int) -> LinePage:
        """So many lines from `first` on, in at most `limit` bytes; of each the first `skip` bytes are left out."""
        with self._artifact.open() as file:
            position = self.start_of(first, file)
            skip = min(skip, os.fstat(file.fileno()).st_size)
            return _read_page(file, position, first, count, skip=skip, limit=limit, artifact=self._artifact)

    def tail(self, count: int, *, all: int, limit: int) -> LinePage:
        """Return the last `count` of `all` lines, or as many as fit into `limit` bytes; of a longer line, its end."""
        with self._artifact.open() as file:
            size = file.seek(0, SEEK_END)
            reach = min(size, limit)
            data = _read_at(file, size - reach, reach).removesuffix(b"\n")
            whole = reach == size or _read_at(file, size - reach - 1, 1) == b"\n"
        found = data.split(b"\n") if all else []
        kept = found if whole or len(found) == 1 else found[1:]
        shown = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in kept[-count:]]
        return LinePage("\n".join(shown), all - len(shown) + 1, all)

    def start_of(self, line: int, file: FileIO) -> int:
        """Return the byte offset where a line begins, or the end of the file if it has fewer lines."""
        wanted = line - 1
        self._counted(file, upto=wanted)
        block = max(0, bisect_right(self._marks.before, wanted - 1) - 1) if wanted else 0
        position, ends = block * BLOCK_BYTES, self._marks.before[block]
        while ends < wanted:
            data = _read_at(file, position, STEP_BYTES)
            if not data:
                return position
            here = data.count(b"\n")
            if ends + here >= wanted:
                at = -1
                for _ in range(wanted - ends):
                    at = data.find(b"\n", at + 1)
                return position + at + 1
            ends += here
            position += len(data)
        return position

    def _counted(self, file: FileIO, *, upto: int | None) -> tuple[int, int]:
        """Count full blocks until that many newlines are known, or to the end.

        Returns the number of newlines in full blocks, and the offset where these end.
        """
        before = self._marks.before
        with self._marks.lock:
            buffer = bytearray(BLOCK_BYTES)
            while upto is None or before[-1] < upto:
                self._artifact.checkpoint()
                file.seek((len(before) - 1) * BLOCK_BYTES)
                if _fill_buffer(file, buffer) < BLOCK_BYTES:
                    break
                before.append(before[-1] + buffer.count(b"\n"))
            return before[-1], (len(before) - 1) * BLOCK_BYTES


def _read_page(
    file: FileIO, position: int, first: int, count: int, *, skip: int, limit: int, artifact: Artifact
) -> LinePage:
    shown: list[str] = []
    room, cut = limit, 0
    data, at = b"", 0
    while len(shown) < count and room > 0:
        end = data.find(b"\n", at)
        if end < 0:
            # What is left of the last piece is not a whole line: the next begins with it.
            position, at = position + at, 0
            artifact.checkpoint()
            data = _read_at(file, position, limit + skip + 1)
            end = data.find(b"\n")
            if not data:
                break
        over = end < 0 and len(data) > limit + skip
        line = data[at + skip : end if end >= 0 else None]
        if over or len(line) > room:
            # Of a line that is too long something is shown when it stands alone; otherwise it comes first the next time.
            if not shown:
                cut = find_line_end(file, position + at, artifact) - position - at - skip - room
                shown.append(line[:room].decode("utf-8", "ignore"))
            break
        shown.append(line.removesuffix(b"\r").decode("utf-8", "replace"))
        room -= len(line) + 1
        at = len(data) if end < 0 else end + 1
    return LinePage("\n".join(shown), first, first + len(shown) - 1, max(0, cut))


def find_line_end(file: FileIO, position: int, artifact: Artifact) -> int:
    """Return the end of the line that contains the position: its line feed, or the end of the file."""
    for start, data in iter_blocks(file, position, artifact):
        if (at := data.find(b"\n")) >= 0:
            return start + at
        position = start + len(data)
    return position


def iter_blocks(file: FileIO, position: int, artifact: Artifact) -> Iterator[tuple[int, bytes]]:
    """Yield the rest of the file in blocks, each with its position."""
    while data := _read_at(file, position, BLOCK_BYTES):
        artifact.checkpoint()
        yield position, data
        position += len(data)


def _read_at(file: FileIO, position: int, size: int) -> bytes:
    file.seek(position)
    return file.read(size)


def _fill_buffer(file: FileIO, buffer: bytearray) -> int:
    """Read until the buffer is full or the file ends; how many bytes it holds."""
    view, filled = memoryview(buffer), 0
    while filled < len(buffer) and (size := file.readinto(view[filled:])):
        filled += size
    return filled
