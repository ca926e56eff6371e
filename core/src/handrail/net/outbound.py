"""Connections from this machine outward for programs that are confined: to addresses that were checked, or through the host's own proxy."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from handrail.errors import Downstream
from handrail.net import addresses, hostnames
from handrail.net.resolver import HostResolver, resolve_public, resolve_with_system

CONNECT_TIMEOUT_S = 20.0
# Bytes that a connection may have unread before its sender waits, and of a proxy's answer.
BUFFER_BYTES = 65_536
SUCCESS_STATUS = re.compile(rb"HTTP/1\.[01] 2\d\d\b")
PROXY_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """A proxy that the host's programs use. `authorization` is the value of its `Proxy-Authorization` header, where it needs one."""

    scheme: str
    host: str
    port: int
    authorization: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> ProxyAddress:
        """Read `[http[s]://][user:password@]host[:port]`. Raises `Downstream` for other kinds of proxy."""
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            host, port = parts.hostname, parts.port
        except ValueError as exc:
            raise Downstream("the host's proxy variable is not an address") from exc
        if parts.scheme not in PROXY_PORTS or not host:
            raise Downstream(
                f"the host's proxy variable names a proxy of the kind {parts.scheme!r}, which is not supported",
                hint="name an http:// or https:// proxy in HTTPS_PROXY, or in [network] proxy",
            )
        secret = None
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            secret = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return cls(parts.scheme, host, port or PROXY_PORTS[parts.scheme], secret)


@dataclass(frozen=True, slots=True)
class OutboundLink:
    """Outbound connection.

    `absolute`: it ends at a proxy that takes requests with full URLs; `authorization` is for that proxy.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    absolute: bool = False
    authorization: str | None = None


@dataclass(frozen=True, slots=True)
class OutboundConnector:
    """Connector to other hosts.

    `environment` is the host's own, for the proxy that it names (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY); `proxy`
    is the configured one, which is given the address that was checked and takes precedence. `allow_private` is as in
    `resolve_public`; `own_names` are names and addresses of this machine to which connections are allowed under these
    names only: no other name may lead there.
    """

    allow_private: Collection[str] = ()
    own_names: Collection[str] = ()
    proxy: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    resolver: HostResolver = resolve_with_system

    async def open_tunnel(self, host: str, port: int) -> OutboundLink:
        """Connect to a port of a host.

        Raises `Denied` for an address that is not public, `Downstream` if no connection can be made.
        """
        return await self._open(host, port, tunnel=True)

    async def open_http(self, host: str, port: int) -> OutboundLink:
        """Connect to a web server without TLS, or to the proxy that asks it. Raises as `open_tunnel` does."""
        return await self._open(host, port, tunnel=False)

    async def _open(self, host: str, port: int, *, tunnel: bool) -> OutboundLink:
        named = None if self.proxy is not None else find_proxy(self.environment, host, port, tls=tunnel)
        try:
            allowed = (
                (*self.allow_private, host) if hostnames.is_name_listed(host, self.own_names) else self.allow_private
            )
            found = await resolve_public(host, port, allow_private=allowed, resolver=self.resolver)
        except Downstream:
            # Where a proxy is the only way out, this machine's resolver may know no public names.
            if named is None:
                raise
            found = ()
        if named is not None:
            link = await _open_link(named.host, named.port, tls=named.scheme == "https")
            if not tunnel:
                return OutboundLink(link.reader, link.writer, absolute=True, authorization=named.authorization)
            return await _open_proxy_tunnel(link, _format_authority(host, port), named.authorization)
        failed: Exception | None = None
        for address in found:
            try:
                return await self._open_address(address, port)
            except Downstream as exc:
                failed = exc
        raise Downstream(f"{host}:{port} cannot be reached ({failed})") from failed

    async def _open_address(self, address: addresses.IPAddress, port: int) -> OutboundLink:
        # The proxy of the configuration is for public hosts.
        if self.proxy is None or addresses.find_non_public_reason(address) is not None:
            return await _open_link(str(address), port)
        proxy = ProxyAddress.parse(self.proxy)
        link = await _open_link(proxy.host, proxy.port)
        return await _open_proxy_tunnel(link, _format_authority(str(address), port), proxy.authorization)


def find_proxy(environment: Mapping[str, str], host: str, port: int, *, tls: bool) -> ProxyAddress | None:
    """Return the proxy that an environment names for a host, as curl reads it; None for none."""
    names = ("https_proxy", "HTTPS_PROXY") if tls else ("http_proxy", "HTTP_PROXY")
    given = (environment.get(name, "").strip() for name in (*names, "all_proxy", "ALL_PROXY"))
    text = next(filter(None, given), None)
    if text is None or _is_proxy_exempt(environment.get("no_proxy") or environment.get("NO_PROXY") or "", host, port):
        return None
    return ProxyAddress.parse(text)


def _is_proxy_exempt(listed: str, host: str, port: int) -> bool:
    """Return True if NO_PROXY lists a host: by `*`, its name or a name above it, its address or network, with or without a port."""
    for text in listed.replace(",", " ").split():
        if text == "*":
            return True
        with contextlib.suppress(ValueError):
            if ip_address(host) in ip_network(text, strict=False):
                return True
        name, _, at = text.lower().partition(":") if text.count(":") == 1 else (text.lower(), "", "")
        name = name.removeprefix("*").removeprefix(".")
        if name and (not at or at == str(port)) and (host == name or host.endswith(f".{name}")):
            return True
    return False


async def _open_link(host: str, port: int, *, tls: bool = False) -> OutboundLink:
    context = ssl.create_default_context() if tls else None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return OutboundLink(*await asyncio.open_connection(host, port, limit=BUFFER_BYTES, ssl=context))
    except TimeoutError as exc:
        raise Downstream(f"{host}:{port} does not answer") from exc
    except OSError as exc:
        raise Downstream(f"{host}:{port}: {exc.strerror or exc}") from exc


async def _open_proxy_tunnel(link: OutboundLink, authority: str, authorization: str | None) -> OutboundLink:
    """Ask a proxy for a tunnel, by RFC 9110 (9.3.6)."""
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    lines += [f"Proxy-Authorization: {authorization}"] if authorization else []
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            link.writer.write("\r\n".join([*lines, "", ""]).encode())
            head = await link.reader.readuntil(b"\r\n\r\n")
        if not SUCCESS_STATUS.match(head):
            told = head.partition(b"\r\n")[0][:80].decode("ascii", "replace")
            raise Downstream(f"the proxy answered {told!r} for {authority}")
    except BaseException as exc:
        link.writer.transport.abort()
        if isinstance(exc, OSError | asyncio.IncompleteReadError | asyncio.LimitOverrunError | TimeoutError):
            raise Downstream(f"the proxy made no tunnel to {authority}") from exc
        raise
    return link


def _format_authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
