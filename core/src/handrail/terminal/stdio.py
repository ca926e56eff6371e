"""Lines in and lines out without threads: pipes, files and terminals, while calls are running."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from select import PIPE_BUF
from typing import Any

import anyio
import anyio.lowlevel

from handrail.terminal.json_lines import OversizedLine, encode_json_line

__all__ = ["take_over_stdio"]

CHUNK_BYTES = 65_536
# The longest line that is taken: room for a file's content and a picture as arguments.
MAX_LINE = 16_000_000
# Bytes that wait for a reader, above which nothing more is read and events are left out.
MAX_PENDING = 16_000_000


@contextmanager
def take_over_stdio() -> Generator[tuple[int, int]]:
    """Yield descriptors of stdin and stdout that only the caller uses.

    Meanwhile the standard ones are /dev/null and stderr: nothing that a tool prints gets between the lines, and no
    child process reads them.
    """
    sys.stdout.flush()
    stdin, stdout = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    try:
        yield stdin, stdout
    finally:
        sys.stdout.flush()
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.close(stdin)
        os.close(stdout)


async def read_available(descriptor: int) -> bytes:
    """Return what can be read now, at least one byte; empty at the end of the input."""
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except PermissionError:
            # A regular file, or /dev/null: always ready, and not for epoll.
            await anyio.lowlevel.checkpoint()
        try:
            return os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            continue


async def read_lines(descriptor: int, *, longest: int = MAX_LINE) -> AsyncGenerator[bytes | OversizedLine]:
    """Yield the incoming lines without line ends, including a last line that lacks one.

    A line of more than `longest` bytes is discarded, and an `OversizedLine` is yielded.
    """
    held = bytearray()
    skipping = False
    while data := await read_available(descriptor):
        *whole, rest = data.split(b"\n")
        for part in whole:
            if skipping or len(held) + len(part) > longest:
                yield OversizedLine()
            else:
                yield bytes(held) + part
            held.clear()
            skipping = False
        held += rest
        if len(held) > longest:
            held.clear()
            skipping = True
    if skipping:
        yield OversizedLine()
    elif held:
        yield bytes(held)


class LineWriter:
    """Writer of lines in the given order, as fast as they are read, without blocking the event loop.

    `run` does the writing; it raises `BrokenPipeError` if the reader is gone.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending: deque[bytes] = deque()
        self._bytes = 0
        self._dropped = 0
        self._closed = False
        self._patient = True
        self._news = anyio.Event()
        self._room = anyio.Event()

    def write(self, value: Mapping[str, Any]) -> None:
        """Write one line of JSON."""
        self._push(encode_json_line(value).encode() + b"\n")

    def event(self, value: Mapping[str, Any]) -> None:
        """Write a line that may be dropped if too much is waiting; the number of dropped lines is reported later."""
        if self._bytes > MAX_PENDING:
            self._dropped += 1
            return
        if self._dropped:
            self.write({"event": "events_dropped", "count": self._dropped})
            self._dropped = 0
        self.write(value)

    async def room(self) -> None:
        """Wait until what is waiting to be read is not too much."""
        while self._patient and self._bytes > MAX_PENDING:
            self._room = anyio.Event()
            await self._room.wait()

    def hurry(self) -> None:
        """Stop making callers wait for room, because the program is about to end."""
        self._patient = False
        self._room.set()

    def close(self) -> None:
        """Close the writer: `run` ends once everything is written."""
        self._closed = True
        self._news.set()

    async def run(self) -> None:
        """Write until `close`."""
        while self._pending or not self._closed:
            if self._pending:
                await self._drain(memoryview(b"".join(self._pending)))
            else:
                self._news = anyio.Event()
                await self._news.wait()

    def _push(self, line: bytes) -> None:
        self._pending.append(line)
        self._bytes += len(line)
        self._news.set()

    async def _drain(self, data: memoryview) -> None:
        self._pending.clear()
        while data:
            written = await _write_some(self._descriptor, data)
            data = data[written:]
            self._bytes -= written
            if self._bytes <= MAX_PENDING:
                self._room.set()


async def _write_some(descriptor: int, data: memoryview) -> int:
    """Write part of the data and return how many bytes were written.

    That is what a ready pipe certainly accepts; for a file, what the system writes at once.
    """
    try:
        await anyio.wait_writable(descriptor)
    except PermissionError:
        await anyio.lowlevel.checkpoint()
        return os.write(descriptor, data)
    try:
        return os.write(descriptor, data[:PIPE_BUF])
    except BlockingIOError:
        return 0
