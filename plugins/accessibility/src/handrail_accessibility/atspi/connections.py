"""Connections to a bus, and past it to one application."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from typing import Any, Self

from dbus_fast import Message
from dbus_fast.aio import MessageBus
from dbus_fast.errors import AuthError, InvalidAddressError

CONNECT_TIMEOUT_S = 1.0

# A program that is busy has a second for each call, and answers one after another.
CALLS_IN_FLIGHT = 64

Reply = asyncio.Future[Message | None]


class Connection(MessageBus):
    """A connection whose calls go out together: those made in one turn of the event loop are one write, and at most 64 are unanswered.

    Written one by one, each would wake the other side, which costs more than its answer.
    """

    ended: asyncio.Task[None]

    def __init__(self, address: str) -> None:
        super().__init__(bus_address=address)
        self._waiting: deque[tuple[Message, Reply, float]] = deque()
        self._asked: dict[int, Reply] = {}
        self._about_to_write = False
        self._writing: asyncio.Future[None] | None = None
        self.add_message_handler(self._take)

    @classmethod
    async def to(cls, address: str) -> Self:
        """The connection to the bus at `address`."""
        connection = cls(address)
        await connection.connect()
        # Also retrieves the error the connection may end with, which asyncio would complain about otherwise.
        connection.ended = asyncio.create_task(connection._end())
        return connection

    @property
    def alive(self) -> bool:
        return not self.ended.done() and self.connected

    async def ask(self, message: Message, *, timeout: float) -> Message | None:
        """The reply, an error too; None when the connection has ended before there was one.

        Raises `TimeoutError` so many seconds after it was sent.
        """
        if not self.alive:
            return None
        message.serial = self.next_serial()
        reply: Reply = asyncio.get_running_loop().create_future()
        self._waiting.append((message, reply, timeout))
        self._write_soon()
        try:
            return await reply
        finally:
            self._asked.pop(message.serial, None)
            if self._waiting:
                self._write_soon()

    def _write_soon(self, _: object = None) -> None:
        if not self._about_to_write:
            self._about_to_write = True
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        """Send what waits, as far as there is room."""
        self._about_to_write = False
        if self._writing is not None and not self._writing.done():
            # The library's writer takes a full kernel buffer for the end of the connection.
            return
        loop = asyncio.get_running_loop()
        going: list[Message] = []
        while self._waiting and len(self._asked) < CALLS_IN_FLIGHT:
            message, reply, timeout = self._waiting.popleft()
            # Whoever asked for it may have given up.
            if not reply.done():
                self._asked[message.serial] = reply
                late = loop.call_later(timeout, _give_up, reply)
                reply.add_done_callback(lambda _, late=late: late.cancel())
                going.append(message)
        if going:
            self._send_together(going)

    def _send_together(self, messages: Sequence[Message]) -> None:
        self._writing = asyncio.get_running_loop().create_future()
        # The library's futures are waited for by nobody, and asyncio would report each unseen failure as a bug.
        self._writing.add_done_callback(_seen)
        self._writing.add_done_callback(self._write_soon)
        # A write that finds the other side gone ends the connection, and all that wait for a reply are told; what fails after that is no news.
        with contextlib.suppress(OSError):
            self._writer.schedule_write(_Together(messages), self._writing)  # pyright: ignore[reportArgumentType,reportOptionalMemberAccess,reportUnknownMemberType]

    def _take(self, message: Message) -> bool:
        """Give a reply to whoever asked."""
        reply = self._asked.get(message.reply_serial)
        if reply is not None and not reply.done():
            reply.set_result(message)
        return reply is not None

    async def _end(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            await self.wait_for_disconnect()
        for reply in [*self._asked.values(), *(reply for _, reply, _ in self._waiting)]:
            if not reply.done():
                reply.set_result(None)


class _Together:
    """Several messages, as the library's writer takes one."""

    unix_fds: Sequence[int] = ()

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    def _marshall(self, negotiate_unix_fd: bool) -> bytes:
        parts = (message._marshall(negotiate_unix_fd) for message in self._messages)  # pyright: ignore[reportPrivateUsage]
        return b"".join(parts)


async def past_the_bus(address: str) -> Connection | None:
    """A connection to an application's own socket, which D-Bus calls peer-to-peer; None where it has none or does not answer there.

    The library says hello as it does to a bus. An application does not know that call, and what its error says is taken for a name.
    """
    if not address.startswith("unix:path="):
        return None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return await Connection.to(address)
    except (OSError, EOFError, AuthError, InvalidAddressError, IndexError):
        return None


def _give_up(reply: Reply) -> None:
    if not reply.done():
        reply.set_exception(TimeoutError())


def _seen(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
