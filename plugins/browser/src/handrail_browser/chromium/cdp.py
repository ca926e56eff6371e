"""The DevTools protocol: commands and their answers, and events, over a pipe or a WebSocket (https://chromedevtools.github.io/devtools-protocol/)."""

from __future__ import annotations

import asyncio
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from handrail import Downstream, TimedOut

# A picture of a long page, in base64.
MAX_MESSAGE_BYTES = 256 * 1024 * 1024
COMMAND_S = 15.0

EventListener = Callable[[str, dict[str, Any]], None]


class TargetGone(Downstream):
    """The browser, or the page in it, has ended."""

    retryable = True


class CommandRefused(Downstream):
    """The browser answered a command with an error."""


class MessageChannel(ABC):
    """Messages to and from a browser."""

    @abstractmethod
    async def send(self, message: str) -> None:
        """Hand one over."""

    @abstractmethod
    async def receive(self) -> str | bytes | None:
        """Return the next message, or None after the last one."""

    @abstractmethod
    async def close(self) -> None:
        """Close the channel."""


class PipeChannel(MessageChannel):
    """Channel over the two pipes of `--remote-debugging-pipe`, where messages end in a zero byte.

    No other process can connect to the browser.
    """

    def __init__(
        self, reader: asyncio.StreamReader, reading: asyncio.BaseTransport, writing: asyncio.WriteTransport
    ) -> None:
        self._reader, self._reading, self._writing = reader, reading, writing

    @classmethod
    async def over(cls, reads: int, writes: int) -> PipeChannel:
        """Create a channel over two descriptors, which it then owns."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES)
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reads, "rb", 0)
        )
        writing, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(writes, "wb", 0))
        return cls(reader, reading, writing)

    async def send(self, message: str) -> None:
        self._writing.write(message.encode() + b"\0")

    async def receive(self) -> bytes | None:
        try:
            return (await self._reader.readuntil(b"\0"))[:-1]
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            return None

    async def close(self) -> None:
        self._reading.close()
        # A pipe whose other end has gone is closed already, and cannot be aborted.
        if not self._writing.is_closing():
            self._writing.abort()


class WebSocketChannel(MessageChannel):
    """The WebSocket of a browser that somebody else started."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    async def to(cls, url: str) -> WebSocketChannel:
        """Connect to a browser's own endpoint."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidURI

        try:
            connection = await connect(
                url, max_size=MAX_MESSAGE_BYTES, compression=None, proxy=None, open_timeout=COMMAND_S
            )
        except (OSError, InvalidHandshake, InvalidURI, TimeoutError) as exc:
            raise Downstream(f"no browser answers at {url!r}: {exc}") from exc
        return cls(connection)

    async def send(self, message: str) -> None:
        from websockets.exceptions import ConnectionClosed

        # The one who reads finds out that it is closed.
        with suppress(ConnectionClosed):
            await self._connection.send(message)

    async def receive(self) -> str | None:
        from websockets.exceptions import ConnectionClosed

        try:
            return await self._connection.recv()
        except ConnectionClosed:
            return None

    async def close(self) -> None:
        await self._connection.close()


class CdpConnection:
    """Commands to one browser. `closed` is set once it is gone."""

    def __init__(self, channel: MessageChannel) -> None:
        self.closed = asyncio.Event()
        # Seconds that a command may take where it does not say.
        self.patience = COMMAND_S
        self._channel = channel
        self._count = 0
        self._waiting: dict[int, tuple[str, str | None, asyncio.Future[dict[str, Any]]]] = {}
        self._listeners: dict[str | None, EventListener] = {}
        self._reading = asyncio.create_task(self._read())

    def listen(self, session: str | None, listener: EventListener) -> None:
        """Have the events of a session (None: the browser's own) told; a listener must not block."""
        self._listeners[session] = listener

    def forget(self, session: str) -> None:
        """End a session. Commands that wait for its answer raise `TargetGone`."""
        self._listeners.pop(session, None)
        for method, of, future in list(self._waiting.values()):
            if of == session and not future.done():
                future.set_exception(TargetGone(f"the page was gone before {method} was done"))

    async def send(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        session: str | None = None,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Return the result of a command.

        Raises `CommandRefused` with the browser's words, `TargetGone` when it or the page has ended, `TimedOut` after `seconds`.
        """
        seconds = self.patience if seconds is None else seconds
        if self.closed.is_set():
            raise TargetGone("the browser has ended", hint="call again: a new one is started")
        self._count += 1
        number = self._count
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = method, session, future
        try:
            async with asyncio.timeout(seconds):
                await self._channel.send(json.dumps(message))
                return await future
        except TimeoutError as exc:
            raise TimedOut(
                f"the page did not answer within {seconds:g} s",
                hint="its scripts keep it busy: try again, or close the tab",
            ) from exc
        finally:
            self._waiting.pop(number, None)

    def tell(
        self, method: str, params: Mapping[str, Any] | None = None, *, session: str | None = None
    ) -> asyncio.Task[None]:
        """Send a command without waiting for its answer."""

        async def told() -> None:
            with suppress(Downstream, TimedOut):
                await self.send(method, params, session=session)

        return asyncio.create_task(told())

    async def close(self) -> None:
        """Close the channel, and end everything that waits for it."""
        await self._channel.close()
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        self._end()

    async def _read(self) -> None:
        while (text := await self._channel.receive()) is not None:
            message = json.loads(text)
            if "id" in message:
                self._answered(message)
            elif (listener := self._listeners.get(message.get("sessionId"))) is not None:
                listener(message["method"], message.get("params", {}))
        self._end()

    def _answered(self, message: dict[str, Any]) -> None:
        waiting = self._waiting.get(message["id"])
        if waiting is None or waiting[2].done():
            return
        method, _, future = waiting
        if (error := message.get("error")) is None:
            future.set_result(message.get("result", {}))
        elif "Session with given id not found" in error.get("message", "") or "detached" in error.get("message", ""):
            future.set_exception(TargetGone(f"the page was gone before {method} was done"))
        else:
            future.set_exception(CommandRefused(f"the browser refused {method}: {error.get('message', 'no reason')}"))

    def _end(self) -> None:
        self.closed.set()
        for _, _, future in self._waiting.values():
            if not future.done():
                future.set_exception(TargetGone("the browser has ended", hint="call again: a new one is started"))
