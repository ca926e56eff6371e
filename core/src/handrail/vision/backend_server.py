"""The server of a vision backend, over HTTP: where the person's configuration says it is, and nowhere else.

For backends, with the extra `handrail-core[web]`; import it on first use. That an address is configured is the permission to go there, also to one
of the person's own network; a redirect is not followed. Pictures of the screen and keys go by plain HTTP to addresses that are not public only.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, cast

import httpx

from handrail.errors import BackendUnavailable, HandrailError
from handrail.json_types import is_object
from handrail.net import addresses, urls
from handrail.net.resolver import HostResolver, resolve_with_system
from handrail.net.retry import (
    MAX_TRIES,
    TRANSIENT_STATUSES,
    TransientError,
    format_status,
    parse_retry_after,
    retry_transient,
)
from handrail.net.web_client import CheckedTransport, ConnectionBroken, RequestLimits, WebClient
from handrail.redaction import REDACTED_TEXT
from handrail.sanitize.envelope import clean_text
from handrail.version import __version__

if TYPE_CHECKING:
    from handrail.api.vision import NetworkAccess

__all__ = ["BackendServer", "ServerNotReached", "ServerRefused", "clean_server_text", "create_transport"]

# Bytes of an answer: a model's fits into a tenth of it.
MAX_ANSWER_BYTES = 8_000_000
# Values in an answer, at most: as objects they take fifty times the room, and while they are made nothing else is done.
MAX_VALUES = 500_000
VALUE_MARKS = (b",", b"[", b"{")
# Characters of what a server says of a failure.
MAX_MESSAGE_CHARS = 200


class ServerRefused(BackendUnavailable):
    """The server answered, and not with what was asked for: `http_status` says how."""

    def __init__(self, message: str, *, http_status: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.http_status = http_status


class ServerNotReached(BackendUnavailable):
    """Failed connection to a server, or one that closed before the answer was complete."""


class BackendServer:
    """A server that takes and gives JSON. All that goes wrong with it is `BackendUnavailable`; close it.

    `hidden` are texts that no message may show, as keys; `seconds` is for one request. `tries`: how often a request is sent, when the server is busy
    or fails, `longest` the bytes of an answer, at most.
    """

    def __init__(
        self,
        url: str,
        *,
        network: NetworkAccess,
        seconds: float,
        headers: Mapping[str, str] | None = None,
        hidden: Collection[str] = (),
        tries: int = MAX_TRIES,
        longest: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.url = url.rstrip("/")
        view = _parse_server_url(self.url, network)
        self._headers = {"accept": "application/json", "user-agent": f"handrail/{__version__}", **(headers or {})}
        self._hidden = tuple(text.encode() for text in hidden if text)
        self._tries = tries
        self._web = WebClient(
            allow_private=(*network.allow_private, view.host),
            limits=RequestLimits(hops=0, size=longest, seconds=seconds, silence=seconds),
            resolver=_choose_resolver(view),
            proxy=network.proxy,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._web.__aexit__()

    async def ask(
        self, path: str, body: Mapping[str, Any] | None = None, *, tries: int | None = None
    ) -> Mapping[str, Any]:
        """Send a request to the server and return the object it answers.

        `body` is sent as JSON with POST, no body with GET. Raises `ServerRefused` for a status other than 200.
        """
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        return await retry_transient(lambda: self._once(path, content), tries=tries or self._tries)

    async def _once(self, path: str, content: bytes | None) -> Mapping[str, Any]:
        headers = {**self._headers, **({} if content is None else {"content-type": "application/json"})}
        method = "GET" if content is None else "POST"
        try:
            async with self._web.request(
                f"{self.url}{path}", method=method, headers=headers, content=content
            ) as answer:
                data = self._hide(await answer.read())
                if answer.status != HTTPStatus.OK:
                    raise self._refusal(answer.status, answer.headers, data)
        except ConnectionBroken as exc:
            error = ServerNotReached(
                self.shown(f"no connection to {self.url} that lasts: {exc}"), hint="see whether the server is running"
            )
            raise TransientError(error) from exc
        except BackendUnavailable:
            raise
        except HandrailError as exc:
            raise BackendUnavailable(self.shown(str(exc)), hint=exc.hint) from exc
        return self._object(data)

    def shown(self, text: str) -> str:
        """Return the text in displayable form: without keys, and without control or hidden characters."""
        return clean_text(self._hide(text.encode()).decode()).text

    def _hide(self, data: bytes) -> bytes:
        """Redact the keys sent to a server from its response."""
        for secret in self._hidden:
            data = data.replace(secret, REDACTED_TEXT.encode())
        return data

    def _refusal(self, status: int, headers: Mapping[str, str], data: bytes) -> Exception:
        said = self.shown(_extract_reason(data))[:MAX_MESSAGE_CHARS]
        told = f"{self.url} answered {format_status(status)}{f': {said}' if said else ''}"
        error = ServerRefused(told, http_status=status, hint=_status_hint(status))
        if status not in TRANSIENT_STATUSES:
            return error
        return TransientError(error, parse_retry_after(headers))

    def _object(self, data: bytes) -> Mapping[str, Any]:
        _check_value_count(self.url, data)
        try:
            answered = json.loads(data)
        except (ValueError, RecursionError) as exc:
            raise BackendUnavailable(f"{self.url} answered something that is no JSON") from exc
        if not is_object(answered):
            raise BackendUnavailable(f"{self.url} answered {type(answered).__name__} where an object was due")
        return answered


def create_transport(url: str, *, network: NetworkAccess) -> httpx.AsyncBaseTransport:
    """Create a transport to a server for a vendor's client, which must not follow redirects.

    It connects only to where the configuration says the server is. Responses are read completely, with the size limit
    of `BackendServer`.
    """
    view = _parse_server_url(url, network)
    checked = CheckedTransport(
        allow_private=(*network.allow_private, view.host), resolver=_choose_resolver(view), proxy=network.proxy
    )
    return _BoundedTransport(checked, url)


class _BoundedTransport(httpx.AsyncBaseTransport):
    """Transport that limits the size of responses, for a client that reads them without a limit."""

    def __init__(self, inner: httpx.AsyncBaseTransport, url: str) -> None:
        self._inner = inner
        self._url = url

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # What is packed says nothing of how long it is.
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        try:
            if (packed := response.headers.get("content-encoding", "identity")) != "identity":
                raise BackendUnavailable(
                    f"{self._url} packs its answer as {packed[:MAX_MESSAGE_CHARS]!r}, which nobody asked for"
                )
            data = await self._read(response.aiter_raw())
        finally:
            await response.aclose()
        return httpx.Response(response.status_code, headers=response.headers, content=data)

    async def _read(self, chunks: AsyncIterator[bytes]) -> bytes:
        data = bytearray()
        async for chunk in chunks:
            data += chunk
            if len(data) > MAX_ANSWER_BYTES:
                raise BackendUnavailable(f"{self._url} sends more than {MAX_ANSWER_BYTES:,} bytes")
        _check_value_count(self._url, data)
        return bytes(data)

    async def aclose(self) -> None:
        await self._inner.aclose()


def clean_server_text(text: str, hidden: Collection[str] = ()) -> str:
    """Return a server's message in displayable form: without keys, control or hidden characters, and truncated."""
    for secret in filter(None, hidden):
        text = text.replace(secret, REDACTED_TEXT)
    return clean_text(" ".join(text[: 4 * MAX_MESSAGE_CHARS].split())).text[:MAX_MESSAGE_CHARS]


