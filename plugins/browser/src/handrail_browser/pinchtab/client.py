"""PinchTab over HTTP: requests and answers, and what its refusals mean (https://pinchtab.com/docs/endpoints)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any
from urllib.parse import quote

import anyio
import httpx

from handrail import Denied, Downstream, InvalidArguments, NotFound, StaleElement, TimedOut
from handrail.json_types import is_list, is_object
from handrail.redaction import redact_text
from handrail_browser.driver import PageInterrupted

# Bytes of one answer: a picture, or the tree of a very large page.
MAX_ANSWER_BYTES = 32_000_000
MAX_ERROR_TEXT = 300
# How long requests that are too many are made again (PinchTab 0.8 counts 120 in ten seconds), and how often.
BUSY_TIMEOUT_S, PAUSE_S = 12.0, 0.25
# What a person can do about a refusal, by its code; in braces stands what PinchTab says with it.
HINTS_BY_CODE: Mapping[str, str] = {
    "missing_token": "set plugins.browser.pinchtab.token to the secret that holds its token",
    "bad_token": "the secret that plugins.browser.pinchtab.token names does not hold its token",
    "token_required": "start PinchTab with a token",
    "tab_paused_handoff": "a person has taken over this tab; they give it back by `pinchtab tab resume`",
    "navigation_changed": "the page went on meanwhile: take a new snapshot and try again",
    "no_current_tab": "name the tab by params.tab_id",
    "browser_conflict": "the tab belongs to another browser of PinchTab: open one of your own by open_tab",
    "tab_locked": "somebody else has locked this tab: wait, or open one of your own by open_tab",
    "rate_limited": "it takes more requests in a moment",
    "too_many_redirects": "the address leads on for ever",
}
HINTS_BY_STATUS: Mapping[int, str] = {
    401: HINTS_BY_CODE["missing_token"],
    403: "PinchTab's own configuration forbids it; a person can change that there",
    404: "take a new snapshot, or list the tabs",
    409: "something else is at this tab: wait, then take a new snapshot",
    423: HINTS_BY_CODE["tab_locked"],
    429: HINTS_BY_CODE["rate_limited"],
}


class PinchTabUnavailable(Downstream):
    """PinchTab is not there, or has ended."""

    retryable = True


class UnknownEndpoint(Downstream):
    """This PinchTab knows no such path: it is another version."""


class PinchTabBusy(Downstream):
    """PinchTab does it another time."""

    retryable = True


class PinchTabRateLimited(PinchTabBusy):
    """Error: the PinchTab has had more requests than it accepts in a short time."""


class PinchTabClient:
    """Client of one PinchTab at a loopback address. `authorization` is the value of that header.

    A PinchTab limits the rate of requests; a request over the limit is repeated for up to `patience` seconds.
    """

    def __init__(self, url: str, authorization: str | None, *, patience: float = BUSY_TIMEOUT_S) -> None:
        self._patience = patience
        headers = {"accept": "application/json"} | ({"authorization": authorization} if authorization else {})
        self.url = url
        # It did not answer any more.
        self.lost = False
        # No proxy of the environment, and no way to anywhere else: redirects are not followed.
        self._http = httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, follow_redirects=False)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def get(self, path: str, query: Mapping[str, str] | None = None, *, seconds: float = 15) -> Mapping[str, Any]:
        """Return the JSON object at a path."""
        return _parse_object(path, await self._asked("GET", path, seconds, params=query))

    async def rows(self, path: str) -> Sequence[Any]:
        """Return the JSON list at a path."""
        found = _parse_json(path, await self._asked("GET", path, 15))
        if not is_list(found):
            raise _protocol_error(path)
        return found

    async def post(self, path: str, body: Mapping[str, Any] | None = None, *, seconds: float = 15) -> Mapping[str, Any]:
        """Perform an action, and return its result as a JSON object."""
        return _parse_object(path, await self._asked("POST", path, seconds, json=body or {}))

    async def data(self, path: str, query: Mapping[str, str], *, seconds: float = 30) -> bytes:
        """Return the bytes at a path."""
        return await self._asked("GET", path, seconds, params=query)

    async def _asked(self, method: str, path: str, seconds: float, **more: Any) -> bytes:
        ends = monotonic() + self._patience
        while True:
            try:
                return await self._once(method, path, seconds, **more)
            except PinchTabRateLimited:
                # Nothing was done yet.
                if monotonic() > ends:
                    raise
                await anyio.sleep(PAUSE_S)

    async def _once(self, method: str, path: str, seconds: float, **more: Any) -> bytes:
        try:
            async with self._http.stream(method, path, timeout=httpx.Timeout(seconds, connect=5), **more) as answer:
                content = bytearray()
                async for chunk in answer.aiter_bytes():
                    content += chunk
                    if len(content) > MAX_ANSWER_BYTES:
                        raise Downstream(
                            f"PinchTab answered {path!r} with more than {MAX_ANSWER_BYTES:,} bytes",
                            hint="name a part of the page by selector",
                        )
        except httpx.TimeoutException as exc:
            raise TimedOut(f"PinchTab did not answer {path!r} within {seconds:g} s") from exc
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            self.lost = True
            raise PinchTabUnavailable(f"no PinchTab answers at {self.url!r}: {type(exc).__name__}") from exc
        if not answer.is_success:
            raise build_error(path, answer, bytes(content))
        return bytes(content)


def build_tab_path(tab: str, what: str) -> str:
    """Return the path of an operation of one tab."""
    return f"/tabs/{quote(tab, safe='')}/{what}"


def build_error(path: str, answer: httpx.Response, content: bytes) -> Exception:
    """Convert an error response of PinchTab to the corresponding error, with a remedy."""
    told = _parse_error_body(content)
    code, status = str(told.get("code") or ""), answer.status_code
    said = redact_text(str(told.get("error") or told.get("detail") or answer.reason_phrase))[:MAX_ERROR_TEXT]
    details = {"http_status": status, "code": code} if code else {"http_status": status}
    if status == 404 and not told:
        return UnknownEndpoint(f"this PinchTab has no {path!r}", hint="another version may", details=details)
    if code == "dialog_blocking":
        return PageInterrupted(said)
    message, hint = f"PinchTab refuses: {said} ({status})", _find_hint(status, code, told)
    if status == 403 and ("idpi" in code or "IDPI" in said):
        return Denied(f"PinchTab's own rule: {said}", hint=hint, details=details | {"reason": "pinchtab"})
    if status == 400:
        return InvalidArguments(message, details=details)
    if status == 404:
        kind = StaleElement if "ref " in said or "node" in said.lower() else NotFound
        return kind(message, hint=hint, details=details)
    if status == 429:
        return PinchTabRateLimited(message, hint=hint, details=details)
    if status in (423, 502, 503):
        return PinchTabBusy(message, hint=hint, details=details)
    return Downstream(message, hint=hint, details=details)


def _find_hint(status: int, code: str, told: Mapping[str, Any]) -> str | None:
    more = told.get("details")
    setting = more.get("setting") if is_object(more) else None
    if setting:
        return f"a person can allow it by `pinchtab config set {str(setting)[:60]} true`, and a restart of PinchTab"
    if status == 403 and "domain" in code + str(told.get("error", "")):
        return "a person can allow the site in PinchTab's security.allowedDomains"
    return HINTS_BY_CODE.get(code, HINTS_BY_STATUS.get(status))


def _parse_error_body(content: bytes) -> Mapping[str, Any]:
    """Return the JSON object of an error, empty if there is none."""
    try:
        found = json.loads(content[:100_000])
    except (ValueError, RecursionError):
        return {}
    return found if is_object(found) else {}


def _parse_json(path: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise _protocol_error(path) from exc


def _parse_object(path: str, content: bytes) -> Mapping[str, Any]:
    found = _parse_json(path, content)
    if not is_object(found):
        raise _protocol_error(path)
    return found


def _protocol_error(path: str) -> Downstream:
    return Downstream(f"PinchTab answered {path!r} with something that is not its protocol")
