"""Looking at a desktop from outside, with nothing of Handrail: what another program on the same bus sees."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus

REGISTRY = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
ACCESSIBLE = "org.a11y.atspi.Accessible"
PROPERTIES = "org.freedesktop.DBus.Properties"
LOOK_S = 0.1


class Watcher:
    """Reads the texts of one program's accessibility tree again and again, in a thread of its own; `seen` are all there ever were."""

    def __init__(self, session_bus: str, program: str) -> None:
        self.seen: set[str] = set()
        self._session_bus = session_bus
        self._program = program
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()), daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join(timeout=10)

    async def _watch(self) -> None:
        session = await MessageBus(bus_address=self._session_bus).connect()
        (address,) = await _call(session, ("org.a11y.Bus", "/org/a11y/bus"), "org.a11y.Bus", "GetAddress")
        bus = await MessageBus(bus_address=address.split(",guid=")[0]).connect()
        while not self._over.is_set():
            self.seen |= await texts(bus, self._program)
            await asyncio.sleep(LOOK_S)
        bus.disconnect()
        session.disconnect()


async def texts(bus: MessageBus, program: str) -> set[str]:
    """Every text that elements of the program hold now."""
    (applications,) = await _call(bus, REGISTRY, ACCESSIBLE, "GetChildren") or ([],)
    found: set[str] = set()
    for application in applications:
        if await _name(bus, application) == program:
            await _collect(bus, application, found, depth=0)
    return found


async def _collect(bus: MessageBus, node: Sequence[str], found: set[str], *, depth: int) -> None:
    if depth > 12:
        return
    body = await _call(bus, node, "org.a11y.atspi.Text", "GetText", "ii", [0, -1])
    if body and body[0]:
        found.add(body[0])
    children = await _call(bus, node, ACCESSIBLE, "GetChildren")
    for child in children[0] if children else []:
        await _collect(bus, child, found, depth=depth + 1)


async def _name(bus: MessageBus, node: Sequence[str]) -> str:
    body = await _call(bus, node, PROPERTIES, "Get", "ss", [ACCESSIBLE, "Name"])
    return body[0].value if body else ""


async def _call(
    bus: MessageBus,
    node: Sequence[str],
    interface: str,
    member: str,
    signature: str = "",
    body: list[Any] | None = None,
) -> list[Any]:
    """The answer's body; empty when the other side has no such thing."""
    message = Message(
        destination=node[0], path=node[1], interface=interface, member=member, signature=signature, body=body or []
    )
    reply = await asyncio.wait_for(bus.call(message), timeout=5)
    return reply.body if reply is not None and reply.message_type is MessageType.METHOD_RETURN else []
