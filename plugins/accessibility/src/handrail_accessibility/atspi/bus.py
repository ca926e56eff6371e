"""One connection to a desktop's accessibility bus.

Interfaces and signatures: https://gitlab.gnome.org/GNOME/at-spi2-core/-/tree/main/xml
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, ParamSpec, Self, TypeVar, cast

from dbus_fast import Message, MessageType, Variant
from dbus_fast.errors import AuthError, InvalidAddressError

from handrail.desktop.load_timeouts import scale_timeout
from handrail_accessibility.atspi.connections import BusConnection, NoReplyReason, connect_to_peer

A11Y_PREFIX = "org.a11y.atspi."
PROPERTIES_INTERFACE = "org.freedesktop.DBus.Properties"
DBUS_DAEMON = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
REGISTRY_NAME = "org.a11y.atspi.Registry"
ROOT_PATH = "/org/a11y/atspi/accessible/root"
NULL_PATH = "/org/a11y/atspi/null"
NO_REPLY_ERROR = "org.freedesktop.DBus.Error.NoReply"

BUS_CONNECT_TIMEOUT_S = 5.0
CALL_TIMEOUT_S = 1.0
# Whoever reads a whole window has a deadline, and tells a part for a part: a program that pauses for a second is no reason to leave out the rest.
READ_TIMEOUT_S = 5.0

T = TypeVar("T")
P = ParamSpec("P")


class BusLost(Exception):
    """The bus cannot be reached, or its connection has ended."""


class CallFailed(Exception):
    """The application answered with an error; `name` is D-Bus's name for it."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text or name)
        self.name = name


class NoAnswer(Exception):
    """The application did not answer in time: it hangs, or is very busy."""


# Path, interface, member, signature and body of a call.
BusCall = tuple[str, str, str, str, Sequence[Any]]
CallAnswer = list[Any] | CallFailed | NoAnswer


