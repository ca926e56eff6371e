"""One page from a server, or from what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal, NoReturn

import anyio.to_thread

from handrail import Downstream, __version__
from handrail.net import retry, urls
from handrail.redaction import redact_text
from handrail_browser.web import cache

if TYPE_CHECKING:
    from handrail.net.web_client import WebClient, WebResponse
    from handrail_browser.config import BrowserConfig
    from handrail_browser.web.cache import CachedPage, PageCache
    from handrail_browser.web.rate_limit import HostRateLimiter
    from handrail_browser.web.robots import RobotsPolicy

HEADERS = {
    "accept": "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/json;q=0.9,application/xml;q=0.8,*/*;q=0.5",
    "accept-encoding": "gzip, deflate",
    "user-agent": f"handrail/{__version__}",
}


class PageUnavailable(Downstream):
    """The server answered with something else than the page."""


class ServerBusy(PageUnavailable):
    """The server may give the page another time."""

    retryable = True


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """Content at an address. `url` is the address after redirects, and `by` says how the content was obtained."""

    url: str
    content_type: str
    data: bytes
    by: Literal["network", "cache", "revalidated"] = "network"


@dataclass(frozen=True, slots=True)
class PageFetcher:
    """Means of fetching pages in one call."""

    web: WebClient
    cache: PageCache
    pace: HostRateLimiter
    robots: RobotsPolicy
    config: BrowserConfig
    allow_private: tuple[str, ...]

    async def get(self, url: str) -> FetchedPage:
        """Return the page. Raises `ToolError` if it cannot be fetched."""
        kept = await anyio.to_thread.run_sync(self.cache.get, url) if self.config.cache_bytes else None
        if kept is not None and kept.fresh:
            return FetchedPage(url, kept.content_type, kept.data, "cache")
        self.pace.take(urls.evaluate_url(url, allow_private=self.allow_private).place, self.config.fetch_per_minute)
        if self.config.respect_robots:
            await self.robots.check(self.web, url)
        got = await self._ask(url, kept)
        # A redirect stands between: whoever answered knows nothing of what is kept.
        return got if got is not None else await self._plainly(url)

    async def _ask(self, url: str, kept: CachedPage | None) -> FetchedPage | None:
        if kept is None:
            return await self._plainly(url)
        async with self.web.request(url, headers={**HEADERS, **kept.conditions}) as answer:
            if answer.status != HTTPStatus.NOT_MODIFIED:
                return await self._taken(url, answer)
            if len(answer.hops) > 1:
                return None
            again = cache.create_cached_page(
                url, {"etag": kept.etag, "last-modified": kept.changed, **answer.headers}, kept.data
            )
            if again is not None:
                again = replace(again, content_type=kept.content_type)
                await anyio.to_thread.run_sync(partial(self.cache.put, url, again))
            return FetchedPage(url, kept.content_type, kept.data, "revalidated")

    async def _plainly(self, url: str) -> FetchedPage:
        async with self.web.request(url, headers=HEADERS) as answer:
            return await self._taken(url, answer)

    async def _taken(self, url: str, answer: WebResponse) -> FetchedPage:
        if answer.status != HTTPStatus.OK:
            _raise_for_status(answer)
        data = await answer.read()
        if len(answer.hops) == 1 and self.config.cache_bytes:
            kept = cache.create_cached_page(url, answer.headers, data)
            if kept is not None:
                await anyio.to_thread.run_sync(partial(self.cache.put, url, kept))
        return FetchedPage(answer.url, answer.headers.get("content-type", "")[:500], data)


def _raise_for_status(answer: WebResponse) -> NoReturn:
    message = f"{redact_text(answer.url)!r} answered {retry.format_status(answer.status)}"
    details: dict[str, object] = {"http_status": answer.status, "url": redact_text(answer.url)}
    if answer.status in retry.TRANSIENT_STATUSES:
        raise ServerBusy(message, hint=retry.format_retry_hint(answer.headers), details=details)
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise PageUnavailable(message, hint="the page is not for everybody", details=details)
    raise PageUnavailable(message, details=details)
