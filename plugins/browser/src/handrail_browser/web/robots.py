"""Rules that hosts set for programs, by RFC 9309."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from handrail import Denied, ToolError

if TYPE_CHECKING:
    from handrail.net.web_client import WebClient

USER_AGENT = "handrail"
# So many bytes of a file count, and so many seconds it does.
MAX_ROBOTS_BYTES = 512_000
CACHE_S = 3_600.0
MAX_HOSTS = 500
# What holds where a host cannot say.
DISALLOW_ALL = ("User-agent: *", "Disallow: /")


class RobotsPolicy:
    """The rules of the hosts that a session has asked."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, RobotFileParser]] = {}

    async def check(self, web: WebClient, url: str) -> None:
        """`Denied` when the host does not want this address fetched by programs."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        at, rules = self._known.get(origin, (0.0, None))
        if rules is None or time.monotonic() - at > CACHE_S:
            rules = await _fetch_rules(web, origin)
            if len(self._known) >= MAX_HOSTS:
                self._known.clear()
            self._known[origin] = (time.monotonic(), rules)
        if not rules.can_fetch(USER_AGENT, url):
            raise Denied(
                f"the robots.txt of {parts.hostname!r} asks programs not to fetch this address",
                hint="plugins.browser.respect_robots is set; a person may look at the page in a browser",
                details={"reason": "robots"},
            )


async def _fetch_rules(web: WebClient, origin: str) -> RobotFileParser:
    rules = RobotFileParser()
    rules.modified()
    try:
        async with web.request(f"{origin}/robots.txt", headers={"user-agent": USER_AGENT}) as answer:
            if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                rules.parse(DISALLOW_ALL)
            elif answer.status == HTTPStatus.OK:
                rules.parse((await answer.read())[:MAX_ROBOTS_BYTES].decode("utf-8", "replace").splitlines())
    except Denied:
        raise
    except ToolError:
        # A host that cannot be asked has not agreed.
        rules.parse(DISALLOW_ALL)
    return rules
