"""Bounded capture of command output: the head and tail, and an artifact with the complete output if it is longer."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from handrail_cli.process.charset_detection import UTF_8, detect_charset, is_binary_output

SHOWN_BYTES = 51_200
HEAD_BYTES = SHOWN_BYTES // 2
TAIL_BYTES = SHOWN_BYTES - HEAD_BYTES
# A block of output; long ones come in larger blocks.
SMALL_BLOCK = 65_536
LARGE_BLOCK = 262_144
# No command may fill the disk: an artifact ends here, if nothing else is configured, and says so.
MAX_ARTIFACT_BYTES = 256 * 1024 * 1024
LIMIT_REASON = "plugins.cli.output_limit allows no more"
REPLACED = "\N{REPLACEMENT CHARACTER}"
CONTINUATION = range(0x80, 0xC0)
# So many of the last bytes tell whether a program waits for an answer.
ENDING_BYTES = 2_000
# How much of an artifact the system may hold in memory before it is told to let go, and how much is written at once: memory that was in use
# a moment ago is several times faster to write to than fresh memory.
IN_MEMORY_BYTES = 2 * 1024 * 1024
PIECE_BYTES = 131_072


class OutputSink(Protocol):
    """Destination of the complete data of a long output."""

    def write(self, data: Any, /) -> object:
        """Append bytes, which are not kept as they are: the next ones come in the same place."""
        ...

    def close(self) -> object: ...

    def wire(self) -> dict[str, Any]: ...


class FileSink(OutputSink, Protocol):
    """A sink that is a file at `path`."""

    path: Path


class UncachedFileSink:
    """File sink that stays out of the page cache: written data goes to disk and is dropped from memory all along."""

    def __init__(self, file: FileSink) -> None:
        self._file = file
        self._fd: int | None = os.open(file.path, os.O_RDONLY)
        self._size = 0

    def write(self, data: memoryview) -> None:
        """Append bytes. Raises OSError when the disk is full."""
        for start in range(0, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            self._file.write(piece)
            self._size += len(piece)
            if self._size % IN_MEMORY_BYTES < len(piece):
                self._let_go()

    def _let_go(self) -> None:
        if sys.platform == "linux" and self._fd is not None:
            # Some file systems know nothing of this, and it is only advice. It starts the writing and does not wait for it.
            with contextlib.suppress(OSError):
                os.posix_fadvise(self._fd, 0, self._size, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        """Close the file; nothing more is written."""
        self._file.close()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def wire(self) -> dict[str, Any]:
        """Return the file as represented in a result."""
        return self._file.wire()


@dataclass(frozen=True, slots=True)
class OutputText:
    """Text for the model. `text` has a marked gap if `truncated`, and only states the size if the output is `binary`.

    `charset` is the encoding it was decoded with; `lossy`: parts of it are invalid in that encoding; `lists`: NUL ends
    its lines. `artifact` names the file with the complete output if that is longer than the text; `cut` says why the
    artifact is incomplete.
    """

    text: str
    truncated: bool = False
    binary: bool = False
    charset: str = UTF_8
    lossy: bool = False
    lists: bool = False
    artifact: dict[str, Any] | None = None
    cut: str | None = None


class OutputBuffer(Protocol):
    """Buffer that receives one of a command's outputs.

    `whole_screen`: the output is a screen drawing, in which the latest output is not necessarily at the bottom.
    """

    @property
    def whole_screen(self) -> bool: ...
    def space(self) -> memoryview: ...
    def took(self, size: int) -> None: ...
    def take(self, *, last: bool = False) -> OutputText: ...
    def finish(self) -> OutputText: ...
    def close(self) -> None: ...
    def beginning(self) -> bytes: ...
    def ending(self) -> bytes: ...


class HeadTailBuffer:
    """Buffer that keeps the first and last bytes of an output, and all bytes in a sink opened only when needed.

    Data is read directly into `space()`. Full buffers are written to the sink in blocks suited to the disk, up to
    `limit` bytes in total. `charset` is the encoding of text that is not UTF-8.
    """

    __slots__ = (
        "_before", "_buffer", "_charset", "_closed", "_ended", "_filled", "_head", "_limit", "_open", "_sink", "_tail", "cut", "total",
    )  # fmt: skip

    def __init__(
        self,
        open_sink: Callable[[], OutputSink] | None = None,
        *,
        limit: int = MAX_ARTIFACT_BYTES,
        charset: str | None = None,
    ) -> None:
        self._buffer = bytearray(SMALL_BLOCK)
        self._filled = 0
        self._head = b""
        self._tail = b""
        self._before = b""
        self._open = open_sink
        self._limit = limit
        self._charset = charset
        self._ended = self._closed = False
        self._sink: OutputSink | None = None
        self.total = 0
        self.cut: str | None = None

    @property
    def whole_screen(self) -> bool:
        """It is lines."""
        return False

    def space(self) -> memoryview:
        """Return the buffer space for the next bytes; never empty."""
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
            self._head = bytes(full[:HEAD_BYTES])
        self._tail = (self._tail + bytes(full[-TAIL_BYTES:]))[-TAIL_BYTES:]
        self._spill(full)
        self._filled = 0
        if len(self._buffer) < LARGE_BLOCK:
            full.release()
            self._buffer = bytearray(LARGE_BLOCK)

    def _spill(self, data: memoryview) -> None:
        if self._ended:
            return
        try:
            if self._sink is None and self._open is not None:
                self._sink = self._open()
            if self._sink is not None:
                room = self._limit - (self.total - len(data))
                if room < len(data):
                    self.cut = LIMIT_REASON
                if room > 0:
                    self._sink.write(data[:room])
        # The disk is full. The command goes on all the same, and its head and tail are shown.
        except OSError as exc:
            self.cut = exc.strerror or str(exc)
            self._ended = True

    def beginning(self) -> bytes:
        """Return the first bytes received and not yet taken."""
        return self._head or bytes(memoryview(self._buffer)[: min(self._filled, HEAD_BYTES)])

    def ending(self) -> bytes:
        """Return the last bytes received, including those already taken."""
        here = bytes(memoryview(self._buffer)[max(0, self._filled - ENDING_BYTES) : self._filled])
        return here if len(here) == ENDING_BYTES else (self._before + self._tail + here)[-ENDING_BYTES:]

    def shown(self) -> OutputText:
        """Return the retained output as text."""
        here = bytes(memoryview(self._buffer)[: self._filled])
        if self.total <= SHOWN_BYTES:
            return self._as_text(here)
        return self._as_text(self._head or here[:HEAD_BYTES], (self._tail + here)[-TAIL_BYTES:])

    def _as_text(self, head: bytes, tail: bytes | None = None) -> OutputText:
        """Decode the output as text; without a tail, the head is the complete output."""
        cut = tail is not None
        charset = detect_charset(head, locale=self._charset, cut=cut)
        if is_binary_output(head, charset):
            return OutputText(f"[{self.total} bytes of binary data]", cut, binary=True)
        if tail is None:
            return _create_output_text(head.decode(charset, "replace"), charset, cut=False, given=head)
        if charset == UTF_8:
            head, tail = _drop_partial_end(head), _drop_partial_start(tail)
        gap = self.total - HEAD_BYTES - TAIL_BYTES
        # What marks the order of the bytes stands only at the start.
        rest = tail.decode({"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(charset, charset), "replace")
        text = f"{head.decode(charset, 'replace')}\n[… {gap} bytes left out …]\n{rest}"
        return _create_output_text(text, charset, cut=True, given=head + tail)

    def take(self, *, last: bool = False) -> OutputText:
        """Return the output since the last call and discard it.

        An incomplete character at the end is kept for the next call, unless `last`: no more output will come.
        """
        here = bytes(memoryview(self._buffer)[max(0, self._filled - 3) : self._filled])
        begun = b"" if last else _find_partial_character(here)
        self._filled -= len(begun)
        self.total -= len(begun)
        shown = self.finish()
        self._before = self.ending()
        self._head = self._tail = b""
        self._filled = self.total = 0
        self._sink = self.cut = None
        self._ended = self._closed = False
        self.feed(begun)
        return shown

    def finish(self) -> OutputText:
        """Return the retained output as text; if the output is longer, the artifact is now complete."""
        shown = self.shown()
        if (shown.binary or shown.lossy) and self._filled and not self._ended:
            self._flush()
        self.close()
        if self._sink is None:
            return replace(shown, cut=self.cut)
        return replace(shown, artifact=self._sink.wire(), cut=self.cut)

    def close(self) -> None:
        """Complete and close the sink if the output is too long to show. Later output is kept only as head and tail."""
        if self.total > SHOWN_BYTES and self._filled and not self._ended:
            self._flush()
        if self._sink is not None and not self._closed:
            self._sink.close()
            self._closed = self._ended = True


def _create_output_text(text: str, charset: str, *, cut: bool, given: bytes) -> OutputText:
    """Create the output text, with NUL replaced by line breaks.

    NUL ends the lines of some lists; invisible, it would run them together.
    """
    lists = "\0" in text
    lossy = charset == UTF_8 and text.count(REPLACED) > given.count(REPLACED.encode())
    return OutputText(text.replace("\0", "\n") if lists else text, cut, charset=charset, lossy=lossy, lists=lists)


def _find_partial_character(data: bytes) -> bytes:
    """Return the bytes at the end that begin an incomplete UTF-8 character."""
    for back in range(1, len(data) + 1):
        byte = data[-back]
        if byte not in CONTINUATION:
            length = 2 if 0xC2 <= byte < 0xE0 else 3 if 0xE0 <= byte < 0xF0 else 4 if 0xF0 <= byte < 0xF5 else 1
            return data[-back:] if length > back else b""
    return b""


def _drop_partial_end(data: bytes) -> bytes:
    """Return the data without the first bytes of a truncated character at its end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte in CONTINUATION:
            continue
        length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return data if length == back else data[:-back]
    return data


def _drop_partial_start(data: bytes) -> bytes:
    """Return the data without the last bytes of a truncated character at its start."""
    for start in range(min(3, len(data))):
        if data[start] not in CONTINUATION:
            return data[start:]
    return data[3:]
