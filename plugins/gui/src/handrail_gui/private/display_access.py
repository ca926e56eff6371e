"""Access control of a private X server: holders of a random cookie, and the user who started it.

Standard library only. The cookie closes the server to everyone else on the machine. The user is also admitted by name,
so that a library that looks for a cookie only in `os.environ` of its own process (libxcb does) can operate several
desktops at once. Formats: Xau(3), X protocol encoding.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

COOKIE_PROTOCOL = b"MIT-MAGIC-COOKIE-1"
FAMILY_LOCAL = 256
FAMILY_WILD = 65535
FAMILY_SERVER_INTERPRETED = 5
CHANGE_HOSTS = 109
GET_INPUT_FOCUS = 43
QUERY_EXTENSION = 98
RESOURCE_EXTENSION = b"X-Resource"
QUERY_CLIENT_IDS = 4
LOCAL_PROCESS_ID = 2


def create_cookie() -> bytes:
    """Return 16 random bytes."""
    return secrets.token_bytes(16)


def write_cookie(path: Path, cookie: bytes, *, display: str | None = None) -> None:
    """Write an Xauthority file, mode 0600, for that display number on this machine; for any display if None.

    None is passed while the number is not yet known.
    """
    entries = [_encode_entry(FAMILY_WILD, b"", b"", cookie)]
    if display is not None:
        entries.insert(0, _encode_entry(FAMILY_LOCAL, socket.gethostname().encode(), display.encode(), cookie))
    partial = path.with_suffix(".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(b"".join(entries))
    partial.replace(path)


def _encode_entry(family: int, address: bytes, number: bytes, cookie: bytes) -> bytes:
    parts = (address, number, COOKIE_PROTOCOL, cookie)
    return struct.pack(">H", family) + b"".join(struct.pack(">H", len(part)) + part for part in parts)


def admit_user(display: str, cookie: bytes, *, uid: int, timeout: float) -> None:
    """Let programs of that user connect without a cookie; OSError when the server does not take it."""
    with _connect_to_server(display, timeout, cookie) as server:
        name = f"localuser\0#{uid}".encode()
        server.sendall(
            struct.pack(
                "<BBHBxH", CHANGE_HOSTS, 0, 2 + len(_pad_to_four(name)) // 4, FAMILY_SERVER_INTERPRETED, len(name)
            )
            + _pad_to_four(name)
            + struct.pack("<BxH", GET_INPUT_FOCUS, 1)
        )
        # The second request is answered after the first was done; an error would come before.
        _read_reply(server, "admit its own user")


def list_client_pids(display: str, *, timeout: float) -> set[int]:
    """Return the ids of all processes connected to a display, whose user must be ours.

    Raises OSError if the server does not report them.
    """
    with _connect_to_server(display, timeout) as server:
        server.sendall(
            struct.pack(
                "<BxHHxx", QUERY_EXTENSION, 2 + len(_pad_to_four(RESOURCE_EXTENSION)) // 4, len(RESOURCE_EXTENSION)
            )
            + _pad_to_four(RESOURCE_EXTENSION)
        )
        major = _read_reply(server, "name its extensions")[9]
        every_client = 0
        server.sendall(struct.pack("<BBHIII", major, QUERY_CLIENT_IDS, 4, 1, every_client, LOCAL_PROCESS_ID))
        told = _read_reply(server, "name its clients")
    found: set[int] = set()
    place = 32
    for _ in range(struct.unpack_from("<I", told, 8)[0]):
        _, _, size = struct.unpack_from("<III", told, place)
        if size == 4:
            found.add(struct.unpack_from("<I", told, place + 12)[0])
        place += 12 + size
    return found


@contextmanager
def _connect_to_server(display: str, timeout: float, cookie: bytes = b"") -> Generator[socket.socket]:
    name = COOKIE_PROTOCOL if cookie else b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.settimeout(timeout)
        server.connect(f"/tmp/.X11-unix/X{display}")
        server.sendall(
            struct.pack("<BxHHHHxx", ord("l"), 11, 0, len(name), len(cookie))
            + _pad_to_four(name)
            + _pad_to_four(cookie)
        )
        answer = _receive_exactly(server, 8)
        body = _receive_exactly(server, 4 * struct.unpack("<6xH", answer)[0])
        if answer[0] != 1:
            raise OSError(f"the X server refused its own user: {body[: answer[1]].decode(errors='replace')}")
        yield server


def _read_reply(server: socket.socket, what: str) -> bytes:
    """Read the complete reply to a request."""
    head = _receive_exactly(server, 32)
    if head[0] != 1:
        raise OSError(f"the X server did not {what}")
    return head + _receive_exactly(server, 4 * struct.unpack_from("<I", head, 4)[0])


def _pad_to_four(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _receive_exactly(server: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = server.recv(size - len(data))
        if not chunk:
            raise OSError("the X server hung up")
        data += chunk
    return data
