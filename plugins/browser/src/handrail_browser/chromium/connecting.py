"""Using a browser that a person started for debugging, on this machine."""

from __future__ import annotations

from urllib.parse import urlsplit

from handrail import Denied, Downstream
from handrail_browser.chromium.browser import Browser
from handrail_browser.chromium.cdp import Connection, Socket
from handrail_browser.domains import on_this_machine


async def attached(url: str, *, most_bytes: int) -> Browser:
    """The browser whose debugging endpoint `url` is, over HTTP or a WebSocket."""
    connection = Connection(await Socket.to(await _socket(url)))
    browser = Browser(connection, proxy=None, most_bytes=most_bytes, end=connection.close)
    try:
        await browser.start()
    except BaseException:  # being cancelled, too: the connection is closed
        await browser.close()
        raise
    return browser


async def _socket(url: str) -> str:
    """The WebSocket of an endpoint; it must be where the endpoint is."""
    if not on_this_machine(url):
        raise Denied(
            f"{url!r} is no browser on this machine",
            details={"reason": "foreign_browser", "rule": "browser:foreign_browser"},
        )
    if url.startswith(("ws://", "wss://")):
        return url
    import httpx

    try:
        async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
            told = (await client.get(f"{url.rstrip('/')}/json/version")).json()["webSocketDebuggerUrl"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as exc:
        raise Downstream(
            f"no browser answers at {url!r}", hint="start one with --remote-debugging-port and a profile of its own"
        ) from exc
    if not isinstance(told, str) or not on_this_machine(told) or urlsplit(told).port != urlsplit(url).port:
        raise Denied(
            f"{url!r} sends us to {told!r}", details={"reason": "foreign_browser", "rule": "browser:foreign_browser"}
        )
    return told
