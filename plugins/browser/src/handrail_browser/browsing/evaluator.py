"""The judge of what a browser is asked to do beyond what the tool's effects say: it only tightens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail import Decision, EvaluationContext, Evaluator, Invocation, Opinion, Reason
from handrail_browser.browsing.action_params import BrowserParams
from handrail_browser.domains import is_loopback_endpoint

if TYPE_CHECKING:
    from handrail import Tool


class BrowserEvaluator(Evaluator):
    """Evaluator that requires approval to upload files and to use the user's own browser.

    A browser that is not on this machine is denied.
    """

    name = "browser"

    def applies(self, tool: Tool) -> bool:
        return tool.params is BrowserParams

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        params = invocation.params
        assert isinstance(params, BrowserParams)
        if params.action == "connect_cdp":
            if not is_loopback_endpoint(params.url or ""):
                return _build_opinion("foreign_browser", f"{params.url!r} is no browser on this machine", Decision.DENY)
            return _build_opinion(
                "own_browser", "it uses a browser that is yours, with all that you are logged in to", Decision.CONFIRM
            )
        if params.reads:
            return _build_opinion("upload", "it gives files to a web page", Decision.CONFIRM)
        return None


def _build_opinion(code: str, text: str, decision: Decision) -> Opinion:
    return Opinion(f"browser:{code}", suggestion=decision, floor=decision, reasons=(Reason(code, text),))
