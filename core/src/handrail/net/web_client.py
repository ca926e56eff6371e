"""Web requests that go only where policy allows: each URL is judged on every hop, and connected to as checked.

For plugins that fetch, with the extra `handrail-core[web]`; import it on first use. Proxies from the environment are
not used, because they would resolve names themselves. A proxy from the configuration receives the address that was
checked here, never a name.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, cast

import anyio
import httpcore
import httpx

from handrail.api.verdict import Decision, Reason
from handrail.errors import Denied, Downstream, TimedOut
from handrail.net import addresses, urls
from handrail.net.decompression import EncodingError, create_decoder
from handrail.net.resolver import HostResolver, build_denied_error, resolve_public, resolve_with_system
from handrail.net.urls import UrlView
from handrail.redaction import redact_text

__all__ = ["ConnectionBroken", "PinnedBackend", "RequestLimits", "WebClient", "WebResponse"]

REDIRECT_STATUSES = frozenset((301, 302, 303, 307, 308))
# Some programs take such an address for a whole one, others for a path.
MALFORMED_LOCATION = re.compile(r"\s*(https?:(?!//)|[/\\]{3}|[/]?\\)", re.IGNORECASE)
# What proves who asks, and is nobody else's business.
CREDENTIAL_HEADERS = frozenset(("authorization", "cookie", "proxy-authorization"))
PROXY_PORT = 80
# Bytes that a proxy may take to say yes or no.
MAX_HEAD_BYTES = 16_384
# In an address that a server gave, long data is the server's own.
SERVER_REASONS = frozenset(("opaque_query",))

# Whether a person agrees to go on to an address that raises a question.
ApproveUrl = Callable[[UrlView], Awaitable[bool]]


class ConnectionBroken(Downstream):
    """No connection could be made, or it ended before the answer did; the same request may work another time."""

    retryable = True


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of one request: redirects, bytes of decoded content, seconds in total, and seconds without a byte.

    `silence` also limits the time until the server has sent its headers, however slowly it sends them.
    """

    hops: int = 10
    size: int = 500_000_000
    seconds: float = 300.0
    silence: float = 30.0


