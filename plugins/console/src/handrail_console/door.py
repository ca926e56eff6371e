"""What a request must show before the console answers: an address of ours, no other origin, the person's own user, and the token.

The page without a token is a door: a few lines of our own that take the token from behind the # of the link, where a browser sends it to
nobody, and ask for the rest with it. The token then goes with each request in a header, which no other page can set and no browser adds by
itself, as it would a cookie, which every server of this machine is sent, whatever its port.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from handrail.net.guarding import UNKNOWN_HOST, App, Gate, Receive, Refusal, Scope, Send, another_user, shown_token
from handrail.net.tokens import Token
from handrail_console.page import DOOR, HEADERS

# A browser shows the door, and anything else is told that it has shown no token.
NOT_YET = 401


class Door:
    """The application: checks each request, and passes it on."""

    def __init__(self, app: App, token: Token, *, names: Iterable[str]) -> None:
        self._app = app
        self._token = token
        self._gate = Gate(names, schemes=("http", "https"), unknown=replace(UNKNOWN_HOST, status=403))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused is None:
            await self._app(scope, receive, send)
        elif refused.status == NOT_YET and scope["method"] == "GET" and scope["path"] == "/":
            await _show_door(send)
        else:
            await replace(refused, headers={**refused.headers, **HEADERS})(scope, receive, send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        """Why a request is not answered; None when it is."""
        if (refused := another_user(scope) or self._gate.refusal(scope)) is not None:
            return refused
        shown = shown_token(scope, [self._token])
        return shown if isinstance(shown, Refusal) else None


async def _show_door(send: Send) -> None:
    body = DOOR.encode()
    told = {**HEADERS, "content-type": "text/html; charset=utf-8", "content-length": str(len(body))}
    headers = [(name.encode(), value.encode()) for name, value in told.items()]
    await send({"type": "http.response.start", "status": NOT_YET, "headers": headers})
    await send({"type": "http.response.body", "body": body})
