"""Checks that each request must pass: our host name, no foreign origin, the user's own account, and the token.

Without a token, the console serves an entry page: a short script of our own that reads the token from the fragment of
the link, which a browser does not send, and requests the rest with it. The token is then sent with each request in a
header, which no other page can set and no browser adds on its own. A cookie would be sent to every server on this
machine, regardless of its port.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from handrail.net.bearer_auth import BearerToken
from handrail.net.loopback_guard import (
    UNKNOWN_HOST,
    AsgiApp,
    AsgiReceive,
    AsgiScope,
    AsgiSend,
    HttpRefusal,
    RequestGate,
    find_shown_token,
    refuse_other_user,
)
from handrail_console.page import ENTRY_PAGE, RESPONSE_HEADERS

# A browser shows the door, and anything else is told that it has shown no token.
NOT_YET = 401


class AuthGate:
    """The application: checks each request, and passes it on."""

    def __init__(self, app: AsgiApp, token: BearerToken, *, names: Iterable[str]) -> None:
        self._app = app
        self._token = token
        self._gate = RequestGate(names, schemes=("http", "https"), unknown=replace(UNKNOWN_HOST, status=403))

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused is None:
            await self._app(scope, receive, send)
        elif refused.status == NOT_YET and scope["method"] == "GET" and scope["path"] == "/":
            await _send_entry_page(send)
        else:
            await replace(refused, headers={**refused.headers, **RESPONSE_HEADERS})(scope, receive, send)

    def _refusal(self, scope: AsgiScope) -> HttpRefusal | None:
        """Return the reason for refusing a request, or None to accept it."""
        if (refused := refuse_other_user(scope) or self._gate.refusal(scope)) is not None:
            return refused
        shown = find_shown_token(scope, [self._token])
        return shown if isinstance(shown, HttpRefusal) else None


async def _send_entry_page(send: AsgiSend) -> None:
    body = ENTRY_PAGE.encode()
    told = {**RESPONSE_HEADERS, "content-type": "text/html; charset=utf-8", "content-length": str(len(body))}
    headers = [(name.encode(), value.encode()) for name, value in told.items()]
    await send({"type": "http.response.start", "status": NOT_YET, "headers": headers})
    await send({"type": "http.response.body", "body": body})
