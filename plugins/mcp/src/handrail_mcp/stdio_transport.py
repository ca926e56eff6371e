"""The protocol's pipe: stdin and stdout, taken away from everything else in this process."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import anyio
import anyio.lowlevel

from handrail_mcp.invalid_messages import build_error_response

# A message that is longer is dropped, as any other line that is no message.
MAX_LINE = 32 * 2**20
CHUNK_BYTES = 2**16
# What is taken from a client that does not read what it is told: so many characters of messages, and then no more until it reads.
TAKEN = 8 * 2**20
# What a message counts for beside its length.
MESSAGE_BYTES = 2_000
# Seconds that a client which has left, and writes nothing more, has for reading on.
DRAIN_TIMEOUT_S = 2.0
# What a pipe takes without blocking when it says that it can be written.
PIPE_BUF = 512 if sys.platform == "win32" else select.PIPE_BUF


def claim_stdio() -> tuple[int, int] | None:
    """Return the file descriptors that now carry the protocol, for reading and for writing.

    From here on, descriptor 0 is empty and 1 is stderr, for this process and its children, so that printed output
    cannot get between the messages. Returns None on Windows, where pipes cannot be polled; there the SDK does the same
    when it starts serving.
    """
    if sys.platform == "win32":
        return None
    wire = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    # What had been printed and was still in the buffer goes to stderr, too.
    sys.stdout.flush()
    sys.stdout = sys.stderr
    return wire


def open_streams(wire: tuple[int, int] | None) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    """Return the SDK's message streams over what `claim_stdio` returned."""
    from mcp.server.stdio import stdio_server

    if wire is None:
        return stdio_server()
    reading, writing = wire
    pipe = PipeWriter(writing)
    return stdio_server(cast("anyio.AsyncFile[str]", MessageReader(reading, pipe)), cast("anyio.AsyncFile[str]", pipe))


class LineReader:
    """Reader of the lines that arrive on a descriptor, without their ends.

    It waits without a thread: one that is blocked in a read would keep the process from exiting on a signal.
    """

    def __init__(self, descriptor: int, *, limit: int = MAX_LINE) -> None:
        self._descriptor = descriptor
        self._limit = limit

    async def __aiter__(self) -> AsyncGenerator[str, None]:
        kept: list[bytes] = []
        size = 0
        while chunk := await self._read():
            *ended, rest = chunk.split(b"\n")
            for end in ended:
                yield self._line([*kept, end], size + len(end))
                kept, size = [], 0
            size += len(rest)
            # Of a line that is too long, only the length is kept.
            kept = [*kept, rest] if size <= self._limit else []
        if kept:
            yield self._line(kept, size)

    def _line(self, parts: list[bytes], size: int) -> str:
        return b"".join(parts).decode("utf-8", "replace") if size <= self._limit else ""

    async def _read(self) -> bytes:
        await _wait_ready(anyio.wait_readable, self._descriptor)
        return os.read(self._descriptor, CHUNK_BYTES)


class MessageReader:
    """The lines that are messages; any other is answered with an error here, as the SDK only drops it."""

    def __init__(self, descriptor: int, answers: PipeWriter) -> None:
        self._lines = LineReader(descriptor)
        self._answers = answers

    async def __aiter__(self) -> AsyncGenerator[str, None]:
        async for line in self._lines:
            await self._answers.keep_up(len(line) + MESSAGE_BYTES)
            if (error := build_error_response(line)) is None:
                yield line
            else:
                await self._answers.write(f"{error}\n")
        self._answers.last = True


class PipeWriter:
    """Writer of text to a descriptor: one complete text after another.

    A slow reader does not block the event loop.
    """

    def __init__(self, descriptor: int) -> None:
        # The client has left: what it does not take soon is not kept for it.
        self.last = False
        self._descriptor = descriptor
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)
        self._turn = anyio.Lock()
        self._blocked = False
        self._taken = 0
        self._moves = anyio.Event()

    async def write(self, text: str) -> None:
        left = memoryview(text.encode())
        async with self._turn:
            while left:
                # To ask is cheaper than to wait, and there nearly always is room.
                if not self._room.poll(0):
                    self._blocked = True
                    await self._wait()
                    self._go_on()
                left = left[os.write(self._descriptor, left[:PIPE_BUF]) :]

    async def _wait(self) -> None:
        """Wait for room; `BrokenPipeError` when the client has left and reads no more."""
        while True:
            with anyio.move_on_after(DRAIN_TIMEOUT_S):
                await _wait_ready(anyio.wait_writable, self._descriptor)
                return
            if self.last:
                raise BrokenPipeError("the client has left and reads no more")

    async def keep_up(self, size: int) -> None:
        """Count what was read while the reader takes nothing; wait for it when that is much. A client that never reads is not read for ever."""
        if self._blocked:
            self._taken += size
            while self._blocked and self._taken > TAKEN:
                await self._moves.wait()

    def _go_on(self) -> None:
        self._blocked, self._taken = False, 0
        self._moves.set()
        self._moves = anyio.Event()

    async def flush(self) -> None:
        """Do nothing: nothing is buffered."""


async def _wait_ready(ready: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await ready(descriptor)
    except PermissionError:
        # A file or /dev/null: it never makes anybody wait.
        await anyio.lowlevel.checkpoint()