def _check_value_count(url: str, data: bytes | bytearray) -> None:
    if sum(data.count(mark) for mark in VALUE_MARKS) > MAX_VALUES:
        raise BackendUnavailable(f"{url} sends more than {MAX_VALUES:,} values in one answer")


def _parse_server_url(url: str, network: NetworkAccess) -> urls.UrlView:
    view = urls.evaluate_url(url, allow_private=network.allow_private)
    if not view.host:
        raise BackendUnavailable(f"{url!r} is no address of a server: {view.reasons[0].text}")
    if view.scheme == "http":
        _check_plain_http(view.host, (view.host,))
    return view


def _choose_resolver(view: urls.UrlView) -> HostResolver:
    return _resolve_for_plain_http if view.scheme == "http" else resolve_with_system


def _extract_reason(data: bytes) -> str:
    """Return the message of a failure response, in the formats that servers commonly use."""
    try:
        said: object = json.loads(data)
    except (ValueError, RecursionError):
        return " ".join(data[: 4 * MAX_MESSAGE_CHARS].decode(errors="replace").split())
    for key in ("error", "message", "detail"):
        if is_object(said):
            said = said.get(key, cast("object", said))
    return " ".join(str(said).split())


def _status_hint(status: int) -> str | None:
    match status:
        case 401 | 403:
            return "see whether the key is valid, and whether it is for this server"
        case 402:
            return "the account has no credit left"
        case 404:
            return "see whether the address and the model's name are right"
        case 413:
            return "the picture is too large for the server"
        case 429:
            return "the server takes no more requests for now"
        case _:
            return None


async def _resolve_for_plain_http(host: str, port: int) -> Sequence[str]:
    found = await resolve_with_system(host, port)
    _check_plain_http(host, found)
    return found


def _check_plain_http(host: str, found: Sequence[str]) -> None:
    """Refuse addresses that are public; names are nothing yet."""
    for text in found:
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            continue
        if addresses.find_non_public_reason(address) is None:
            raise BackendUnavailable(
                f"{host} is a public address, and a picture of the screen does not go there in the clear",
                hint="give an address that begins with https://",
            )
