"""Checks that a secret goes only to the sites that `[secrets.sites]` lists for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handrail import Denied
from handrail.api.secret_refs import normalize_secret_name
from handrail.net import urls
from handrail.net.hostnames import is_same_or_subdomain


def check_secret_sites(names: frozenset[str], url: str, sites: Mapping[str, Sequence[str]]) -> None:
    """Raise `Denied` if `sites` lists sites for one of the secrets, and the host of `url` is not among them."""
    host = urls.evaluate_url(url).host.removesuffix(".")
    listed = {normalize_secret_name(name): each for name, each in sites.items()}
    for name in sorted(names):
        own = listed.get(normalize_secret_name(name))
        if own is not None and not any(is_same_or_subdomain(host, each.lower()) for each in own):
            raise Denied(
                f"the secret {name!r} is not for {host!r}, but for {', '.join(own)}",
                hint="[secrets.sites] lists the sites of each secret",
                details={"reason": "foreign_secret", "rule": "browser:foreign_secret"},
            )
