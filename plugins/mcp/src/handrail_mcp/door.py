"""What a request over HTTP must show before a session hears of it: what `handrail.net.guarding` asks for, at the one path there is."""

from __future__ import annotations

from collections.abc import Sequence

from handrail.net.guarding import Gate, Message, Receive, Refusal, Scope, Send, body_of, shown_token
from handrail.net.tokens import Token
from handrail_mcp.web_sessions import Sessions

PATH = "/mcp"
# Bytes of a request's body.
BODY = 4 * 2**20
# Requests of one session that are answered at a time.
REQUESTS = 1_024
RETRY_S = "5"


NO_PATH = Refusal(404, f"there is nothing here; the server is at {PATH}")
NO_QUERY = Refusal(404, f"{PATH} takes no query; the token goes into the Authorization header")
TOO_MANY = Refusal(429, f"{REQUESTS:,} requests of this session are being answered already", {"retry-after": RETRY_S})
TOO_MANY_CLIENTS = Refusal(429, "too many clients are connected to this session", {"retry-after": RETRY_S})


class Door:
    """The application: checks each request, and passes it to the session of its token."""

    def __init__(self, sessions: Sessions, tokens: Sequence[Token], *, names: Sequence[str]) -> None:
        self._sessions = sessions
        self._tokens = tokens
        self._gate = Gate(names)

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
        if (refused := self._gate.refusal(scope)) is not None:
            return refused
        if scope["path"] != PATH:
            return NO_PATH
        if scope["query_string"]:
            return NO_QUERY
        return shown_token(scope, self._tokens)

    async def _passed(self, token: Token, scope: Scope, receive: Receive, send: Send) -> Refusal | None:
        """The session's answer is sent, or what is said in its place."""
        body = await body_of(scope, receive, most=BODY)
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


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What the session receives: the body that was read, then whatever comes."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return first.pop() if first else await receive()

    return received
