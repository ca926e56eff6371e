"""What a command wrote, kept within bounds: its head and its tail, and the whole in an artifact when that is more."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

SHOWN = 51_200
HEAD = SHOWN // 2
TAIL = SHOWN - HEAD
# A block of output; long ones come in larger blocks.
SMALL = 65_536
LARGE = 262_144
# No command may fill the disk: an artifact ends here and says so.
MAX_WHOLE = 256 * 1024 * 1024
CONTINUATION = range(0x80, 0xC0)
# How much of an artifact the system may hold in memory before it is told to let go, and how much is written at once: memory that was in use
# a moment ago is several times faster to write to than fresh memory.
IN_MEMORY = 2 * 1024 * 1024
PIECE = 131_072


class Sink(Protocol):
    """Where the whole of a long output goes."""

    def write(self, data: Any, /) -> object:
        """Append bytes, which are not kept as they are: the next ones come in the same place."""
        ...

    def close(self) -> object: ...

    def wire(self) -> dict[str, Any]: ...


class File(Sink, Protocol):
    """A sink that is a file at `path`."""

    path: Path


class PassingThrough:
    """A sink into a file that does not stay in the system's memory: what was written goes to the disk and is let go of, all along."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._fd: int | None = os.open(file.path, os.O_RDONLY)
        self._size = 0

    def write(self, data: memoryview) -> None:
        """Append bytes. Raises OSError when the disk is full."""
        for start in range(0, len(data), PIECE):
            piece = data[start : start + PIECE]
            self._file.write(piece)
            self._size += len(piece)
            if self._size % IN_MEMORY < len(piece):
                self._let_go()

    def _let_go(self) -> None:
        if sys.platform == "linux" and self._fd is not None:
            # Some file systems know nothing of this, and it is only advice. It starts the writing and does not wait for it.
            with contextlib.suppress(OSError):
                os.posix_fadvise(self._fd, 0, self._size, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """No more will be written."""
        self._file.close()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def wire(self) -> dict[str, Any]:
        """How a result names the file."""
        return self._file.wire()


@dataclass(frozen=True, slots=True)
class Shown:
    """Text for the model: `text` has a marked gap when `truncated`."""

    text: str
    truncated: bool


class HeadTail:
    """Bytes as they come: the first and the last of them are kept, and all of them in a sink that is opened only when it is needed.

    They are read straight into `space()`. The buffer goes to the sink whole, in blocks that suit the disk.
    """

    __slots__ = ("_buffer", "_ended", "_filled", "_head", "_open", "_tail", "cut", "sink", "total")

    def __init__(self, open_sink: Callable[[], Sink] | None = None) -> None:
        self._buffer = bytearray(SMALL)
        self._filled = 0
        self._head = b""
        self._tail = b""
        self._open = open_sink
        self._ended = False
        self.sink: Sink | None = None
        self.total = 0
        self.cut = False

    def space(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._filled == len(self._buffer):
            self._flush()
        return memoryview(self._buffer)[self._filled :]

    def took(self, size: int) -> None:
        """So many bytes have been put into `space()`."""
        self._filled += size
        self.total += size

    def feed(self, data: bytes) -> None:
        """Add bytes that are somewhere else."""
        while data:
            space = self.space()
            size = min(len(space), len(data))
            space[:size] = data[:size]
            self.took(size)
            data = data[size:]

    def _flush(self) -> None:
        """Empty the buffer: into the sink, and what is kept of it aside."""
        full = memoryview(self._buffer)[: self._filled]
        if not self._head:
            self._head = bytes(full[:HEAD])
        self._tail = (self._tail + bytes(full[-TAIL:]))[-TAIL:]
        self._spill(full)
        self._filled = 0
        if len(self._buffer) < LARGE:
            full.release()
            self._buffer = bytearray(LARGE)

    def _spill(self, data: memoryview) -> None:
        if self._ended:
            return
        try:
            if self.sink is None and self._open is not None:
                self.sink, self._open = self._open(), None
            if self.sink is not None:
                room = MAX_WHOLE - (self.total - len(data))
                self.cut = self.cut or room < len(data)
                if room > 0:
                    self.sink.write(data[:room])
        # The disk is full. The command goes on all the same, and its head and tail are shown.
        except OSError:
            self.cut = self._ended = True
            self._open = None

    def shown(self) -> Shown:
        """What is kept, as text; bytes that are not UTF-8 become U+FFFD."""
        here = bytes(memoryview(self._buffer)[: self._filled])
        if self.total <= SHOWN:
            return Shown(here.decode("utf-8", "replace"), False)
        head = _whole_at_end(self._head or here[:HEAD]).decode("utf-8", "replace")
        tail = _whole_at_start((self._tail + here)[-TAIL:]).decode("utf-8", "replace")
        gap = self.total - HEAD - TAIL
        return Shown(f"{head}\n[… {gap} bytes left out …]\n{tail}", True)

    def take(self) -> Shown:
        """What came since the last time, which is forgotten by that."""
        shown = self.shown()
        self._head = self._tail = b""
        self._filled = self.total = 0
        return shown

    def close(self) -> None:
        """The sink gets no more: whatever is more than can be shown is in it now. What comes later is only kept as head and tail."""
        if self.total > SHOWN and self._filled and (self.sink is not None or self._open is not None):
            self._flush()
        if self.sink is not None:
            self.sink.close()
            self._ended = True


def _whole_at_end(data: bytes) -> bytes:
    """Without the first bytes of a character that was cut."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte in CONTINUATION:
            continue
        length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return data if length == back else data[:-back]
    return data


def _whole_at_start(data: bytes) -> bytes:
    """Without the last bytes of a character that was cut."""
    for start in range(min(3, len(data))):
        if data[start] not in CONTINUATION:
            return data[start:]
    return data[3:]
