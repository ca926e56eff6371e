"""Heads of requests to a proxy, read strictly: what two programs could read differently is refused.

Source: RFC 9112 (3 to 7), RFC 9110 (9.3.6). Where the RFC lets a recipient mend a message, it is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from handrail.net import urls

TOKEN_PATTERN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
REQUEST_LINE = re.compile(rb"(" + TOKEN_PATTERN + rb") ([\x21-\x7e]+) HTTP/1\.([01])")
HEADER_LINE = re.compile(rb"(" + TOKEN_PATTERN + rb"):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
AUTHORITY_PATTERN = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
REQUEST_TARGET = re.compile(rb"(?i:http)://([^/?#]+)([/?][\x21\x22\x24-\x7e]*)?")
LENGTH_PATTERN = re.compile(rb"[0-9]{1,18}")
STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [\t\x20-\x7e\x80-\xff]*)?")
# Headers of one connection, which are not handed on.
HOP_BY_HOP = frozenset((
    b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"transfer-encoding",
    b"upgrade", b"http2-settings",
))  # fmt: skip
FRAMING_HEADERS = frozenset((b"host", b"content-length", b"transfer-encoding"))
METHOD_OF_TUNNEL = b"CONNECT"

HeaderPair = tuple[bytes, bytes]


class BadRequest(ValueError):
    """A request or answer that is not handed on."""


@dataclass(frozen=True, slots=True)
class RequestAuthority:
    """The destination of a request: the host in lower-case ASCII without a trailing dot or brackets, and the port."""

    host: str
    port: int

    @property
    def place(self) -> str:
        """`host`, or `host:port` for other ports than 80 and 443; an IPv6 address in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in urls.DEFAULT_PORTS.values() else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Request line and headers of a request.

    `path` is empty for a tunnel. `length` is None for a chunked body.
    """

    method: bytes
    authority: RequestAuthority
    path: bytes
    headers: tuple[HeaderPair, ...]
    length: int | None = 0

    @property
    def tunnels(self) -> bool:
        return self.method == METHOD_OF_TUNNEL

    @property
    def expects(self) -> bool:
        """True if the client waits for `100 Continue` before it sends the body."""
        return any(name.lower() == b"expect" for name, _ in self.headers)


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Status and headers of a response.

    `length` is None if the body ends with the connection or with the last chunk.
    """

    line: bytes
    status: int
    headers: tuple[HeaderPair, ...]
    length: int | None


def parse_request(head: bytes) -> RequestHead:
    """Read a head up to its empty line. Raises `BadRequest`, which says why it is not handed on."""
    line, headers = _split_head(head)
    found = REQUEST_LINE.fullmatch(line)
    if found is None:
        raise BadRequest("the first line is not that of a request to a proxy")
    if found[1] == METHOD_OF_TUNNEL:
        authority, path = parse_authority(found[2]), b""
        if _get_header_values(headers, b"transfer-encoding") or any(
            v != b"0" for v in _get_header_values(headers, b"content-length")
        ):
            raise BadRequest("a request for a tunnel has no body")
    else:
        target = REQUEST_TARGET.fullmatch(found[2])
        if target is None:
            raise BadRequest("requests name a whole http:// address; https:// goes through CONNECT")
        authority = parse_authority(target[1], port=80)
        path = target[2] or b"/"
        path = path if path.startswith(b"/") else b"/" + path
    hosts = _get_header_values(headers, b"host")
    if len(hosts) > 1 or (not hosts and found[3] == b"1"):
        raise BadRequest("a request has one Host header")
    # Some clients leave out the port in it, also for another one than the usual.
    if hosts and parse_authority(hosts[0], port=authority.port) != authority:
        raise BadRequest("the Host header names another host than the request")
    return RequestHead(found[1], authority, path, headers, _parse_request_length(headers))


def parse_authority(text: bytes, *, port: int | None = None) -> RequestAuthority:
    """Read `host:port`; `port` is taken where the text has none. Raises `BadRequest`."""
    found = AUTHORITY_PATTERN.fullmatch(text)
    number = int(found[2]) if found is not None and found[2] else port
    view = urls.evaluate_host(found[1].decode("ascii") if found is not None else "")
    if not view.host or number is None or not 0 < number <= 65535:
        raise BadRequest("the request names no host and port")
    if any(reason.code == "odd_address" for reason in view.reasons):
        raise BadRequest("the request names an address in a form that programs read differently")
    return RequestAuthority(view.host, number)


def parse_response(head: bytes, *, to: bytes) -> ResponseHead:
    """Read the head of an answer to a request with the method `to`. Raises `BadRequest`."""
    line, headers = _split_head(head)
    found = STATUS_LINE.fullmatch(line)
    if found is None or found[1] == b"101":
        raise BadRequest("the server's answer is not one of HTTP/1")
    status = int(found[1])
    if to == b"HEAD" or status in (204, 304) or status < 200:
        return ResponseHead(line, status, headers, 0)
    lengths = set(_get_header_values(headers, b"content-length"))
    if len(lengths) > 1 or not all(LENGTH_PATTERN.fullmatch(length) for length in lengths):
        raise BadRequest("the server's answer has no clear length")
    chunked = bool(_get_header_values(headers, b"transfer-encoding"))
    if chunked and lengths:
        raise BadRequest("the server's answer has two lengths")
    return ResponseHead(line, status, headers, int(lengths.pop()) if lengths else None)


def _check_connection(headers: Sequence[HeaderPair]) -> None:
    """Raise `BadRequest` where a Connection header names what says how long the message is, or for whom: that cannot be left out."""
    if not FRAMING_HEADERS.isdisjoint(_list_connection_headers(headers)):
        raise BadRequest("a Connection header names a header that every hop needs")


def _list_connection_headers(headers: Sequence[HeaderPair]) -> set[bytes]:
    return {name.strip().lower() for value in _get_header_values(headers, b"connection") for name in value.split(b",")}


def filter_hop_by_hop(headers: Sequence[HeaderPair], *, without: Sequence[bytes] = ()) -> list[HeaderPair]:
    """Return the headers that are not of one connection alone, and not among `without` (lower case)."""
    dropped = HOP_BY_HOP | _list_connection_headers(headers) | set(without)
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def encode_head(line: bytes, headers: Sequence[HeaderPair]) -> bytes:
    """Return a head as it is sent."""
    return b"\r\n".join([line, *(name + b": " + value for name, value in headers), b"", b""])


def _split_head(head: bytes) -> tuple[bytes, tuple[HeaderPair, ...]]:
    line, *rest = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    headers: list[HeaderPair] = []
    for text in rest:
        found = HEADER_LINE.fullmatch(text)
        if found is None:
            raise BadRequest("a header is malformed")
        headers.append((found[1], found[2]))
    _check_connection(headers)
    return line, tuple(headers)


def _get_header_values(headers: Sequence[HeaderPair], name: bytes) -> list[bytes]:
    return [value for known, value in headers if known.lower() == name]


def _parse_request_length(headers: Sequence[HeaderPair]) -> int | None:
    codings, lengths = _get_header_values(headers, b"transfer-encoding"), _get_header_values(headers, b"content-length")
    if codings:
        if len(codings) > 1 or codings[0].lower() != b"chunked" or lengths:
            raise BadRequest("the length of the body is unclear")
        return None
    if len(lengths) > 1 or not all(LENGTH_PATTERN.fullmatch(length) for length in lengths):
        raise BadRequest("the length of the body is unclear")
    return int(lengths[0]) if lengths else 0
