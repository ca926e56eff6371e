"""A server on this machine that speaks JSON over HTTP and does to each request what a test says."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """A response: JSON, or bytes as they are. `cut`: the connection ends in the middle of it."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False


Handler = Callable[[Asked], Awaitable[Answer]]


@dataclass
class Served:
    """Where it listens, and what it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list[Asked])
    under_way: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    @property
    def bodies(self) -> list[Any]:
        return [asked.body for asked in self.asked if asked.method == "POST"]


@asynccontextmanager
async def serving(handler: Handler, port: int = 0) -> AsyncGenerator[Served, None]:
    """While the block runs."""
    served = Served()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served.under_way.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                asked = await _request(reader)
                served.asked.append(asked)
                answer = await handler(asked)
                writer.write(_response(answer))
                await writer.drain()
                if answer.cut:
                    break
        writer.close()
        served.under_way.discard(task)

    server = await asyncio.start_server(talk, "127.0.0.1", port, limit=2**26)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield served
    finally:
        server.close()
        for task in list(served.under_way):
            task.cancel()
        if served.under_way:
            await asyncio.wait(served.under_way)


async def _request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, json.loads(content) if content else None)


def _response(answer: Answer) -> bytes:
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **answer.headers}
    head = f"HTTP/1.1 {answer.status} OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head.encode() + b"\r\n" + (body[: len(body) // 2] if answer.cut else body)


@contextmanager
def served_apart(module: str, *options: str) -> Generator[str, None, None]:
    """The address of a server in a process of its own, as `python -m MODULE` runs it."""
    root = Path(__file__).parents[3]
    argv = [sys.executable, "-m", module, *options]
    with subprocess.Popen(argv, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def serve_forever(handler: Handler, port: int = 0) -> None:
    """What such a process does."""
    async with serving(handler, port) as served:
        print(served.url, flush=True)
        await asyncio.Event().wait()