class AccessibilityBus:
    """Calls to applications on one accessibility bus; each ends in an answer or an error within its timeout."""

    def __init__(self, connection: BusConnection) -> None:
        self._connection = connection
        # Connections to applications past the bus, by name; None where there is no such way.
        self._peers: dict[str, BusConnection | None] = {}
        # Tells this bus from an earlier one, which gave the same unique names to others.
        self.guid = ""
        # Applications that do not give all properties of an object at once.
        self.piecemeal: set[str] = set()
        # What applications have said of themselves, kept by those who asked.
        self.toolkits: dict[str, object] = {}
        self.processes: dict[str, int] = {}

    @classmethod
    async def connect(cls, session_address: str, *, enable: bool = False) -> Self:
        """Find the accessibility bus through the session bus at `session_address`; `BusLost` says which of them is not there.

        `enable` tells programs that somebody looks: some, like Chromium, publish nothing before.
        """
        session = await cls._open(session_address, "session bus")
        try:
            if enable:
                status = ["org.a11y.Status", "IsEnabled", Variant("b", True)]
                await call_or_none(
                    session.call,
                    "org.a11y.Bus",
                    "/org/a11y/bus",
                    PROPERTIES_INTERFACE,
                    "Set",
                    "ssv",
                    status,
                    timeout=5.0,
                )
            (address,) = await session.call("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress", timeout=5.0)
        except (CallFailed, NoAnswer) as exc:
            raise BusLost(f"the session bus has no accessibility bus: {exc}") from exc
        finally:
            await session.close()
        bus = await cls._open(address.partition(",guid=")[0], "accessibility bus")
        (bus.guid,) = await bus.call(*DBUS_DAEMON, "GetId")
        return bus

    @classmethod
    async def _open(cls, address: str, what: str) -> Self:
        try:
            async with asyncio.timeout(BUS_CONNECT_TIMEOUT_S):
                return cls(await BusConnection.to(address))
        except (OSError, EOFError, AuthError, InvalidAddressError) as exc:
            raise BusLost(f"the {what} at {address!r} cannot be reached: {exc or type(exc).__name__}") from exc

    async def meet(self, app: str) -> None:
        """Start to call this application directly, not through the bus, if it supports that.

        D-Bus calls this peer-to-peer; it takes half the time.
        """
        if app in self._peers:
            return
        self._peers[app] = None
        self._peers[app] = await self.peer(app)

    async def peer(self, app: str) -> BusConnection | None:
        """Open a separate connection to the application, not through the bus; None if it does not support that."""
        reply = await call_or_none(self.call, app, ROOT_PATH, A11Y_PREFIX + "Application", "GetApplicationBusAddress")
        return await connect_to_peer(str(reply[0])) if reply else None

    @property
    def alive(self) -> bool:
        return self._connection.alive

    async def call(
        self,
        destination: str,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        body: Sequence[Any] = (),
        *,
        timeout: float = CALL_TIMEOUT_S,
    ) -> list[Any]:
        """Return the method's result; raise `CallFailed`, `NoAnswer` after `timeout` seconds, or `BusLost`."""
        (answer,) = await self.calls(destination, [(path, interface, member, signature, body)], timeout=timeout)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def calls(
        self, destination: str, calls: Iterable[BusCall], *, timeout: float = READ_TIMEOUT_S
    ) -> list[CallAnswer]:
        """Make many calls to one application; return the result or error of each, or raise `BusLost`.

        They cost a fraction of as many calls awaited one by one.
        """
        messages = [
            Message(
                destination=destination,
                path=path,
                interface=interface,
                member=member,
                signature=signature,
                body=list(body),
            )
            for path, interface, member, signature, body in calls
        ]
        if not self.alive:
            raise BusLost("the accessibility bus has ended")
        way = self._way_to(destination)
        timeout = scale_timeout(timeout)
        replies = await way.ask(messages, timeout=timeout)
        if NoReplyReason.ENDED in replies and way is self._connection:
            raise BusLost("the accessibility bus has ended")
        return [_convert_reply(reply, destination, timeout) for reply in replies]

    def _way_to(self, destination: str) -> BusConnection:
        peer = self._peers.get(destination)
        return peer if peer is not None and peer.alive else self._connection

    async def get(
        self, destination: str, path: str, interface: str, name: str, *, timeout: float = CALL_TIMEOUT_S
    ) -> Any:
        """Return the value of one property."""
        (value,) = await self.call(destination, *build_property_call(path, interface, name), timeout=timeout)
        return cast("Variant", value).value

    async def close(self) -> None:
        """End the connection; calls still waiting raise `BusLost`."""
        for peer in self._peers.values():
            if peer is not None:
                peer.disconnect()
        self._connection.disconnect()
        await asyncio.wait([self._connection.ended], timeout=CALL_TIMEOUT_S)


def build_property_call(path: str, interface: str, name: str) -> BusCall:
    """Build the call that gets the value of one property."""
    return path, PROPERTIES_INTERFACE, "Get", "ss", (interface, name)


def _convert_reply(reply: Message | NoReplyReason, destination: str, timeout: float) -> CallAnswer:
    if reply is NoReplyReason.LATE:
        return NoAnswer(f"{destination} did not answer within {timeout:g} s")
    if reply is NoReplyReason.ENDED:
        return CallFailed(NO_REPLY_ERROR, f"{destination} has ended")
    if reply.message_type is MessageType.ERROR:
        return CallFailed(reply.error_name or "", " ".join(str(part) for part in reply.body))
    return reply.body


async def call_or_none(ask: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Return the result of the call, or None if the application refuses it or does not answer.

    The call is made here: a coroutine created by the caller would be left unawaited if this one were cancelled before
    its turn.
    """
    try:
        return await ask(*args, **kwargs)
    except (CallFailed, NoAnswer):
        return None


async def gather_results(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Return the results of concurrent calls, in order.

    Uses asyncio directly, because dbus-fast requires asyncio anyway and a task group costs twice as much for a thousand
    short calls.
    """
    return await asyncio.gather(*calls)
