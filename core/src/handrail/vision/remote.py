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

from handrail import __version__
from handrail.errors import BackendUnavailable, HandrailError
from handrail.net import addresses, urls
from handrail.net.connecting import Resolver, system_resolver
from handrail.net.passing import PASSING, TRIES, Passing, named, persist, wait_of
from handrail.net.web import Broken, CheckedTransport, Limits, Web
from handrail.plain import is_object
from handrail.records.redaction import REDACTED
from handrail.untrusted.envelope import clean

if TYPE_CHECKING:
    from handrail.config.settings import NetworkSettings

# Bytes of an answer: a model's fits into a tenth of it.
LONGEST_ANSWER = 8_000_000
# Values in an answer, at most: as objects they take fifty times the room, and while they are made nothing else is done.
MOST_VALUES = 500_000
BEFORE_VALUES = (b",", b"[", b"{")
# Characters of what a server says of a failure.
SAID = 200


class Refused(BackendUnavailable):
    """The server answered, and not with what was asked for: `http_status` says how."""

    def __init__(self, message: str, *, http_status: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.http_status = http_status


class NotReached(BackendUnavailable):
    """There is no connection to the server, or it ended before the answer did."""


class Remote:
    """A server that takes and gives JSON. All that goes wrong with it is `BackendUnavailable`; close it.

    `hidden` are texts that no message may show, as keys; `seconds` is for one request. `tries`: how often a request is sent, when the server is busy
    or fails, `longest` the bytes of an answer, at most.
    """

    def __init__(
        self,
        url: str,
        *,
        network: NetworkSettings,
        seconds: float,
        headers: Mapping[str, str] | None = None,
        hidden: Collection[str] = (),
        tries: int = TRIES,
        longest: int = LONGEST_ANSWER,
    ) -> None:
        self.url = url.rstrip("/")
        view = _server(self.url, network)
        self._headers = {"accept": "application/json", "user-agent": f"handrail/{__version__}", **(headers or {})}
        self._hidden = tuple(text.encode() for text in hidden if text)
        self._tries = tries
        self._web = Web(
            allow_private=(*network.allow_private, view.host),
            limits=Limits(hops=0, size=longest, seconds=seconds, silence=seconds),
            resolver=_resolver(view),
            proxy=network.proxy,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._web.__aexit__()

    async def ask(
        self, path: str, body: Mapping[str, Any] | None = None, *, tries: int | None = None
    ) -> Mapping[str, Any]:
        """The object that the server answers; `body` is sent as JSON by POST, nothing by GET. `Refused` for a status other than 200."""
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        return await persist(lambda: self._once(path, content), tries=tries or self._tries)

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
        except Broken as exc:
            error = NotReached(
                self.shown(f"no connection to {self.url} that lasts: {exc}"), hint="see whether the server is running"
            )
            raise Passing(error) from exc
        except BackendUnavailable:
            raise
        except HandrailError as exc:
            raise BackendUnavailable(self.shown(str(exc)), hint=exc.hint) from exc
        return self._object(data)

    def shown(self, text: str) -> str:
        """The text as it may be told: without keys, and without what steers or hides."""
        return clean(self._hide(text.encode()).decode()).text

    def _hide(self, data: bytes) -> bytes:
        """What a server says, without the keys that it was given."""
        for secret in self._hidden:
            data = data.replace(secret, REDACTED.encode())
        return data

    def _refusal(self, status: int, headers: Mapping[str, str], data: bytes) -> Exception:
        said = self.shown(_reason(data))[:SAID]
        told = f"{self.url} answered {named(status)}{f': {said}' if said else ''}"
        error = Refused(told, http_status=status, hint=_hint(status))
        if status not in PASSING:
            return error
        return Passing(error, wait_of(headers))

    def _object(self, data: bytes) -> Mapping[str, Any]:
        _check_values(self.url, data)
        try:
            answered = json.loads(data)
        except (ValueError, RecursionError) as exc:
            raise BackendUnavailable(f"{self.url} answered something that is no JSON") from exc
        if not is_object(answered):
            raise BackendUnavailable(f"{self.url} answered {type(answered).__name__} where an object was due")
        return answered


def transport(url: str, *, network: NetworkSettings) -> httpx.AsyncBaseTransport:
    """The way to a server for the client of a vendor, which is to follow no redirect: to where the configuration says it is, and nowhere else.

    Answers are read whole, and are as long as those of `Remote`.
    """
    view = _server(url, network)
    checked = CheckedTransport(
        allow_private=(*network.allow_private, view.host), resolver=_resolver(view), proxy=network.proxy
    )
    return _Bounded(checked, url)


class _Bounded(httpx.AsyncBaseTransport):
    """Gives answers to a client that reads whatever comes."""

    def __init__(self, inner: httpx.AsyncBaseTransport, url: str) -> None:
        self._inner = inner
        self._url = url

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # What is packed says nothing of how long it is.
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        try:
            if (packed := response.headers.get("content-encoding", "identity")) != "identity":
                raise BackendUnavailable(f"{self._url} packs its answer as {packed[:SAID]!r}, which nobody asked for")
            data = await self._read(response.aiter_raw())
        finally:
            await response.aclose()
        return httpx.Response(response.status_code, headers=response.headers, content=data)

    async def _read(self, chunks: AsyncIterator[bytes]) -> bytes:
        data = bytearray()
        async for chunk in chunks:
            data += chunk
            if len(data) > LONGEST_ANSWER:
                raise BackendUnavailable(f"{self._url} sends more than {LONGEST_ANSWER:,} bytes")
        _check_values(self._url, data)
        return bytes(data)

    async def aclose(self) -> None:
        await self._inner.aclose()


def shown(text: str, hidden: Collection[str] = ()) -> str:
    """What a server says as it may be told: without keys, without what steers or hides, and not at any length."""
    for secret in filter(None, hidden):
        text = text.replace(secret, REDACTED)
    return clean(" ".join(text[: 4 * SAID].split())).text[:SAID]


def _check_values(url: str, data: bytes | bytearray) -> None:
    if sum(data.count(mark) for mark in BEFORE_VALUES) > MOST_VALUES:
        raise BackendUnavailable(f"{url} sends more than {MOST_VALUES:,} values in one answer")


def _server(url: str, network: NetworkSettings) -> urls.View:
    view = urls.view(url, allow_private=network.allow_private)
    if not view.host:
        raise BackendUnavailable(f"{url!r} is no address of a server: {view.reasons[0].text}")
    if view.scheme == "http":
        _check_plain(view.host, (view.host,))
    return view


def _resolver(view: urls.View) -> Resolver:
    return _resolved_for_plain if view.scheme == "http" else system_resolver


def _reason(data: bytes) -> str:
    """What servers say of a failure, in the shapes that are usual."""
    try:
        said: object = json.loads(data)
    except (ValueError, RecursionError):
        return " ".join(data[: 4 * SAID].decode(errors="replace").split())
    for key in ("error", "message", "detail"):
        if is_object(said):
            said = said.get(key, cast("object", said))
    return " ".join(str(said).split())


def _hint(status: int) -> str | None:
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


async def _resolved_for_plain(host: str, port: int) -> Sequence[str]:
    found = await system_resolver(host, port)
    _check_plain(host, found)
    return found


def _check_plain(host: str, found: Sequence[str]) -> None:
    """Refuse addresses that are public; names are nothing yet."""
    for text in found:
        try:
            address = ip_address(text.partition("%")[0])
        except ValueError:
            continue
        if addresses.not_public(address) is None:
            raise BackendUnavailable(
                f"{host} is a public address, and a picture of the screen does not go there in the clear",
                hint="give an address that begins with https://",
            )
