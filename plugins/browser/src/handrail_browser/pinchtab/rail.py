"""What holds a PinchTab's browser to the rules: our proxy where it is our own, else a look before each step and after it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from handrail import Denied
from handrail.judging.verdicts import Reason
from handrail.net.connecting import Resolver, refuses
from handrail_browser.domains import Domains

if TYPE_CHECKING:
    from handrail_browser.chromium.proxy import Proxy, Refusal

BROKEN = "chrome-error:"


@dataclass(slots=True)
class Rail:
    """Where a browser may go. Without `proxy` only the addresses of tabs are judged, not what their pages load."""

    domains: Domains
    allow_private: Collection[str]
    resolver: Resolver
    proxy: Proxy | None = None

    async def check(self, url: str) -> None:
        """`Denied` for an address that no tab may show."""
        if (reason := await self._reason(url)) is not None:
            raise _denied(reason)

    async def leads_astray(self, url: str) -> Reason | None:
        """Why a tab may not show the address that it has come to by itself. A proxy would not have let it come."""
        if self.proxy is not None or url.startswith((BROKEN, "about:", "chrome:")) or not url:
            return None
        return await self._reason(url)

    async def _reason(self, url: str) -> Reason | None:
        reason = await refuses(url, navigation=True, allow_private=tuple(self.allow_private), resolver=self.resolver)
        return reason or self.domains.refuses(urlsplit(url).hostname or "")

    def taken(self) -> Sequence[Refusal]:
        """Connections that were not made since the last question."""
        return [] if self.proxy is None else self.proxy.taken()

    def trouble(self, url: str) -> str | None:
        """Why a host could not be reached, where that is known."""
        return self.proxy.errors.pop(urlsplit(url).hostname or "", None) if self.proxy is not None else None


def _denied(reason: Reason) -> Denied:
    return Denied(reason.text, details={"reason": reason.code, "rule": f"browser:{reason.code}"})


def refused_at(url: str, refusals: Sequence[Refusal]) -> Denied | None:
    """The refusal that a tab has run into: of the place that it shows, or, where it shows an error, of any."""
    place = urlsplit(url).netloc.rpartition("@")[2]
    found = [each for each in refusals if each.place == place or url.startswith(BROKEN)]
    return _denied(found[-1].reason) if found else None
