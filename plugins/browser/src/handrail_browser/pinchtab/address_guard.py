"""What holds a PinchTab's browser to the rules: our proxy where it is our own, else a look before each step and after it."""

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
    """Where a browser may go. Without `proxy` only the addresses of tabs are judged, not what their pages load."""

    domains: DomainPolicy
    allow_private: Collection[str]
    resolver: HostResolver
    proxy: JudgingProxy | None = None

    async def check(self, url: str) -> None:
        """`Denied` for an address that no tab may show."""
        if (reason := await self._reason(url)) is not None:
            raise _build_denial(reason)

    async def leads_astray(self, url: str) -> Reason | None:
        """Why a tab may not show the address that it has come to by itself. A proxy would not have let it come."""
        if self.proxy is not None or url.startswith((ERROR_PAGE_PREFIX, "about:", "chrome:")) or not url:
            return None
        return await self._reason(url)

    async def _reason(self, url: str) -> Reason | None:
        reason = await find_refusal_reason(
            url, navigation=True, allow_private=tuple(self.allow_private), resolver=self.resolver
        )
        return reason or self.domains.refuses(urlsplit(url).hostname or "")

    def taken(self) -> Sequence[RefusedConnection]:
        """Connections that were not made since the last question."""
        return [] if self.proxy is None else self.proxy.taken()

    def trouble(self, url: str) -> str | None:
        """Why a host could not be reached, where that is known."""
        return self.proxy.errors.pop(urlsplit(url).hostname or "", None) if self.proxy is not None else None


def _build_denial(reason: Reason) -> Denied:
    return Denied(reason.text, details={"reason": reason.code, "rule": f"browser:{reason.code}"})


def find_refusal(url: str, refusals: Sequence[RefusedConnection]) -> Denied | None:
    """The refusal that a tab has run into: of the place that it shows, or, where it shows an error, of any."""
    place = urlsplit(url).netloc.rpartition("@")[2]
    found = [each for each in refusals if each.place == place or url.startswith(ERROR_PAGE_PREFIX)]
    return _build_denial(found[-1].reason) if found else None
