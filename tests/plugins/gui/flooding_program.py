"""Sends signals as a program does whose objects change without end: python flooding_program.py"""

from __future__ import annotations

import asyncio
import os

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus


async def main() -> None:
    session = await MessageBus(bus_address=os.environ["DBUS_SESSION_BUS_ADDRESS"]).connect()
    where = Message(destination="org.a11y.Bus", path="/org/a11y/bus", interface="org.a11y.Bus", member="GetAddress")
    reply = await session.call(where)
    bus = await MessageBus(bus_address=reply.body[0].partition(",guid=")[0]).connect()
    while True:
        for _ in range(50):
            changed = Message(
                message_type=MessageType.SIGNAL,
                path="/org/a11y/atspi/accessible/1",
                interface="org.a11y.atspi.Event.Object",
                member="ChildrenChanged",
                signature="siiva{sv}",
                body=["add", 0, 0, Variant("(so)", [str(bus.unique_name), "/org/a11y/atspi/accessible/2"]), {}],
            )
            await bus.send(changed)
        # No faster than the bus carries them, or its socket is full.
        await bus.call(
            Message(
                destination="org.freedesktop.DBus",
                path="/org/freedesktop/DBus",
                interface="org.freedesktop.DBus",
                member="GetId",
            )
        )


if __name__ == "__main__":
    asyncio.run(main())
