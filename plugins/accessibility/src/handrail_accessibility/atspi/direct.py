"""One call over an application's own socket, past the bus.

GTK 3 carries out an action while it answers the call that asks for it. Where that opens a dialog in a loop of its own (`gtk_dialog_run`, as
most file dialogs do), the application serves nothing more on that connection until the dialog is closed: asked over the bus, it would seem
to hang just when its dialog has to be read. Each application offers a second way, which D-Bus calls peer-to-peer; an action asked for there
leaves the bus free. dbus-fast speaks to buses only, so the few bytes are put together here.

Format: https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol-messages
"""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Iterable

from handrail_accessibility.atspi.bus import A11Y, CALL_TIMEOUT_S, ROOT, Bus, NoAnswer, maybe

METHOD_CALL, METHOD_RETURN = 1, 2
PATH, INTERFACE, MEMBER, SIGNATURE = 1, 2, 3, 8


async def call_directly(bus: Bus, app: str, path: str, interface: str, member: str, number: int) -> bool | None:
    """What a method that takes a number and answers yes or no said, False also for an error; None when there is no such socket.

    Raises `NoAnswer` when the application took the call but does not answer it within a second.
    """
    address = await maybe(bus.call(app, ROOT, A11Y + "Application", "GetApplicationBusAddress"))
    socket = _socket_of(str(address[0])) if address else None
    if socket is None:
        return None
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            reader, writer = await asyncio.open_unix_connection(socket)
    except OSError:
        return None
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            if not await _authenticated(reader, writer):
                return None
            writer.write(_method_call(path, interface, member, number))
            return await _answer(reader)
    except TimeoutError as exc:
        raise NoAnswer(f"{app} did not answer within {CALL_TIMEOUT_S:g} s") from exc
    except (OSError, EOFError):
        return None
    finally:
        writer.close()


def _socket_of(address: str) -> str | None:
    """The file of a `unix:path=…` address, which is the only kind applications offer."""
    kind, _, rest = address.partition(":")
    paths = [part.removeprefix("path=") for part in rest.split(",") if part.startswith("path=")]
    return paths[0] if kind == "unix" and paths else None


async def _authenticated(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    writer.write(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
    if not (await reader.readline()).startswith(b"OK "):
        return False
    writer.write(b"BEGIN\r\n")
    return True


def _method_call(path: str, interface: str, member: str, number: int) -> bytes:
    fields = _fields([(PATH, b"o", path), (INTERFACE, b"s", interface), (MEMBER, b"s", member), (SIGNATURE, b"g", "i")])
    body = struct.pack("<i", number)
    head = struct.pack("<cBBBIII", b"l", METHOD_CALL, 0, 1, len(body), 1, len(fields)) + fields
    return _aligned(head) + body


def _fields(fields: Iterable[tuple[int, bytes, str]]) -> bytes:
    packed = b""
    for code, signature, value in fields:
        raw = value.encode()
        length = struct.pack("<B" if signature == b"g" else "<I", len(raw))
        packed = _aligned(packed) + bytes([code, 1]) + signature + b"\0" + length + raw + b"\0"
    return packed


def _aligned(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 8)


async def _answer(reader: asyncio.StreamReader) -> bool:
    head = await reader.readexactly(16)
    order = "<" if head[:1] == b"l" else ">"
    body_length, _, fields_length = struct.unpack(order + "III", head[4:])
    rest = await reader.readexactly(fields_length + -fields_length % 8 + body_length)
    return head[1] == METHOD_RETURN and body_length >= 4 and rest[-body_length:][:4] != b"\0\0\0\0"
