"""Checks that a request to a server on this machine must pass before anything handles it.

Any page in a browser on this machine can send requests here, and can make its own name resolve to this machine (DNS
rebinding). Therefore Host must be one of our addresses, other origins are refused and get no CORS headers, and the
token is sent in a header that a page cannot set.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeAlias

import anyio

from handrail.net.bearer_auth import BearerToken

__all__ = [
    "UNKNOWN_HOST",
    "AsgiApp",
    "AsgiMessage",
    "AsgiReceive",
    "AsgiScope",
    "AsgiSend",
    "HttpRefusal",
    "RequestGate",
    "find_shown_token",
    "read_body",
    "refuse_other_user",
]

# As ASGI has them; Starlette's types are the same.
AsgiMessage: TypeAlias = MutableMapping[str, Any]
AsgiScope: TypeAlias = MutableMapping[str, Any]
AsgiReceive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
AsgiSend: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[AsgiScope, AsgiReceive, AsgiSend], Awaitable[None]]

# How long a request's body may take to arrive.
BODY_TIMEOUT_S = 30.0
AUTH_CHALLENGE = 'Bearer realm="handrail"'


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """An answer in place of the application's."""

    status: int
    error: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        body = json.dumps({"error": self.error}).encode()
        # What is left of the body is not read.
        told = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        headers = [(name.encode(), value.encode()) for name, value in {**told, **self.headers}.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


UNKNOWN_HOST = HttpRefusal(421, "the Host header names no address of this server")
FOREIGN_PAGE = HttpRefusal(403, "requests from web pages are not answered")
NO_TOKEN = HttpRefusal(401, "a bearer token is needed: Authorization: Bearer …", {"www-authenticate": AUTH_CHALLENGE})
WRONG_TOKEN = HttpRefusal(
    401, "this token opens no session", {"www-authenticate": f'{AUTH_CHALLENGE}, error="invalid_token"'}
)
TOO_SLOW = HttpRefusal(408, f"the request did not arrive within {BODY_TIMEOUT_S:g} s")
ANOTHER_USER = HttpRefusal(403, "another user of this machine is not answered")


class RequestGate:
    """Lets in requests that name this server and come from no other page. `names` are what the Host header may say, else `unknown` is said."""

    def __init__(
        self, names: Iterable[str], *, schemes: Sequence[str] = ("http",), unknown: HttpRefusal = UNKNOWN_HOST
    ) -> None:
        self._hosts = frozenset(name.lower() for name in names)
        self._unknown = unknown
        self._origins = frozenset(f"{scheme}://{name}" for name in self._hosts for scheme in schemes)

    def refusal(self, scope: AsgiScope) -> HttpRefusal | None:
        """Return why a request is refused, or None if it is accepted."""
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        hosts = get_header_values(headers, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return self._unknown
        if not set(get_header_values(headers, b"origin")) <= self._origins:
            return FOREIGN_PAGE
        return None


def find_shown_token(scope: AsgiScope, tokens: Iterable[BearerToken]) -> BearerToken | HttpRefusal:
    """Return the token that a request presents, or the refusal."""
    shown = get_header_values(scope["headers"], b"authorization")
    if len(shown) != 1:
        return NO_TOKEN
    return next((token for token in tokens if token.is_shown_by(shown[0])), WRONG_TOKEN)


async def read_body(scope: AsgiScope, receive: AsgiReceive, *, most: int) -> bytes | HttpRefusal:
    """Read the complete body, within the time limit and `most` bytes; otherwise return the refusal."""
    too_long = HttpRefusal(413, f"a request has at most {most:,} bytes")
    declared = get_header_values(scope["headers"], b"content-length")
    if declared and int(declared[0]) > most:
        return too_long
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(BODY_TIMEOUT_S):
        while True:
            message = await receive()
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > most:
                return too_long
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)
    return TOO_SLOW


def get_header_values(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """Return every value of a header."""
    return [value.decode("latin-1") for key, value in headers if key == name]


def refuse_other_user(scope: AsgiScope) -> HttpRefusal | None:
    """Return a refusal if the client program is run by another user according to the kernel, or None.

    Root can do anything and does not count as another user. If the kernel does not tell, the token alone decides.
    """
    if sys.platform != "linux" or scope.get("client") is None or scope.get("server") is None:
        return None
    owner = find_connection_owner(scope["client"], scope["server"])
    return None if owner is None or owner in (0, os.getuid()) else ANOTHER_USER


def find_connection_owner(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Return the id of the user whose socket is the client's end of a local connection, or None if it is not found.

    Source: proc_net_tcp(5).
    """
    table = "tcp6" if ":" in client[0] else "tcp"
    wanted = _format_proc_address(client), _format_proc_address(server)
    try:
        lines = Path("/proc/self/net", table).read_text().splitlines()[1:]
    except OSError:
        return None
    for fields in (line.split() for line in lines):
        if (fields[1], fields[2]) == wanted:
            return int(fields[7])
    return None


def _format_proc_address(end: tuple[str, int]) -> str:
    """Format an address and port as in the kernel's table: four-byte words in the machine's byte order."""
    packed = ip_address(end[0]).packed
    words = [int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4)]
    return f"{''.join(f'{word:08X}' for word in words)}:{end[1]:04X}"
