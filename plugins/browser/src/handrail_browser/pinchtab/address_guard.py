"""Address rules for the browser of a PinchTab.

Our proxy enforces them if the PinchTab is our own; otherwise the tab's address is checked before and after each step.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from handrail import Denied
from handrail.api.verdict import Reason
from handrail.net.resolver import HostResolver, find_refusal_reason
from handrail_browser.domains import DomainPolicy

if TYPE_CHECKING:
    from handrail_browser.chromium.proxy import JudgingProxy, RefusedConnection

ERROR_PAGE_PREFIX = "chrome-error:"


@dataclass(slots=True)
class AddressGuard:
    """Guard of the addresses that a browser may visit.

    Without `proxy`, only the addresses of tabs are checked, not what their pages load.
    """

    domains: DomainPolicy
    allow_private: Collection[str]
    resolver: HostResolver
    proxy: JudgingProxy | None = None

    async def check(self, url: str) -> None:
        """`Denied` for an address that no tab may show."""
        if (reason := await self._reason(url)) is not None:
            raise _build_denial(reason)

    async def leads_astray(self, url: str) -> Reason | None:
        """Return the reason why a tab may not show the address that it has reached without a call, or None.

        With a proxy there is nothing to check: it would have refused the connection.
        """
        if self.proxy is not None or url.startswith((ERROR_PAGE_PREFIX, "about:", "chrome:")) or not url:
            return None
        return await self._reason(url)

    async def _reason(self, url: str) -> Reason | None:
        reason = await find_refusal_reason(
            url, navigation=True, allow_private=tuple(self.allow_private), resolver=self.resolver
        )
        return reason or self.domains.refuses(urlsplit(url).hostname or "")

    def taken(self) -> Sequence[RefusedConnection]:
        """Return the connections that were refused since the last call."""
        return [] if self.proxy is None else self.proxy.taken()

    def trouble(self, url: str) -> str | None:
        """Return the reason why a host could not be reached, if known."""
        return self.proxy.errors.pop(urlsplit(url).hostname or "", None) if self.proxy is not None else None


def _build_denial(reason: Reason) -> Denied:
    return Denied(reason.text, details={"reason": reason.code, "rule": f"browser:{reason.code}"})


def find_refusal(url: str, refusals: Sequence[RefusedConnection]) -> Denied | None:
    """Return the refusal that a tab ran into, or None.

    It is one of the host that the tab shows or, if the tab shows an error page, of any host.
    """
    place = urlsplit(url).netloc.rpartition("@")[2]
    found = [each for each in refusals if each.place == place or url.startswith(ERROR_PAGE_PREFIX)]
    return _build_denial(found[-1].reason) if found else None
