"""Connection to a browser on this machine that the user started for debugging."""

from __future__ import annotations

from urllib.parse import urlsplit

from handrail import Denied, Downstream
from handrail_browser.chromium.browser import ChromiumBrowser
from handrail_browser.chromium.cdp import CdpConnection, WebSocketChannel
from handrail_browser.domains import is_loopback_endpoint


async def attach_browser(url: str, *, most_bytes: int) -> ChromiumBrowser:
    """Connect to the browser with the debugging endpoint `url`, over HTTP or a WebSocket."""
    connection = CdpConnection(await WebSocketChannel.to(await _resolve_websocket_url(url)))
    browser = ChromiumBrowser(connection, proxy=None, most_bytes=most_bytes, end=connection.close)
    try:
        await browser.start()
    except BaseException:  # being cancelled, too: the connection is closed
        await browser.close()
        raise
    return browser


async def _resolve_websocket_url(url: str) -> str:
    """Return the WebSocket URL of an endpoint.

    Raises `Denied` if the endpoint or its WebSocket is not on this machine, or if their ports differ.
    """
    if not is_loopback_endpoint(url):
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
    if not isinstance(told, str) or not is_loopback_endpoint(told) or urlsplit(told).port != urlsplit(url).port:
        raise Denied(
            f"{url!r} sends us to {told!r}", details={"reason": "foreign_browser", "rule": "browser:foreign_browser"}
        )
    return told
