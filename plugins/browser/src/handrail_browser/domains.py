"""Which sites a person lets the browser go to, and which addresses are of this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from handrail.api.verdict import Reason
from handrail.net.hostnames import is_same_or_subdomain

ENDPOINT = re.compile(r"(?:https?|wss?)://")


@dataclass(frozen=True, slots=True)
class DomainPolicy:
    """Names of sites, each with all below it. Nothing allowed: all but what is denied."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()

    def refuses(self, host: str) -> Reason | None:
        """Why a host is not gone to; None when it may be."""
        name = host.lower().removesuffix(".")
        if any(is_same_or_subdomain(name, each) for each in self.denied):
            return Reason("denied_domain", f"{host!r} is among plugins.browser.denied_domains")
        if self.allowed and not any(is_same_or_subdomain(name, each) for each in self.allowed):
            return Reason("denied_domain", f"{host!r} is not among plugins.browser.allowed_domains")
        return None


def is_loopback_endpoint(url: str) -> bool:
    """Whether an endpoint is at a loopback address, written as one."""
    try:
        host = urlsplit(url).hostname or ""
        return bool(ENDPOINT.match(url)) and "@" not in url and (host == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False
