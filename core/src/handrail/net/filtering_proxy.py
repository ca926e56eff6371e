"""Proxy for confined programs that connects to allowed hosts and to no others.

It accepts `CONNECT` for TLS, and requests with a full http:// URL. Names are resolved here, and the connection goes to
the address that was checked. Of an encrypted connection, only the host, the port and the server name that the client
requests are visible: a server that answers for several names may serve any of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from handrail.errors import Denied, Downstream
from handrail.net import urls
from handrail.net.allowed_hosts import AllowedHosts
from handrail.net.client_hello import MAX_HELLO_BYTES, NotClientHello, parse_client_hello
from handrail.net.http_heads import (
    BadRequest,
    RequestAuthority,
    RequestHead,
    encode_head,
    filter_hop_by_hop,
    parse_authority,
    parse_request,
    parse_response,
)
from handrail.net.outbound import BUFFER_BYTES, OutboundConnector, OutboundLink

log = logging.getLogger(__name__)

# Bytes of one head, and of one piece of what is handed on.
LONGEST_HEAD = BUFFER_BYTES
COPY_BYTES = 65_536
# Connections at a time; further ones wait.
MOST_CONNECTIONS = 64
# Seconds for a head and for the first message of a TLS connection.
HEAD_S = 60.0
HELLO_S = 30.0
# Seconds until connections are accepted again where this process has no descriptors left.
AGAIN_S = 0.1
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(;[\t\x20-\x7e\x80-\xff]*)?\r\n")
LONGEST_CHUNK_LINE = 1_024
MOST_TRAILERS = 64

RefusalReason = Literal["not_allowed", "not_public", "other_host", "unreachable"]


@dataclass(frozen=True, slots=True)
class RefusedConnection:
    """A connection that was not made.

    `place` is `host` or `host:port`. `why`: the host is not in the list, it is not public, the connection asked for another host than it
    was made to, or it failed.
    """

    place: str
    why: RefusalReason
    text: str


@dataclass(frozen=True, slots=True)
class FilteringProxy:
    """Proxy for one confined program.

    `report` is called for each refused connection, `reached` for each place that accepted one.
    """

    allowed: AllowedHosts
    outward: OutboundConnector
    report: Callable[[RefusedConnection], None]
    reached: Callable[[str], None] = lambda place: None

    async def serve(self, listener: socket.socket) -> None:
        """Take connections until the task is cancelled; then all of them end. `listener` is listening, and stays open."""
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        free = asyncio.Semaphore(MOST_CONNECTIONS)
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                await free.acquire()
                try:
                    accepted, _ = await loop.sock_accept(listener)
                except OSError as exc:
                    free.release()
                    log.warning("the sandbox's proxy cannot take a connection: %s", exc)
                    await asyncio.sleep(AGAIN_S)
                    continue
                task = loop.create_task(self._take(accepted))
                tasks.add(task)
                task.add_done_callback(lambda done: (tasks.discard(done), free.release()))
        finally:
            ending = list(tasks)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def _take(self, accepted: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=accepted, limit=LONGEST_HEAD)
        try:
            async with asyncio.timeout(HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(head, OutboundLink(reader, writer))
            writer.write_eof()
            await writer.drain()
        # A client that leaves, sends too much or nothing at all.
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError) as exc:
            log.debug("a connection to the sandbox's proxy ended: %s", exc)
            # An answer that was cut off must not look like a whole one.
            writer.transport.abort()
        finally:
            await _close_writer(writer)

    async def _answer(self, head: bytes, near: OutboundLink) -> None:
        try:
            request = parse_request(head)
        except BadRequest as exc:
            near.writer.write(_build_error_page(400, str(exc)))
            return
        try:
            self._check(request.authority)
            await (self._tunnel(request.authority, near) if request.tunnels else self._hand_on(request, near))
        except BadRequest as exc:
            near.writer.write(_build_error_page(400, str(exc)))
        except Denied as exc:
            near.writer.write(_build_error_page(403, str(exc)))
        except Downstream as exc:
            place = request.authority.place
            text = str(exc) if place in str(exc) else f"{place}: {exc}"
            self.report(RefusedConnection(place, "unreachable", text))
            # A program would take a page for the answer of the server that it asked.
            if request.tunnels:
                near.writer.write(_build_error_page(502, str(exc)))

    def _check(self, to: RequestAuthority) -> None:
        """Raise `Denied` for a host that is not in the list."""
        if self.allowed.permits(to.host, to.port):
            return
        allowed = (*self.outward.allow_private, *self.outward.own_names)
        refused = urls.evaluate_host(to.host, allow_private=allowed)
        closed = next((r for r in refused.reasons if refused.floor is not None), None)
        text = f"the sandbox refused a connection to {to.place}" + (f": {closed.text}" if closed else "")
        raise self._refusal(to.place, "not_public" if closed else "not_allowed", text)

    def _refusal(self, place: str, why: RefusalReason, text: str) -> Denied:
        self.report(RefusedConnection(place, why, text))
        return Denied(text)

    @asynccontextmanager
    async def _linked(self, to: RequestAuthority, link: Awaitable[OutboundLink]) -> AsyncGenerator[OutboundLink]:
        try:
            far = await link
        except Denied as exc:
            cure = f"; {exc.hint}" if exc.hint else ""
            text = f"the sandbox refused a connection to {to.place}: {exc}{cure}"
            raise self._refusal(to.place, "not_public", text) from exc
        self.reached(to.place)
        try:
            yield far
        finally:
            await _close_writer(far.writer)

    async def _tunnel(self, to: RequestAuthority, near: OutboundLink) -> None:
        async with self._linked(to, self.outward.open_tunnel(to.host, to.port)) as far:
            near.writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            begun = await self._hello(to, near.reader)
            if begun is None:
                return
            far.writer.write(begun)
            await _relay_both_ways(near, far)

    async def _hello(self, to: RequestAuthority, reader: asyncio.StreamReader) -> bytes | None:
        """Read the first message of a TLS connection that asks for the host it was made to; None where it does not."""
        begun = b""
        try:
            async with asyncio.timeout(HELLO_S):
                while (hello := parse_client_hello(begun)) is None:
                    more = await reader.read(COPY_BYTES)
                    begun += more
                    if not more or len(begun) > 2 * MAX_HELLO_BYTES:
                        return None
            if hello.encrypted:
                raise NotClientHello("its server name is encrypted")
            named = None if hello.server_name is None else parse_authority(hello.server_name.encode(), port=to.port)
        except (NotClientHello, BadRequest) as exc:
            text = f"the sandbox ended a connection to {to.place}: {exc}"
        else:
            if named in (None, to):
                return begun
            text = f"the sandbox ended a connection to {to.place} that asked for {named.place}"
        self.report(RefusedConnection(to.place, "other_host", text))
        return None

    async def _hand_on(self, request: RequestHead, near: OutboundLink) -> None:
        """Send one request and its answer. The connection ends then: the next request is judged anew."""
        to = request.authority
        async with self._linked(to, self.outward.open_http(to.host, to.port)) as far:
            host = (f"[{to.host}]" if ":" in to.host else to.host) + (f":{to.port}" if to.port != 80 else "")
            headers = [(b"Host", host.encode()), *filter_hop_by_hop(request.headers, without=(b"host", b"expect"))]
            headers += [(b"Transfer-Encoding", b"chunked")] if request.length is None else []
            if far.absolute and far.authorization is not None:
                headers.append((b"Proxy-Authorization", far.authorization.encode()))
            headers.append((b"Connection", b"close"))
            target = b"http://" + host.encode() + request.path if far.absolute else request.path
            far.writer.write(encode_head(request.method + b" " + target + b" HTTP/1.1", headers))
            if request.expects:
                near.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            sending = asyncio.create_task(_send_body(near.reader, far.writer, request.length))
            try:
                await _send_answer(far.reader, near.writer, request.method)
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)


async def _send_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None) -> None:
    """Forward a request's body and nothing after it.

    Anything malformed ends the connection, which shows the server that the body was cut off.
    """
    try:
        if length is not None:
            await _copy_bytes(reader, writer, length)
            return
        while size := await _read_chunk_size(reader):
            writer.write(b"%x\r\n" % size)
            await _copy_bytes(reader, writer, size)
            if await reader.readexactly(2) != b"\r\n":
                raise BadRequest("a chunk has no end")
            writer.write(b"\r\n")
        for _ in range(MOST_TRAILERS):
            # Trailers are dropped.
            if await reader.readuntil(b"\r\n") == b"\r\n":
                writer.write(b"0\r\n\r\n")
                await writer.drain()
                return
        raise BadRequest("there are too many trailers")
    except (BadRequest, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        writer.transport.abort()


async def _read_chunk_size(reader: asyncio.StreamReader) -> int:
    line = await reader.readuntil(b"\r\n")
    found = CHUNK_SIZE.fullmatch(line) if len(line) <= LONGEST_CHUNK_LINE else None
    if found is None:
        raise BadRequest("a chunk has no clear size")
    return int(found[1], 16)


async def _send_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: bytes) -> None:
    while True:
        try:
            answer = parse_response(await reader.readuntil(b"\r\n\r\n"), to=method)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as exc:
            raise Downstream("the server gave no whole answer") from exc
        except BadRequest as exc:
            raise Downstream(str(exc)) from exc
        if answer.status >= 200:
            break
    chunked = [(name, value) for name, value in answer.headers if name.lower() == b"transfer-encoding"]
    headers = [*filter_hop_by_hop(answer.headers), *chunked, (b"Connection", b"close")]
    writer.write(encode_head(answer.line, headers))
    await _copy_bytes(reader, writer, answer.length)


async def _copy_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, length: int | None) -> None:
    """Copy so many bytes, or all there are. Raises `IncompleteReadError` where there are fewer."""
    left = length
    while left is None or left > 0:
        data = await reader.read(COPY_BYTES if left is None else min(left, COPY_BYTES))
        if not data:
            if left is None:
                return
            raise asyncio.IncompleteReadError(b"", left)
        writer.write(data)
        await writer.drain()
        left = None if left is None else left - len(data)


async def _relay_both_ways(near: OutboundLink, far: OutboundLink) -> None:
    """Copy both ways until both have ended, or one fails."""

    async def one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _copy_bytes(reader, writer, None)
        # The other side is told that no more comes, and may still answer; by TLS, to a proxy, only by ending the connection.
        with contextlib.suppress(OSError):
            if writer.can_write_eof():
                writer.write_eof()
            else:
                writer.close()

    async with contextlib.AsyncExitStack() as ended:
        ways = [asyncio.create_task(one_way(*way)) for way in ((near.reader, far.writer), (far.reader, near.writer))]

        async def stop() -> None:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

        ended.push_async_callback(stop)
        await asyncio.gather(*ways)


async def _close_writer(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, asyncio.CancelledError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()


def _build_error_page(status: int, text: str) -> bytes:
    body = f"Handrail: {text}\n".encode("ascii", "backslashreplace")
    head = f"HTTP/1.1 {status} Handrail\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body
