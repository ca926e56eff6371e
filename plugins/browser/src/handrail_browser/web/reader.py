"""What a session reads pages with, for as long as it lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio.to_thread

from handrail import Downstream
from handrail.parsing.process import Parsers
from handrail_browser.web.forms import Form
from handrail_browser.web.laying import laid_down
from handrail_browser.web.pace import Pace
from handrail_browser.web.robots import Robots

# Seconds that reading one page may take.
READING_S = 30.0


class Reader:
    """The parsers, how often each host was asked, and what hosts ask not to be fetched."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.pace = Pace()
        self.robots = Robots()
        self._parsers = Parsers(environment, jobs="handrail_browser.jobs")

    async def read(self, data: bytes, form: Form, url: str) -> tuple[Mapping[str, Any], str]:
        """What is to be said of the content, and its text."""
        args = {"url": url, "form": form.name, "charset": form.charset}
        with await anyio.to_thread.run_sync(laid_down, data) as file:
            try:
                with anyio.fail_after(READING_S):
                    told, text = await self._parsers.run("page", args, fd=file.fileno())
            except TimeoutError as exc:
                raise Downstream(
                    f"the page took longer than {READING_S:g} s to read", hint="it may be made to"
                ) from exc
        return told, text.decode()

    async def close(self) -> None:
        """End the parsers."""
        await self._parsers.close()