@dataclass(frozen=True, slots=True)
class WebResponse:
    """Response of a server.

    `url` is where the content came from, `hops` are all URLs that were requested, in order.
    """

    status: int
    url: str
    headers: Mapping[str, str]
    hops: tuple[str, ...]
    _response: httpx.Response
    _size: int

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the decoded content piece by piece.

        Raises `Downstream` if it exceeds the limit, `ConnectionBroken` if its end is missing.
        """
        try:
            content = create_decoder(self.headers.get("content-encoding", ""))
            got = 0
            async for raw in self._response.aiter_raw():
                for chunk in content.take(raw):
                    got += len(chunk)
                    if got > self._size:
                        raise Downstream(f"{redact_text(self.url)!r} sends more than {self._size:,} bytes")
                    yield chunk
            content.end()
        except EncodingError as exc:
            kind = ConnectionBroken if exc.early else Downstream
            raise kind(f"{redact_text(self.url)!r} sends what cannot be unpacked: {exc}") from exc

    async def read(self) -> bytes:
        """Return the complete content."""
        return b"".join([chunk async for chunk in self.chunks()])


class WebClient:
    """A client for one call or one session. It keeps cookies as browsers do, as long as it is open; close it with `async with`.

    `allow_private` and `proxy` are the session's settings of these names.
    """

    def __init__(
        self,
        *,
        allow_private: Collection[str] = (),
        limits: RequestLimits | None = None,
        resolver: HostResolver = resolve_with_system,
        approve: ApproveUrl | None = None,
        verify: ssl.SSLContext | None = None,
        proxy: str | None = None,
    ) -> None:
        self._allow_private = tuple(allow_private)
        self._limits = limits or RequestLimits()
        self._approve = approve
        self._transport = CheckedTransport(
            allow_private=self._allow_private, resolver=resolver, verify=verify, proxy=proxy
        )
        # Makes requests and keeps cookies; sending is done here, for it would read redirects in its own way.
        self._client = httpx.AsyncClient(transport=self._transport, trust_env=False, timeout=self._limits.silence)

    async def __aenter__(self) -> WebClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def request(
        self, url: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> AsyncGenerator[WebResponse, None]:
        """Yield the final response after all redirects.

        A first URL that the user was prompted about counts as approved. Raises `Denied` for a URL that may not be
        requested, `ConnectionBroken` if the connection fails or breaks off, `Downstream` for other failures, `TimedOut`
        if the request takes too long in total.
        """
        ends = monotonic() + self._limits.seconds
        try:
            with anyio.fail_after(self._limits.seconds):
                request = self._first(url, method, headers or {}, content)
                response, hops = await self._follow(request)
                try:
                    yield WebResponse(
                        response.status_code, hops[-1], response.headers, tuple(hops), response, self._limits.size
                    )
                finally:
                    await response.aclose()
        except TimeoutError as exc:
            if monotonic() < ends:
                raise
            raise TimedOut(f"{redact_text(url)!r} took longer than {self._limits.seconds:g} s") from exc
        except httpx.HTTPError as exc:
            kind = Downstream if _is_certificate_error(exc) else ConnectionBroken
            raise kind(f"{redact_text(url)!r} could not be fetched: {_describe_error(exc)}") from exc

    def _first(self, url: str, method: str, headers: Mapping[str, str], content: bytes | None) -> httpx.Request:
        view = urls.evaluate_url(url, allow_private=self._allow_private)
        if view.suggestion is Decision.DENY or view.scheme not in urls.DEFAULT_PORTS:
            raise build_denied_error(view.reasons[0])
        request = self._client.build_request(method, view.url, headers=dict(headers), content=content)
        if request.url.userinfo and "authorization" not in request.headers:
            secret = base64.b64encode(f"{request.url.username}:{request.url.password}".encode())
            request.headers["authorization"] = f"Basic {secret.decode()}"
        return request

    async def _follow(self, request: httpx.Request) -> tuple[httpx.Response, list[str]]:
        hops = [str(request.url)]
        while True:
            response = await self._answer(request)
            response.request = request
            self._client.cookies.extract_cookies(response)
            location = response.headers.get("location")
            if response.status_code not in REDIRECT_STATUSES or location is None:
                return response, hops
            await response.aclose()
            if len(hops) > self._limits.hops:
                raise Downstream(f"{redact_text(hops[0])!r} leads on more than {self._limits.hops} times")
            request = await self._next(request, response.status_code, location)
            hops.append(str(request.url))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        """Return the response once its headers have arrived; the content is still to be read."""
        ends = monotonic() + self._limits.silence
        try:
            with anyio.fail_after(self._limits.silence):
                return await self._transport.handle_async_request(request)
        except TimeoutError as exc:
            if monotonic() < ends:
                raise
            raise httpx.ReadTimeout(f"it did not answer within {self._limits.silence:g} s") from exc

    async def _next(self, before: httpx.Request, status: int, location: str) -> httpx.Request:
        """Return the request that a redirect asks for, after judging it like a first one.

        Credentials and content stay with the origin they were given to.
        """
        old = urls.evaluate_url(str(before.url), allow_private=self._allow_private)
        # Joined as text: what browsers read in it is for the view to say.
        joined = location if MALFORMED_LOCATION.match(location) else urls.join_url(old.url, location)
        view = urls.evaluate_url(joined, allow_private=self._allow_private)
        await self._check_hop(old, view, location)
        same = view.origin == old.origin
        keeps_method = status in (307, 308) or before.method in ("GET", "HEAD")
        if not same and not (before.method in ("GET", "HEAD") or not keeps_method):
            raise build_denied_error(
                Reason("redirected_content", f"{old.place} wants what was sent to it sent on to {view.place}")
            )
        method = before.method if keeps_method else "GET"
        dropped: set[str] = {"host", "content-length", "content-type", "transfer-encoding"}
        if not same:
            dropped |= CREDENTIAL_HEADERS
        if self._client.cookies:
            # The client knows which of them are meant for the next address.
            dropped.add("cookie")
        kept = {name: value for name, value in before.headers.items() if name.lower() not in dropped}
        if same and keeps_method and "content-type" in before.headers:
            kept["content-type"] = before.headers["content-type"]
        content = before.content if keeps_method and method not in ("GET", "HEAD") else None
        return self._client.build_request(method, view.url, headers=kept, content=content)

    async def _check_hop(self, old: UrlView, view: UrlView, location: str) -> None:
        if view.suggestion is Decision.DENY or view.scheme not in urls.DEFAULT_PORTS:
            why = view.reasons[0]
            raise build_denied_error(Reason(why.code, f"{old.place} leads on to {location!r}: {why.text}"))
        if old.scheme == "https" and view.scheme == "http":
            raise build_denied_error(Reason("downgrade", f"{old.place} leads on from https to http at {view.place}"))
        questions = [reason for reason in view.reasons if reason.code not in SERVER_REASONS]
        if not questions or (view.origin == old.origin and view.floor is None):
            return
        if self._approve is None or not await self._approve(view):
            told = "; ".join(reason.text for reason in questions)
            raise Denied(
                f"{old.place} leads on to {view.url!r}, which nobody was asked about: {told}",
                hint="call again with that address",
                details={"rule": f"effects:{questions[0].code}", "reason": questions[0].code},
            )


class CheckedTransport(httpx.AsyncBaseTransport):
    """Sends requests over connections that were checked as they were made; for hosts that want a client of their own."""

    def __init__(
        self,
        *,
        allow_private: Collection[str] = (),
        resolver: HostResolver = resolve_with_system,
        verify: ssl.SSLContext | None = None,
        proxy: str | None = None,
    ) -> None:
        self._allow_private = tuple(allow_private)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=verify or ssl.create_default_context(),
            network_backend=PinnedBackend(allow_private=self._allow_private, resolver=resolver, proxy=proxy),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        view = urls.evaluate_url(str(request.url), allow_private=self._allow_private)
        if view.suggestion is Decision.DENY or view.scheme not in urls.DEFAULT_PORTS:
            raise build_denied_error(view.reasons[0])
        sent = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            response = await self._pool.handle_async_request(sent)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as exc:
            raise httpx.TransportError(_describe_error(exc)) from exc
        return httpx.Response(response.status, headers=response.headers, stream=_ResponseStream(response))

    async def aclose(self) -> None:
        await self._pool.aclose()


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Network backend that connects to the addresses it has just checked.

    This makes a different second answer of the resolver irrelevant.
    """

    def __init__(self, *, allow_private: Collection[str], resolver: HostResolver, proxy: str | None = None) -> None:
        self._allow_private = allow_private
        self._resolver = resolver
        self._proxy = httpx.URL(proxy) if proxy is not None else None
        self._plain = cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        found = await self._found(host, port)
        failed: Exception | None = None
        for address in found:
            # A host of the person's own is none of the proxy's business.
            proxy = self._proxy if addresses.find_non_public_reason(address) is None else None
            place = (str(address), port) if proxy is None else (proxy.host, proxy.port or PROXY_PORT)
            try:
                stream = await self._plain.connect_tcp(*place, timeout, local_address, socket_options)
                return stream if proxy is None else await _connect_through_proxy(stream, address, port, timeout)
            except (httpcore.NetworkError, httpcore.TimeoutException) as exc:
                failed = exc
        way = (
            ""
            if self._proxy is None
            else f" (by the proxy {self._proxy.host}: {_describe_error(failed)})"
            if failed
            else ""
        )
        raise httpcore.ConnectError(f"{host}:{port} cannot be reached{way}") from failed

    async def _found(self, host: str, port: int) -> tuple[addresses.IPAddress, ...]:
        try:
            return await resolve_public(host, port, allow_private=self._allow_private, resolver=self._resolver)
        except Downstream as exc:
            if self._proxy is not None:
                exc.hint = (
                    "names are looked up here, also for a proxy, so that none leads to a private place unseen; "
                    "the resolver of this machine has to know public names"
                )
            raise

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise Denied(f"{path!r} is a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


async def _connect_through_proxy(
    stream: httpcore.AsyncNetworkStream, address: addresses.IPAddress, port: int, timeout: float | None
) -> httpcore.AsyncNetworkStream:
    """Turn a connection to a proxy into one to this address behind it, by RFC 9110 (9.3.6)."""
    place = f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
    try:
        await stream.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode(), timeout)
        head = b""
        while b"\r\n\r\n" not in head:
            more = await stream.read(4_096, timeout)
            head += more
            if not more or len(head) > MAX_HEAD_BYTES:
                raise httpcore.ConnectError("its answer is none of a proxy")
        # Whatever comes behind the head was said by the proxy, and not by the server.
        if re.match(rb"HTTP/1\.[01] 2\d\d\b", head) is None or not head.endswith(b"\r\n\r\n"):
            told = head.partition(b"\r\n")[0][:80].decode("ascii", "replace")
            raise httpcore.ConnectError(f"it answered {told!r}")
    except BaseException:
        with anyio.CancelScope(shield=True):
            await stream.aclose()
        raise
    return stream


class _ResponseStream(httpx.AsyncByteStream):
    """The content of an answer, as httpx wants it."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_stream():
                yield chunk
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as exc:
            raise httpx.TransportError(_describe_error(exc)) from exc

    async def aclose(self) -> None:
        await self._response.aclose()


def _is_certificate_error(exc: BaseException | None) -> bool:
    """Return True if the server could not prove its identity, which a retry does not change."""
    while exc is not None:
        if isinstance(exc, ssl.SSLCertVerificationError):
            return True
        exc = exc.__cause__ or exc.__context__
    return False


def _describe_error(exc: Exception) -> str:
    return str(exc) or type(exc).__name__
