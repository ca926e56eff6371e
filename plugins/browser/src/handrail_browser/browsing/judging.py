"""The judge of what a browser is asked to do beyond what the tool's effects say: it only tightens."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from handrail import Decision, Evaluator, Invocation, Judging, Opinion, Reason
from handrail_browser.browsing.params import BrowserParams

if TYPE_CHECKING:
    from handrail import Tool

ENDPOINT = re.compile(r"(?:https?|wss?)://")


class BrowserEvaluator(Evaluator):
    """Files are given away, and a person's own browser is used, only with a yes."""

    name = "browser"

    def applies(self, tool: Tool) -> bool:
        return tool.params is BrowserParams

    async def opinion(self, invocation: Invocation, judging: Judging) -> Opinion | None:
        params = invocation.params
        assert isinstance(params, BrowserParams)
        if params.action == "connect_cdp":
            if not on_this_machine(params.url or ""):
                return _held("foreign_browser", f"{params.url!r} is no browser on this machine", Decision.DENY)
            return _held(
                "own_browser", "it uses a browser that is yours, with all that you are logged in to", Decision.CONFIRM
            )
        if params.reads:
            return _held("upload", "it gives files to a web page", Decision.CONFIRM)
        return None


def on_this_machine(url: str) -> bool:
    """Whether an endpoint is at a loopback address, written as one."""
    try:
        host = urlsplit(url).hostname or ""
        return bool(ENDPOINT.match(url)) and "@" not in url and (host == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False


def _held(code: str, text: str, decision: Decision) -> Opinion:
    return Opinion(f"browser:{code}", suggestion=decision, floor=decision, reasons=(Reason(code, text),))
