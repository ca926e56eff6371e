"""Sites that the user allows the browser to visit, and loopback addresses."""

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
        """Return the reason why a host may not be visited, or None if it may."""
        name = host.lower().removesuffix(".")
        if any(is_same_or_subdomain(name, each) for each in self.denied):
            return Reason("denied_domain", f"{host!r} is among plugins.browser.denied_domains")
        if self.allowed and not any(is_same_or_subdomain(name, each) for each in self.allowed):
            return Reason("denied_domain", f"{host!r} is not among plugins.browser.allowed_domains")
        return None


def is_loopback_endpoint(url: str) -> bool:
    """Return True if the host of an endpoint is localhost or a literal loopback address."""
    try:
        host = urlsplit(url).hostname or ""
        return bool(ENDPOINT.match(url)) and "@" not in url and (host == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False
