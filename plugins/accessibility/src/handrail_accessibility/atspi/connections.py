"""Connections to a bus, and past it to one application."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Self

from dbus_fast import Message
from dbus_fast.aio import MessageBus
from dbus_fast.errors import AuthError, InvalidAddressError

PEER_CONNECT_TIMEOUT_S = 1.0

# A program that is busy has a second for each call, and answers one after another.
CALLS_IN_FLIGHT = 64


class NoReplyReason(Enum):
    """Reason for a missing reply."""

    ENDED = auto()
    LATE = auto()


@dataclass(slots=True, eq=False)
class PendingCall:
    """A call on its way, and when it was sent."""

    message: Message
    reply: asyncio.Future[Message | NoReplyReason]
    sent: float | None = None


class BusConnection(MessageBus):
    """A connection whose calls go out together: those made in one turn of the event loop are one write, and at most 64 are unanswered.

    Written one by one, each would wake the other side, which costs more than its answer.
    """

    ended: asyncio.Task[None]

    def __init__(self, address: str) -> None:
        super().__init__(bus_address=address)
        self._waiting: deque[PendingCall] = deque()
        self._asked: dict[int, PendingCall] = {}
        self._about_to_write = False
        self._writing: asyncio.Future[None] | None = None
        self.add_message_handler(self._take)

    @classmethod
    async def to(cls, address: str) -> Self:
        """Open a connection to the bus at `address`."""
        connection = cls(address)
        await connection.connect()
        # Also retrieves the error the connection may end with, which asyncio would complain about otherwise.
        connection.ended = asyncio.create_task(connection._end())
        return connection

    @property
    def alive(self) -> bool:
        return not self.ended.done() and self.connected

    async def ask(self, messages: Sequence[Message], *, timeout: float) -> list[Message | NoReplyReason]:
        """Return the replies in order, including errors.

        An application that leaves one message unanswered for `timeout` seconds is not waited for again: of the
        remaining replies, only those already received count.
        """
        if not self.alive or not messages:
            return [NoReplyReason.ENDED] * len(messages)
        posts = [self._post(message) for message in messages]
        self._write_soon()
        try:
            await _wait_for_replies(posts, timeout)
            return [post.reply.result() if post.reply.done() else NoReplyReason.LATE for post in posts]
        finally:
            self._forget(posts)

    def _forget(self, posts: Sequence[PendingCall]) -> None:
        for post in posts:
            if not post.reply.done():
                post.reply.cancel()
                self._asked.pop(post.message.serial, None)
        if self._waiting:
            self._write_soon()

    def _post(self, message: Message) -> PendingCall:
        message.serial = self.next_serial()
        post = PendingCall(message, asyncio.get_running_loop().create_future())
        self._waiting.append(post)
        return post

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
        now = asyncio.get_running_loop().time()
        going: list[Message] = []
        while self._waiting and len(self._asked) < CALLS_IN_FLIGHT:
            post = self._waiting.popleft()
            # Whoever asked for it may have given up.
            if not post.reply.done():
                post.sent = now
                self._asked[post.message.serial] = post
                going.append(post.message)
        if going:
            self._send_together(going)

    def _send_together(self, messages: Sequence[Message]) -> None:
        self._writing = asyncio.get_running_loop().create_future()
        # The library's futures are waited for by nobody, and asyncio would report each unseen failure as a bug.
        self._writing.add_done_callback(_consume_exception)
        self._writing.add_done_callback(self._write_soon)
        # A write that finds the other side gone ends the connection, and all that wait for a reply are told; what fails after that is no news.
        with contextlib.suppress(OSError):
            self._writer.schedule_write(_MessageBatch(messages), self._writing)  # pyright: ignore[reportArgumentType,reportOptionalMemberAccess,reportUnknownMemberType]

    def _take(self, message: Message) -> bool:
        """Give a reply to whoever asked, and the next call its place."""
        post = self._asked.pop(message.reply_serial, None)
        if post is None:
            return False
        if not post.reply.done():
            post.reply.set_result(message)
        if self._waiting:
            self._write_soon()
        return True

    async def _end(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            await self.wait_for_disconnect()
        for post in (*self._asked.values(), *self._waiting):
            if not post.reply.done():
                post.reply.set_result(NoReplyReason.ENDED)


async def _wait_for_replies(posts: Sequence[PendingCall], timeout: float) -> None:
    """Wait until all are answered, or one is not for so long after it was sent and the one before it was answered."""
    loop = asyncio.get_running_loop()
    since = loop.time()
    for post in posts:
        while not post.reply.done():
            now = loop.time()
            left = max(since, now if post.sent is None else post.sent) + timeout - now
            if left <= 0:
                return
            await asyncio.wait((post.reply,), timeout=left)
        since = loop.time()


class _MessageBatch:
    """Several messages, as the library's writer takes one."""

    unix_fds: Sequence[int] = ()

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    def _marshall(self, negotiate_unix_fd: bool) -> bytes:
        parts = (message._marshall(negotiate_unix_fd) for message in self._messages)  # pyright: ignore[reportPrivateUsage]
        return b"".join(parts)


async def connect_to_peer(address: str) -> BusConnection | None:
    """Connect to an application's own socket, which D-Bus calls peer-to-peer.

    Returns None if it has none or does not answer there. The library says hello as it does to a bus. An application
    does not know that call, and the text of its error is taken for a name.
    """
    if not address.startswith("unix:path="):
        return None
    try:
        async with asyncio.timeout(PEER_CONNECT_TIMEOUT_S):
            return await BusConnection.to(address)
    except (OSError, EOFError, AuthError, InvalidAddressError, IndexError):
        return None


def _consume_exception(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
