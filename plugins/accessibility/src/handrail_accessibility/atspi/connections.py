"""Connections to a bus, and past it to one application."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self

from dbus_fast import Message
from dbus_fast.aio import MessageBus
from dbus_fast.errors import AuthError, InvalidAddressError

CONNECT_TIMEOUT_S = 1.0


class Connection(MessageBus):
    """A connection that is told of its end once, by `wait_for_disconnect`: not again for each message that could not be sent."""

    ended: asyncio.Task[None]

    @classmethod
    async def to(cls, address: str) -> Self:
        """The connection to the bus at `address`."""
        connection = cls(bus_address=address)
        await connection.connect()
        # Also retrieves the error the connection may end with, which asyncio would complain about otherwise.
        connection.ended = asyncio.create_task(_end_of(connection))
        return connection

    @property
    def alive(self) -> bool:
        return not self.ended.done() and self.connected

    async def ask(self, message: Message) -> Message | None:
        """The reply, an error too; None when the connection has ended before there was one."""
        try:
            return await self.call(message)
        except TimeoutError:
            raise
        except (OSError, EOFError):
            return None

    def send(self, msg: Message) -> asyncio.Future[None]:
        """As the library's, whose futures nobody waits for: asyncio would report each unseen failure as a bug."""
        if not msg.serial:
            msg.serial = self.next_serial()
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sent.add_done_callback(_seen)
        # A message that finds the other side gone ends the connection, and all that wait for a reply are told; what fails after that is no news.
        with contextlib.suppress(OSError):
            self._writer.schedule_write(msg, sent)  # pyright: ignore[reportOptionalMemberAccess,reportUnknownMemberType]
        return sent


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


def _seen(future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()


async def _end_of(connection: MessageBus) -> None:
    with contextlib.suppress(OSError, EOFError):
        await connection.wait_for_disconnect()
