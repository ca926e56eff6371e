"""Proxy that is the browser's only way out: it allows only permitted hosts, and connects to the checked addresses.

The browser is started in a way that gives it no other route and no name resolution of its own. Each connection that a
page makes (navigations, redirects, subresources, scripts, workers, WebSockets, windows that it opens) is therefore
checked here, and the address that was checked is the one that is connected to. Encrypted content is not inspected: for
those connections, host and port are checked.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handrail import Denied, Downstream
from handrail.api.verdict import Decision, Reason
from handrail.net.resolver import HostResolver, build_denied_error, resolve_with_system
from handrail.redaction import redact_text
from handrail_browser.domains import DomainPolicy

if TYPE_CHECKING:
    import httpcore

MAX_HEAD_BYTES = 65_536
CHUNK_BYTES = 65_536
# By what status line a page of the proxy itself is known from that of a server.
REFUSAL_REASON_PHRASE = "Handrail"
MAX_REMEMBERED = 200
CONNECT_S = 20.0
# Of one connection, not to be handed on.
HOP_BY_HOP = frozenset((b"proxy-connection", b"proxy-authorization", b"connection", b"keep-alive", b"te", b"upgrade"))


@dataclass(frozen=True, slots=True)
class RefusedConnection:
    """A connection that was not made: to where, and why."""

    place: str
    reason: Reason


@dataclass(slots=True)
class JudgingProxy:
    """Listens on this machine for the browser. `refusals` are the latest connections that were not made, `errors` those that failed."""

    allow_private: Collection[str]
    domains: DomainPolicy
    upstream: str | None = None
    resolver: HostResolver = resolve_with_system
    refusals: deque[RefusedConnection] = field(default_factory=lambda: deque[RefusedConnection](maxlen=MAX_REMEMBERED))
    errors: dict[str, str] = field(default_factory=dict[str, str])
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        """Begin to listen, at any free port of the loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)

    async def close(self) -> None:
        """End it and every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def taken(self) -> list[RefusedConnection]:
        """Return the connections that were refused since the last call."""
        taken = list(self.refusals)
        self.refusals.clear()
        return taken

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._speak(reader, writer)
        # The end of the session.
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        found = re.fullmatch(rb"([A-Z]+) (\S+) HTTP/1\.[01]", line)
        if found is None:
            return
        try:
            if found[1] == b"CONNECT":
                async with _closing_stream(await self._reached(found[2].decode("ascii", "replace"), None)) as far:
                    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
                    await _tunnel_bytes(reader, writer, far)
                return
            url = found[2].decode("ascii", "replace")
            async with _closing_stream(await self._reached(url, "http")) as far:
                await _write_data(far, _rewrite_request_head(found[1], url, rest))
                sending = asyncio.create_task(_forward_body(reader, far, rest))
                try:
                    await _forward_response(far, writer, empty=found[1] == b"HEAD")
                finally:
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
        except Denied as exc:
            writer.write(_build_error_page(403, str(exc)))
        except Downstream as exc:
            writer.write(_build_error_page(502, str(exc)))
        await writer.drain()

    async def _reached(self, target: str, scheme: str | None) -> httpcore.AsyncNetworkStream:
        """Connect to the host of a request, if that is allowed.

        Raises `Denied` if it is not, and `Downstream` if the host cannot be reached.
        """
        import httpcore

        from handrail.net import urls
        from handrail.net.web_client import PinnedBackend

        # What is asked to be tunnelled to is a host and a port; for judging them any scheme will do.
        view = urls.evaluate_url(target if scheme else f"https://{target}/", allow_private=self.allow_private)
        place = view.place or redact_text(target)[:200]
        reason = (
            view.reasons[0]
            if view.suggestion is Decision.DENY or view.scheme not in urls.DEFAULT_PORTS
            else self.domains.refuses(view.host)
        )
        try:
            if reason is not None:
                raise build_denied_error(reason)
            backend = PinnedBackend(allow_private=self.allow_private, resolver=self.resolver, proxy=self.upstream)
            return await backend.connect_tcp(view.host, view.port, timeout=CONNECT_S)
        except Denied as exc:
            self.refusals.append(RefusedConnection(place, Reason(str(exc.details.get("reason", "denied")), str(exc))))
            raise
        except (httpcore.NetworkError, httpcore.TimeoutException) as exc:
            self.errors[view.host] = str(exc) or type(exc).__name__
            raise Downstream(f"{place} cannot be reached") from exc
        except Downstream as exc:
            self.errors[view.host] = str(exc)
            raise


@asynccontextmanager
async def _closing_stream(stream: httpcore.AsyncNetworkStream) -> AsyncGenerator[httpcore.AsyncNetworkStream, None]:
    try:
        yield stream
    finally:
        await stream.aclose()


def _rewrite_request_head(method: bytes, url: str, headers: bytes) -> bytes:
    """Return the head of a request in the form for the server itself.

    Each connection carries one request: the next one is checked anew.
    """
    path = "/" + url.partition("://")[2].partition("/")[2]
    lines = [
        line for line in headers.split(b"\r\n") if line and line.partition(b":")[0].strip().lower() not in HOP_BY_HOP
    ]
    return b"\r\n".join([method + b" " + path.encode() + b" HTTP/1.1", *lines, b"Connection: close", b"", b""])


async def _forward_body(reader: asyncio.StreamReader, far: httpcore.AsyncNetworkStream, headers: bytes) -> None:
    """Hand on the content of a request, and nothing that comes behind it."""
    length = re.search(rb"(?im)^content-length:\s*(\d+)\s*$", headers)
    if re.search(rb"(?im)^transfer-encoding:.*chunked", headers):
        await _forward_chunks(reader, far)
        return
    left = int(length[1]) if length else 0
    while left and (data := await reader.read(min(left, CHUNK_BYTES))):
        left -= len(data)
        await _write_data(far, data)


async def _forward_chunks(reader: asyncio.StreamReader, far: httpcore.AsyncNetworkStream) -> None:
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        await _write_data(far, line + await reader.readexactly(size + 2))
        if not size:
            return


async def _forward_response(far: httpcore.AsyncNetworkStream, writer: asyncio.StreamWriter, *, empty: bool) -> None:
    """Hand on all that the server sends until it closes; then the browser's connection closes, too. `empty`: only a head comes."""
    head = b""
    while b"\r\n\r\n" not in head and len(head) < MAX_HEAD_BYTES:
        data = await _read_chunk(far)
        if not data:
            break
        head += data
    first, mark, rest = head.partition(b"\r\n\r\n")
    # Whatever the server says of its connection: the browser must not use this one again.
    lines = [
        line
        for line in first.split(b"\r\n")
        if line.partition(b":")[0].strip().lower() not in (b"connection", b"keep-alive")
    ]
    writer.write(b"\r\n".join([*lines, b"Connection: close"]) + mark + rest if mark else head)
    left = 0 if empty else _get_content_length(first)
    left = left - len(rest) if left is not None else None
    while left is None or left > 0:
        await writer.drain()
        data = await _read_chunk(far)
        if not data:
            return
        writer.write(data)
        left = left - len(data) if left is not None else None


