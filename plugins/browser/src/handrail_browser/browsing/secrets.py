"""Which sites a secret may be given to: those that a person has named for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from handrail import Denied
from handrail.net.hostnames import under
from handrail.plain import is_mapping, is_sequence

NAMED = re.compile(r"(?<![A-Za-z0-9_])secret:([A-Za-z][A-Za-z0-9_-]{0,63})")


def named(written: Mapping[str, Any]) -> frozenset[str]:
    """The secrets that arguments name, as they were written: their values are in them no more than in what was judged."""
    return frozenset(match[1] for text in _texts(written) for match in NAMED.finditer(text))


def check(names: frozenset[str], url: str, sites: Mapping[str, Sequence[str]]) -> None:
    """Raise `Denied` when one of them belongs to other sites than the one at `url`."""
    host = (urlsplit(url).hostname or "").removesuffix(".")
    belonging = {_same(name): each for name, each in sites.items()}
    for name in sorted(names):
        own = belonging.get(_same(name))
        if own is not None and not any(under(host, each) for each in own):
            raise Denied(
                f"the secret {name!r} is not for {host!r}, but for {', '.join(own)}",
                hint="plugins.browser.secrets names the sites of each secret",
                details={"reason": "foreign_secret", "rule": "browser:foreign_secret"},
            )


def _same(name: str) -> str:
    """Names that one variable of the environment stands for are the same."""
    return name.upper().replace("-", "_")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_mapping(value):
        for each in value.values():
            yield from _texts(each)
    elif is_sequence(value):
        for each in value:
            yield from _texts(each)
