"""The first message of a TLS connection, read for the server name that it asks for.

Sources: RFC 8446 (4.1.2, 5.1) for records and the message, RFC 6066 (3) for the extension `server_name`, RFC 9849 for `encrypted_client_hello`.
"""

from __future__ import annotations

from dataclasses import dataclass

HANDSHAKE_RECORD = 0x16
CLIENT_HELLO = 0x01
SERVER_NAME = 0
ENCRYPTED_CLIENT_HELLO = 0xFE0D
HOST_NAME = 0
# Bytes of one record, and of the whole message: larger ones than any client sends.
MAX_RECORD_BYTES = 16_384
MAX_HELLO_BYTES = 65_536
# Records that one message may be split into: each piece that arrives has all of them read again.
MAX_RECORDS = 64


class NotClientHello(ValueError):
    """Bytes that do not begin a TLS connection."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """A complete first message.

    `server_name` is the name as it was sent, None where the client names none. `encrypted`: another name may be hidden in the message.
    """

    server_name: str | None
    encrypted: bool = False


def parse_client_hello(data: bytes) -> ClientHello | None:
    """Read the message at the beginning of `data`; None when more bytes are needed. Raises `NotClientHello`."""
    message = _join_handshake_message(data)
    return None if message is None else _parse_hello(message)


def _join_handshake_message(data: bytes) -> bytes | None:
    """Return the body of the handshake message, joined from its records; None if it is incomplete."""
    joined = b""
    at = 0
    for _ in range(MAX_RECORDS + 1):
        if len(joined) >= 4:
            size = int.from_bytes(joined[1:4])
            if joined[0] != CLIENT_HELLO or size > MAX_HELLO_BYTES:
                raise NotClientHello("the first message is not a client's")
            if len(joined) >= 4 + size:
                return joined[4 : 4 + size]
        head = data[at : at + 5]
        if head and (head[0] != HANDSHAKE_RECORD or (len(head) > 1 and head[1] != 3)):
            raise NotClientHello("it does not begin with a TLS handshake")
        if len(head) < 5:
            return None
        length = int.from_bytes(head[3:5])
        if not 0 < length <= MAX_RECORD_BYTES:
            raise NotClientHello("a TLS record has no valid length")
        if len(data) < at + 5 + length:
            return None
        joined += data[at + 5 : at + 5 + length]
        at += 5 + length
    raise NotClientHello("it is split into too many records")


def _parse_hello(message: bytes) -> ClientHello:
    reader = _ByteReader(message)
    # Version and random.
    reader.take(2 + 32)
    for width in (1, 2, 1):
        # Session id, cipher suites, compression methods.
        reader.vector(width)
    if reader.done:
        return ClientHello(None)
    names: list[bytes] = []
    encrypted = False
    extensions = _ByteReader(reader.vector(2))
    while not extensions.done:
        kind, body = extensions.number(2), extensions.vector(2)
        if kind == SERVER_NAME:
            names += _parse_host_names(body)
        encrypted = encrypted or kind == ENCRYPTED_CLIENT_HELLO
    if len(names) > 1:
        raise NotClientHello("it asks for several server names")
    try:
        return ClientHello(names[0].decode("ascii") if names else None, encrypted)
    except UnicodeDecodeError as exc:
        raise NotClientHello("its server name is not ASCII") from exc


def _parse_host_names(body: bytes) -> list[bytes]:
    names: list[bytes] = []
    listed = _ByteReader(_ByteReader(body).vector(2))
    while not listed.done:
        kind, name = listed.number(1), listed.vector(2)
        if kind == HOST_NAME:
            names.append(name)
    return names


class _ByteReader:
    """Reads numbers and vectors with a length in front, in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._data)

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise NotClientHello("the message ends too early")
        self._at += size
        return taken

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width))

    def vector(self, width: int) -> bytes:
        return self.take(self.number(width))
