"""Which sites a person lets the browser go to."""

from __future__ import annotations

from dataclasses import dataclass

from handrail.judging.verdicts import Reason
from handrail.net.hostnames import under


@dataclass(frozen=True, slots=True)
class Domains:
    """Names of sites, each with all below it. Nothing allowed: all but what is denied."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()

    def refuses(self, host: str) -> Reason | None:
        """Why a host is not gone to; None when it may be."""
        name = host.lower().removesuffix(".")
        if any(under(name, each) for each in self.denied):
            return Reason("denied_domain", f"{host!r} is among plugins.browser.denied_domains")
        if self.allowed and not any(under(name, each) for each in self.allowed):
            return Reason("denied_domain", f"{host!r} is not among plugins.browser.allowed_domains")
        return None
