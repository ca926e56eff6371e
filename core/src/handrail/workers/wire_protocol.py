"""Messages between the plugin and its parsers: JSON, bytes behind it, and with a request the open file."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

# The sizes of the JSON and of the bytes behind it.
MESSAGE_HEAD = struct.Struct("<QQ")
BLOCK_BYTES = 1_048_576


def send_message(
    channel: socket.socket, message: Mapping[str, Any], data: bytes = b"", *, fd: int | None = None
) -> None:
    """Write one message; `fd` is sent with it and arrives as a new descriptor on the other side."""
    text = json.dumps(message).encode()
    head = MESSAGE_HEAD.pack(len(text), len(data))
    if fd is None:
        channel.sendall(head)
    else:
        # So few bytes always go at once.
        socket.send_fds(channel, [head], [fd])
    channel.sendall(text)
    if data:
        channel.sendall(data)


def receive_message(channel: socket.socket) -> tuple[Any, bytes, int | None]:
    """Return the next message, its bytes and its descriptor; raises `EOFError` if the other side is gone."""
    head, fds, _, _ = socket.recv_fds(channel, MESSAGE_HEAD.size, 1)
    if not head:
        raise EOFError
    head += _receive_exactly(channel, MESSAGE_HEAD.size - len(head))
    text_size, data_size = MESSAGE_HEAD.unpack(head)
    text = json.loads(_receive_exactly(channel, text_size))
    return text, _receive_exactly(channel, data_size), fds[0] if fds else None


def _receive_exactly(channel: socket.socket, size: int) -> bytes:
    pieces: list[bytes] = []
    while size:
        piece = channel.recv(min(size, BLOCK_BYTES))
        if not piece:
            raise EOFError
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
