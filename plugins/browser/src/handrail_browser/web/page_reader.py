"""Means of reading pages that a session has for its lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio.to_thread

from handrail import Downstream
from handrail.workers.parser_pool import ParserPool
from handrail_browser.web.content_types import ContentFormat
from handrail_browser.web.rate_limit import HostRateLimiter
from handrail_browser.web.robots import RobotsPolicy
from handrail_browser.web.unnamed_file import create_unnamed_file

# Seconds that reading one page may take.
READING_S = 30.0


class PageReader:
    """The parsers, how often each host was asked, and what hosts ask not to be fetched."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.pace = HostRateLimiter()
        self.robots = RobotsPolicy()
        self._parsers = ParserPool(environment, jobs="handrail_browser.jobs")

    async def read(self, data: bytes, form: ContentFormat, url: str) -> tuple[Mapping[str, Any], str]:
        """Return information about the content, and its text."""
        args = {"url": url, "form": form.name, "charset": form.charset}
        with await anyio.to_thread.run_sync(create_unnamed_file, data) as file:
            try:
                with anyio.fail_after(READING_S):
                    told, text = await self._parsers.run("convert_page", args, fd=file.fileno())
            except TimeoutError as exc:
                raise Downstream(
                    f"the page took longer than {READING_S:g} s to read", hint="it may be made to"
                ) from exc
        return told, text.decode()

    async def close(self) -> None:
        """End the parsers."""
        await self._parsers.close()
