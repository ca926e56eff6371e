"""Local server process: its program, the pipe to it, and a shutdown that leaves no processes behind.

The SDK's own transport keeps a line of any length in memory, and leaves children that outlive the program. This one
therefore has limits, and also ends what the program started.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
from mcp import types
from mcp.shared.message import SessionMessage

from handrail.sanitize.envelope import clean_text
from handrail_mcp.client.bounds import is_too_large, within_bounds

log = logging.getLogger(__name__)

# Laid into the environment of every server, so that what it started can be told, whatever group or parent that has.
MARK_VARIABLE = "HANDRAIL_MARK_SERVER"
MAX_MESSAGE = 16 * 2**20
READ_BYTES = 2**16
# Of stderr, the end that is kept to say why a program ended.
STDERR_TAIL_BYTES = 4_096
# Messages that answer nothing, and lines that are none: so many at once, and so many a second from then on.
BURST, RATE = 5_000, 1_000
# Seconds that a program has to end by itself once its input is closed, and again after SIGTERM.
EXIT_GRACE_S = 1.0
EXIT_POLL_S = 0.01

# Where in a line that cannot be read its id is looked for.
ID = re.compile(rb'"id"\s{0,9}:\s{0,9}(\d{1,18})(?!\d)')
ENDS = 4_096

MessageStreams = tuple[Any, Any]


@dataclass(slots=True)
class RateBudget:
    """Rate limit for messages that a server sends unasked."""

    left: float = BURST
    since: float = field(default_factory=anyio.current_time)

    def spent(self) -> bool:
        """Take one away; True when nothing was left."""
        now = anyio.current_time()
        self.left, self.since = min(BURST, self.left + RATE * (now - self.since)), now
        self.left -= 1
        return self.left < 0


@asynccontextmanager
async def run_server_program(
    argv: Sequence[str], *, environment: Mapping[str, str], cwd: str, ended: Callable[[str], None]
) -> AsyncGenerator[MessageStreams, None]:
    """Run a server program and yield the SDK's message streams to it.

    `ended` is called with the reason when the program or the communication with it ends. Raises OSError if the program
    cannot be started.
    """
    mark = secrets.token_hex(8)
    process = await anyio.open_process(
        list(argv), env={**environment, MARK_VARIABLE: mark}, cwd=cwd, start_new_session=sys.platform != "win32"
    )
    talk = _ProcessChannel(process, ended)
    try:
        async with anyio.create_task_group() as tasks:
            for task in (talk.read, talk.write, talk.listen):
                tasks.start_soon(task)
            try:
                yield talk.reading, talk.writing
            finally:
                talk.over = True
                with anyio.CancelScope(shield=True):
                    await _end_process(process, mark)
                    talk.close()
                tasks.cancel_scope.cancel()
    finally:
        # Also when the tasks were never begun.
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        _close_transport(process)


class _ProcessChannel:
    """Message channel to the program and from it."""

    def __init__(self, process: anyio.abc.Process, ended: Callable[[str], None]) -> None:
        self._process = process
        self._ended = ended
        self._received, self.reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self.writing, self._sent = anyio.create_memory_object_stream[SessionMessage](0)
        self._words = b""
        self._patience = RateBudget()
        # The ids of requests that have no answer yet.
        self._asked: set[types.RequestId] = set()
        self.over = False

    async def read(self) -> None:
        why = "it closed its output"
        try:
            why = await self._take_lines() or why
            if not self.over:
                # Before the session is told that the connection is closed: that says less.
                self._ended(await self._why(why))
        finally:
            self._received.close()

    async def _take_lines(self) -> str | None:
        """Pass on what it says until it ends. Return why nothing more is taken, if it says too much."""
        try:
            async for line in self._lines():
                read = None if is_too_large(line) else _parse_message(line)
                message = self._answer(line) if read is None else within_bounds(read)
                answers = isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
                if answers and message.id in self._asked:
                    self._asked.discard(message.id)
                elif self._patience.spent():
                    raise _OutputFlood(f"it said more than {RATE:,} things a second that answer nothing")
                elif answers:
                    continue
                if message is not None:
                    await self._received.send(SessionMessage(message))
        except _OutputFlood as exc:
            return str(exc)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            pass
        return None

    async def write(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            async for message in self._sent:
                self._note(message.message)
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await pipe.send(f"{text}\n".encode())

    async def listen(self) -> None:
        """Keep the end of what it says on stderr."""
        pipe = self._process.stderr
        assert pipe is not None
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                self._words = (self._words + await pipe.receive(READ_BYTES))[-STDERR_TAIL_BYTES:]

    def _note(self, message: types.JSONRPCMessage) -> None:
        """Keep in mind which answers are due."""
        if isinstance(message, types.JSONRPCRequest):
            self._asked.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._asked.discard((message.params or {}).get("requestId", ""))

    def _answer(self, line: bytes) -> types.JSONRPCError | None:
        """Build an error response for an unreadable line that seems to answer a pending request.

        Without it, the caller would keep waiting. None if the line has no ID of a pending request.
        """
        found = next((int(id) for id in ID.findall(line[:ENDS] + line[-ENDS:]) if int(id) in self._asked), None)
        if found is None:
            return None
        wrong = types.ErrorData(code=types.PARSE_ERROR, message="the answer cannot be read")
        return types.JSONRPCError(jsonrpc="2.0", id=found, error=wrong)

    def close(self) -> None:
        for stream in (self._received, self.reading, self.writing, self._sent):
            stream.close()

    async def _lines(self) -> AsyncGenerator[bytes, None]:
        pipe = self._process.stdout
        assert pipe is not None
        kept: list[bytes] = []
        size = 0
        while True:
            try:
                chunk = await pipe.receive(READ_BYTES)
            except anyio.EndOfStream:
                return
            *ended, rest = chunk.split(b"\n")
            for end in ended:
                yield b"".join((*kept, end))
                kept, size = [], 0
            size += len(rest)
            kept.append(rest)
            if size > MAX_MESSAGE:
                raise _OutputFlood(f"it sent a message of more than {MAX_MESSAGE // 2**20} MB")

    async def _why(self, why: str) -> str:
        with anyio.move_on_after(0.2):
            while self._process.returncode is None:
                await anyio.sleep(EXIT_POLL_S)
        code = self._process.returncode
        told = why if code is None else f"it ended with the exit code {code}"
        words = clean_text(self._words.decode(errors="replace")).text.split("\n")
        last = next((line.strip() for line in reversed(words) if line.strip()), "")
        return f"{told}: {last[:300]}" if last and code else told


class _OutputFlood(Exception):
    """Server output that exceeds what a session accepts."""


def _parse_message(line: bytes) -> Any:
    """Parse the message on a line; None if the line holds no valid message."""
    if not line.strip():
        return None
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    # Some languages write halves of characters, which this reader refuses.
    if b"\\ud" in line.lower():
        with suppress(ValueError, RecursionError):
            whole = json.dumps(json.loads(line), ensure_ascii=False).encode(errors="replace")
            return types.jsonrpc_message_adapter.validate_json(whole, by_name=False)
    log.debug("a server sent a line that is no message: %r", line[:200])
    return None


# --- the end -------------------------------------------------------------------------------------------------------------------------------


async def _end_process(process: anyio.abc.Process, mark: str) -> None:
    """Ask it to end by closing its input, then tell it, then kill it; and the same with all that it started."""
    assert process.stdin is not None
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    await _wait_until_gone(lambda: process.returncode is not None, EXIT_GRACE_S)
    if sys.platform == "win32":
        if process.returncode is None:
            process.kill()
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = await anyio.to_thread.run_sync(_find_process_tree, process, mark)
        if not left:
            break
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        await _wait_until_gone(
            lambda left=left: not any(map(_is_alive, left)) and process.returncode is not None, EXIT_GRACE_S
        )


async def _wait_until_gone(gone: Callable[[], bool], seconds: float) -> None:
    with anyio.move_on_after(seconds):
        while not gone():
            await anyio.sleep(EXIT_POLL_S)


def _find_process_tree(process: anyio.abc.Process, mark: str) -> list[int]:
    """Return the live processes of the program and its descendants: all that carry the mark.

    Without `/proc`, return the negated ID of the process group.
    """
    if os.path.isdir("/proc/self"):
        own = [process.pid] if process.returncode is None else []
        return [*own, *(pid for pid in _find_marked_processes(mark) if pid not in own)]
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 0)
        return [-process.pid]
    return []


def _find_marked_processes(mark: str) -> Iterator[int]:
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as environ:
                    if wanted in environ.read().split(b"\0"):
                        yield int(name)
            except OSError:
                continue


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] != b"Z"
    except (ProcessLookupError, PermissionError):
        return False
    except (OSError, IndexError):
        return pid < 0


def _close_transport(process: anyio.abc.Process) -> None:
    """Close asyncio's side of it, which a child that holds a pipe would keep open, and which nothing public names."""
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if callable(close := getattr(transport, "close", None)):
        with suppress(PermissionError):
            close()
