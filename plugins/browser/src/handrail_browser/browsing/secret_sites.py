"""Which sites a secret may be given to: those that a person has named for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from handrail import Denied
from handrail.json_types import is_mapping, is_sequence
from handrail.net.hostnames import is_same_or_subdomain

SECRET_REFERENCE = re.compile(r"(?<![A-Za-z0-9_])secret:([A-Za-z][A-Za-z0-9_-]{0,63})")


def find_secret_names(written: Mapping[str, Any]) -> frozenset[str]:
    """The secrets that arguments name, as they were written: their values are in them no more than in what was judged."""
    return frozenset(match[1] for text in _iter_strings(written) for match in SECRET_REFERENCE.finditer(text))


def check_secret_sites(names: frozenset[str], url: str, sites: Mapping[str, Sequence[str]]) -> None:
    """Raise `Denied` when one of them belongs to other sites than the one at `url`."""
    host = (urlsplit(url).hostname or "").removesuffix(".")
    belonging = {_normalize_secret_name(name): each for name, each in sites.items()}
    for name in sorted(names):
        own = belonging.get(_normalize_secret_name(name))
        if own is not None and not any(is_same_or_subdomain(host, each) for each in own):
            raise Denied(
                f"the secret {name!r} is not for {host!r}, but for {', '.join(own)}",
                hint="plugins.browser.secrets names the sites of each secret",
                details={"reason": "foreign_secret", "rule": "browser:foreign_secret"},
            )


def _normalize_secret_name(name: str) -> str:
    """Names that one variable of the environment stands for are the same."""
    return name.upper().replace("-", "_")


def _iter_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_mapping(value):
        for each in value.values():
            yield from _iter_strings(each)
    elif is_sequence(value):
        for each in value:
            yield from _iter_strings(each)
