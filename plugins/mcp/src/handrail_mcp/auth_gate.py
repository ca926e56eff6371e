"""Checks of an HTTP request before it reaches a session.

They are those of `handrail.net.loopback_guard`, for the one valid path, without a query.
"""

from __future__ import annotations

from collections.abc import Sequence

from handrail.net.bearer_auth import BearerToken
from handrail.net.loopback_guard import (
    AsgiMessage,
    AsgiReceive,
    AsgiScope,
    AsgiSend,
    HttpRefusal,
    RequestGate,
    find_shown_token,
    read_body,
)
from handrail_mcp.http_sessions import HttpSessions

SERVER_PATH = "/mcp"
# Bytes of a request's body.
MAX_BODY = 4 * 2**20
# Requests of one session that are answered at a time.
MAX_REQUESTS = 1_024
RETRY_S = "5"


NO_PATH = HttpRefusal(404, f"there is nothing here; the server is at {SERVER_PATH}")
NO_QUERY = HttpRefusal(404, f"{SERVER_PATH} takes no query; the token goes into the Authorization header")
TOO_MANY = HttpRefusal(
    429, f"{MAX_REQUESTS:,} requests of this session are being answered already", {"retry-after": RETRY_S}
)
TOO_MANY_CLIENTS = HttpRefusal(429, "too many clients are connected to this session", {"retry-after": RETRY_S})


class AuthGate:
    """The application: checks each request, and passes it to the session of its token."""

    def __init__(self, sessions: HttpSessions, tokens: Sequence[BearerToken], *, names: Sequence[str]) -> None:
        self._sessions = sessions
        self._tokens = tokens
        self._gate = RequestGate(names)

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        if scope["type"] != "http":
            return
        answer = self._judged(scope)
        if isinstance(answer, BearerToken):
            answer = await self._passed(answer, scope, receive, send)
        if answer is not None:
            await answer(scope, receive, send)

    def _judged(self, scope: AsgiScope) -> BearerToken | HttpRefusal:
        """Return the token of a request, or the reason to refuse it."""
        if (refused := self._gate.refusal(scope)) is not None:
            return refused
        if scope["path"] != SERVER_PATH:
            return NO_PATH
        if scope["query_string"]:
            return NO_QUERY
        return find_shown_token(scope, self._tokens)

    async def _passed(
        self, token: BearerToken, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend
    ) -> HttpRefusal | None:
        """Forward the request to the session, which sends the response; return a refusal to send instead, or None."""
        body = await read_body(scope, receive, most=MAX_BODY)
        if isinstance(body, HttpRefusal):
            return body
        held = await self._sessions.of(token)
        if held.requests >= MAX_REQUESTS:
            return TOO_MANY
        told = ResponseSender(send)
        with held.answering():
            await held.manager.handle_request(scope, _replay_body(body, receive), told)
        return TOO_MANY_CLIENTS if told.withheld else None


class ResponseSender:
    """Sends a session's answer. 503 is the SDK's word for too many clients; it is withheld, to be said as 429."""

    def __init__(self, send: AsgiSend) -> None:
        self._send = send
        self.withheld = False

    async def __call__(self, message: AsgiMessage) -> None:
        if message["type"] == "http.response.start" and message["status"] == TOO_BUSY:
            self.withheld = True
        if not self.withheld:
            await self._send(message)


TOO_BUSY = 503


def _replay_body(body: bytes, receive: AsgiReceive) -> AsgiReceive:
    """Return a receiver that yields the body that was read already, then further messages."""
    first: list[AsgiMessage] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> AsgiMessage:
        return first.pop() if first else await receive()

    return received
