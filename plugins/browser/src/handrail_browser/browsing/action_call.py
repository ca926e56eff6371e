"""Call of `execute_browser` in progress: the tab and element that it concerns, and the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from handrail import Downstream, ToolContext
from handrail.api.secret_refs import find_secret_names
from handrail_browser.browsing import secret_sites
from handrail_browser.browsing.action_params import BrowserParams

if TYPE_CHECKING:
    from handrail_browser.browsing.browser_service import SessionBrowser
    from handrail_browser.driver import ActionOutcome, BrowserDriver, BrowserTab, PageNode


class ActionCall:
    """One call on its way: the tool's context, the session's browsers, the driver, and what was asked."""

    def __init__(
        self, params: BrowserParams, context: ToolContext, browsers: SessionBrowser, driver: BrowserDriver
    ) -> None:
        self.params, self.context, self.browsers, self.driver = params, context, browsers, driver
        self.given: Any = params.given
        self._secrets = find_secret_names(context.invocation.args)

    async def tab(self) -> BrowserTab:
        """Return the tab that the params name, or the active one."""
        named = getattr(self.given, "tab_id", None)
        return await self.driver.tab(named)

    async def node(self, tab: BrowserTab) -> PageNode | None:
        """Return the element that the params name, as it is now; None if they name none.

        Raises `Denied` if the call would give a secret to a page that the secret is not for.
        """
        found = await self._found(tab)
        self.check_secrets(self.params.url or (found.origin if found is not None and found.origin else tab.url))
        return found

    async def _found(self, tab: BrowserTab) -> PageNode | None:
        given = self.given
        if given.ref is not None:
            element = self.context.observations.element(given.ref)
            return await self.driver.locate(element)
        if given.selector is not None or given.name is not None:
            return await self.driver.pick(tab, selector=given.selector, text=given.name)
        return None

    def check_secrets(self, url: str) -> None:
        """Raise `Denied` when the call gives a secret to a page that it is not for."""
        if self._secrets:
            secret_sites.check_secret_sites(self._secrets, url, self.context.session.settings.secrets.sites)

    async def target(self) -> tuple[BrowserTab, PageNode]:
        """Tab and element of an action that needs one."""
        tab = require_idle_tab(await self.tab())
        node = await self.node(tab)
        assert node is not None
        return tab, node


def require_idle_tab(tab: BrowserTab) -> BrowserTab:
    """Return the tab if it is not waiting for an answer. Raises `Downstream` if it is, or if its page has crashed."""
    if tab.state == "dialog":
        raise Downstream(
            f"the page in {tab.id} asks ({tab.asks.get('kind')}): {tab.asks.get('message')!r}",
            hint="answer it by the action dialog, with params.accept true or false; where it asks without end, close the tab",
            details={"dialog": dict(tab.asks)},
        )
    if tab.state == "file_chooser":
        raise Downstream(
            f"the page in {tab.id} asks for a file",
            hint="give one by the action upload with params.paths, or none by the action dialog",
            details={"file_chooser": dict(tab.asks)},
        )
    if tab.state == "crashed":
        raise Downstream(f"the page in {tab.id} has crashed", hint="navigate again, or close the tab")
    return tab


def format_outcome(done: ActionOutcome, content: str = "") -> dict[str, Any]:
    """Convert the outcome of an action to its result."""
    result: dict[str, Any] = {
        "content": content or "; ".join(done.evidence) or "Nothing was seen to change.",
        "effect": done.effect,
    }
    if done.evidence:
        result["evidence"] = list(done.evidence)
    if done.settled is not None:
        result["settled"] = done.settled
    return result | dict(done.more)
