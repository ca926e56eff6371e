"""What a request over HTTP must show before a session hears of it.

Any page in a browser on this machine can send requests here, and make its own name lead here (DNS rebinding). So Host must be an address of
ours, no other origin is let in, nothing is said to other origins (no CORS), and the token comes in a header that a page cannot set.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import anyio
from starlette.types import Message, Receive, Scope, Send

from handrail_mcp.tokens import Token
from handrail_mcp.web_sessions import Sessions

PATH = "/mcp"
# Bytes of a request's body, and how long it may take to arrive.
BODY = 4 * 2**20
BODY_S = 30.0
# Requests of one session that are answered at a time.
REQUESTS = 1_024
RETRY_S = "5"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer in place of the session's."""

    status: int
    error: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = json.dumps({"error": self.error}).encode()
        # What is left of the body is not read.
        told = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
        headers = [(name.encode(), value.encode()) for name, value in {**told, **self.headers}.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


UNKNOWN_HOST = Refusal(421, "the Host header names no address of this server")
FOREIGN = Refusal(403, "requests from web pages are not answered")
NO_PATH = Refusal(404, f"there is nothing here; the server is at {PATH}")
NO_QUERY = Refusal(404, f"{PATH} takes no query; the token goes into the Authorization header")
NO_TOKEN = Refusal(
    401, "a bearer token is needed: Authorization: Bearer …", {"www-authenticate": 'Bearer realm="handrail"'}
)
WRONG_TOKEN = Refusal(
    401, "this token opens no session", {"www-authenticate": 'Bearer realm="handrail", error="invalid_token"'}
)
TOO_LONG = Refusal(413, f"a request has at most {BODY:,} bytes")
TOO_SLOW = Refusal(408, f"the request did not arrive within {BODY_S:g} s")
TOO_MANY = Refusal(429, f"{REQUESTS:,} requests of this session are being answered already", {"retry-after": RETRY_S})
TOO_MANY_CLIENTS = Refusal(429, "too many clients are connected to this session", {"retry-after": RETRY_S})


class Door:
    """The application: checks each request, and passes it to the session of its token."""

    def __init__(self, sessions: Sessions, tokens: Sequence[Token], *, names: Sequence[str]) -> None:
        self._sessions = sessions
        self._tokens = tokens
        self._hosts = frozenset(names)
        self._origins = frozenset(f"http://{name}" for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = self._judged(scope)
        if isinstance(answer, Token):
            answer = await self._passed(answer, scope, receive, send)
        if answer is not None:
            await answer(scope, receive, send)

    def _judged(self, scope: Scope) -> Token | Refusal:
        """The token that a request shows, or why it is refused."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return UNKNOWN_HOST
        if not set(_values(headers, b"origin")) <= self._origins:
            return FOREIGN
        if scope["path"] != PATH:
            return NO_PATH
        if scope["query_string"]:
            return NO_QUERY
        shown = _values(headers, b"authorization")
        if len(shown) != 1:
            return NO_TOKEN
        return next((token for token in self._tokens if token.is_shown_by(shown[0])), WRONG_TOKEN)

    async def _passed(self, token: Token, scope: Scope, receive: Receive, send: Send) -> Refusal | None:
        """The session's answer is sent, or what is said in its place."""
        body = await _body(scope, receive)
        if isinstance(body, Refusal):
            return body
        held = await self._sessions.of(token)
        if held.requests >= REQUESTS:
            return TOO_MANY
        told = Told(send)
        with held.answering():
            await held.manager.handle_request(scope, _replayed(body, receive), told)
        return TOO_MANY_CLIENTS if told.withheld else None


class Told:
    """Sends a session's answer. 503 is the SDK's word for too many clients; it is withheld, to be said as 429."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.withheld = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == TOO_BUSY:
            self.withheld = True
        if not self.withheld:
            await self._send(message)


TOO_BUSY = 503


async def _body(scope: Scope, receive: Receive) -> bytes | Refusal:
    """The whole body, in time and within its limit."""
    declared = _values(scope["headers"], b"content-length")
    if declared and int(declared[0]) > BODY:
        return TOO_LONG
    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(BODY_S):
        while True:
            message = await receive()
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > BODY:
                return TOO_LONG
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)
    return TOO_SLOW


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What the session receives: the body that was read, then whatever comes."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return first.pop() if first else await receive()

    return received


def _values(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]
