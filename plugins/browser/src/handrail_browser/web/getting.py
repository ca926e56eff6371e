"""One page from a server, or from what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal, NoReturn

import anyio.to_thread

from handrail import Downstream, __version__
from handrail.net import passing, urls
from handrail.records.redaction import redact_text
from handrail_browser.web import cache

if TYPE_CHECKING:
    from handrail.net.web import Answered, Web
    from handrail_browser.config import BrowserConfig
    from handrail_browser.web.cache import Cache, Kept
    from handrail_browser.web.pace import Pace
    from handrail_browser.web.robots import Robots

HEADERS = {
    "accept": "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/json;q=0.9,application/xml;q=0.8,*/*;q=0.5",
    "accept-encoding": "gzip, deflate",
    "user-agent": f"handrail/{__version__}",
}


class Unanswered(Downstream):
    """The server answered with something else than the page."""


class Busy(Unanswered):
    """The server may give the page another time."""

    retryable = True


@dataclass(frozen=True, slots=True)
class Got:
    """What is at an address. `url`: where redirects led. `by`: how it came."""

    url: str
    content_type: str
    data: bytes
    by: Literal["network", "cache", "revalidated"] = "network"


@dataclass(frozen=True, slots=True)
class Getting:
    """What pages are fetched with in one call."""

    web: Web
    cache: Cache
    pace: Pace
    robots: Robots
    config: BrowserConfig
    allow_private: tuple[str, ...]

    async def get(self, url: str) -> Got:
        """The page; `ToolError` for whatever stands against it."""
        kept = await anyio.to_thread.run_sync(self.cache.get, url) if self.config.cache_bytes else None
        if kept is not None and kept.fresh:
            return Got(url, kept.content_type, kept.data, "cache")
        self.pace.take(urls.view(url, allow_private=self.allow_private).place, self.config.fetch_per_minute)
        if self.config.respect_robots:
            await self.robots.check(self.web, url)
        got = await self._ask(url, kept)
        # A redirect stands between: whoever answered knows nothing of what is kept.
        return got if got is not None else await self._plainly(url)

    async def _ask(self, url: str, kept: Kept | None) -> Got | None:
        if kept is None:
            return await self._plainly(url)
        async with self.web.request(url, headers={**HEADERS, **kept.conditions}) as answer:
            if answer.status != HTTPStatus.NOT_MODIFIED:
                return await self._taken(url, answer)
            if len(answer.hops) > 1:
                return None
            again = cache.keepable(url, {"etag": kept.etag, "last-modified": kept.changed, **answer.headers}, kept.data)
            if again is not None:
                again = replace(again, content_type=kept.content_type)
                await anyio.to_thread.run_sync(partial(self.cache.put, url, again))
            return Got(url, kept.content_type, kept.data, "revalidated")

    async def _plainly(self, url: str) -> Got:
        async with self.web.request(url, headers=HEADERS) as answer:
            return await self._taken(url, answer)

    async def _taken(self, url: str, answer: Answered) -> Got:
        if answer.status != HTTPStatus.OK:
            _refuse(answer)
        data = await answer.read()
        if len(answer.hops) == 1 and self.config.cache_bytes:
            kept = cache.keepable(url, answer.headers, data)
            if kept is not None:
                await anyio.to_thread.run_sync(partial(self.cache.put, url, kept))
        return Got(answer.url, answer.headers.get("content-type", "")[:500], data)


def _refuse(answer: Answered) -> NoReturn:
    message = f"{redact_text(answer.url)!r} answered {passing.named(answer.status)}"
    details: dict[str, object] = {"http_status": answer.status, "url": redact_text(answer.url)}
    if answer.status in passing.PASSING:
        raise Busy(message, hint=passing.try_again(answer.headers), details=details)
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise Unanswered(message, hint="the page is not for everybody", details=details)
    raise Unanswered(message, details=details)
