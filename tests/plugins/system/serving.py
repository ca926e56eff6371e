"""A server on this machine that does to each request what a test says, byte by byte."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from handrail import ToolContext
from handrail.net.web_client import RequestLimits, WebClient
from handrail_system.config import SystemConfig

ETAG = '"v1"'


@dataclass(frozen=True)
class Asked:
    """One request: its head as text, and its headers in small letters."""

    head: str
    headers: dict[str, str]

    @property
    def start(self) -> int | None:
        """Where the range that is asked for begins."""
        found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("range", ""))
        return int(found[1]) if found else None


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Served:
    """Where it listens, what it does at each path, and what it was asked."""

    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    asked: list[Asked] = field(default_factory=list[Asked])
    over: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    def url(self, path: str, host: str = "good.example") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.under_way.add(task)
        # The end of the test cancels what is still being sent.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")[1:]
            headers = {
                name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            asked = Asked(head, headers)
            self.asked.append(asked)
            await self.answers[head.split(" ")[1]](asked, writer)
            await writer.drain()
        writer.close()
        with suppress(ConnectionError, asyncio.CancelledError):
            await writer.wait_closed()
        self.under_way.discard(task)


@asynccontextmanager
async def serving() -> AsyncGenerator[Served, None]:
    served = Served()
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        served.over.set()
        server.close()
        for task in served.under_way:
            task.cancel()
        # They end their connections: what is left open would be reported in a later test.
        if served.under_way:
            await asyncio.wait(served.under_way, timeout=5)


def head(status: int = 200, /, **headers: object) -> bytes:
    lines = [f"HTTP/1.1 {status} X", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


def says(data: bytes) -> Answer:
    """Sends these bytes and closes."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return answer


def file(content: bytes, status: int = 200, /, **headers: object) -> Answer:
    """A file as a good server without ranges sends it."""
    return says(head(status, content_length=len(content), **headers) + content)


def ranged(content: bytes, *, stop_after: int | None = None, etag: str = ETAG, **headers: object) -> Answer:
    """A file from a server with ranges; the first `stop_after` bytes of each answer are all it sends before the connection ends."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        start = asked.start
        if start is None or asked.headers.get("if-range") != etag:
            body, first = content, head(content_length=len(content), etag=etag, **headers)
        else:
            body = content[start:]
            told = f"bytes {start}-{len(content) - 1}/{len(content)}"
            first = head(206, content_length=len(body), content_range=told, etag=etag, **headers)
        writer.write(first + (body if stop_after is None else body[:stop_after]))

    return answer


def in_turn(*answers: Answer) -> Answer:
    """One after another; the last for all that follow."""
    left = list(answers)

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(asked, writer)

    return answer


def slowly(data: bytes, *, size: int, pause: float) -> Answer:
    """So many bytes at a time, with pauses."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        for at in range(0, len(data), size):
            writer.write(data[at : at + size])
            await writer.drain()
            await asyncio.sleep(pause)

    return answer


def then_silence(data: bytes, served: Served) -> Answer:
    """Sends these bytes and then nothing, without closing."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        await served.over.wait()

    return answer


NAMES = {"good.example": "127.0.0.1", "other.example": "127.0.0.1", "inner.example": "10.0.0.1"}


async def known(host: str, port: int) -> Sequence[str]:
    """A resolver of names that are nobody's."""
    return [NAMES[host]]


def to_this_machine(context: ToolContext) -> WebClient:
    """The client of tests: names of ours lead to this machine, which it may reach. It is given in code; no setting does this."""
    config = context.config
    assert isinstance(config, SystemConfig)
    limits = RequestLimits(
        size=config.download_max_bytes, seconds=config.download_timeout, silence=config.download_silence
    )
    return WebClient(allow_private=("127.0.0.1",), resolver=known, limits=limits)