def _get_content_length(head: bytes) -> int | None:
    """Return the number of content bytes after the head of a response, or None if it does not say."""
    status = head.split(b" ", 2)[1:2]
    if status and (status[0] in (b"204", b"304") or status[0].startswith(b"1")):
        return 0 if not status[0].startswith(b"1") else None
    if re.search(rb"(?im)^transfer-encoding:", head):
        return None
    found = re.search(rb"(?im)^content-length:\s*(\d+)\s*$", head)
    return int(found[1]) if found else None


async def _tunnel_bytes(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, far: httpcore.AsyncNetworkStream
) -> None:
    async def up() -> None:
        while data := await reader.read(CHUNK_BYTES):
            await _write_data(far, data)

    async def down() -> None:
        while data := await _read_chunk(far):
            writer.write(data)
            await writer.drain()

    ways = [asyncio.create_task(up()), asyncio.create_task(down())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _read_chunk(far: httpcore.AsyncNetworkStream) -> bytes:
    import httpcore

    try:
        return await far.read(CHUNK_BYTES)
    except (httpcore.NetworkError, httpcore.TimeoutException):
        return b""


async def _write_data(far: httpcore.AsyncNetworkStream, data: bytes) -> None:
    import httpcore

    try:
        await far.write(data)
    except (httpcore.NetworkError, httpcore.TimeoutException) as exc:
        raise ConnectionError(str(exc)) from exc


def _build_error_page(status: int, text: str) -> bytes:
    body = f"Handrail: {text}\n".encode()
    fields = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\nconnection: close"
    head = f"HTTP/1.1 {status} {REFUSAL_REASON_PHRASE}\r\n{fields}\r\n\r\n"
    return head.encode() + body
