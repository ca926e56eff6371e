"""Names that a shell glob could match."""

from __future__ import annotations

import re
from functools import lru_cache

from handrail.fs import path_resolution

GLOB_CHARACTER = re.compile(r"[*?\[{]")
GLOB_TOKEN = re.compile(r"\[[!^]?\]?[^\]]*\]|\\.|.", re.DOTALL)
MAX_PATTERN = 200
# What names of secrets look like where the tables hold only their ends or starts.
SECRET_SHAPES = (
    *(f"*{end}" for end in path_resolution.KEY_ENDINGS),
    "*.pem", ".env.*", ".*_history", "ssh_host_*_key", "service-account*.json", "service_account*.json", "client_secret*.json",
)  # fmt: skip


@lru_cache(maxsize=256)
def find_matching_secret(pattern: str) -> str | None:
    """Return a name or place of a secret that a pattern (a path with `*`, `?`, `[…]`) could match, or None."""
    parts = [part for part in pattern.lower().split("/") if part not in ("", ".")]
    if len(pattern) > MAX_PATTERN or not parts or "{" in pattern:
        return pattern
    for shape in (*path_resolution.SECRET_NAMES, *SECRET_SHAPES):
        if can_both_match(parts[-1], shape):
            return shape
    for place in path_resolution.SECRET_PLACES:
        for start in range(len(parts)):
            # The pattern may name the place, or something on the way below it.
            span = parts[start : start + len(place)]
            if (
                len(span) == len(place)
                and any(map(GLOB_CHARACTER.search, span))
                and all(map(can_both_match, span, place))
            ):
                return "/".join(place)
    if parts[0] == "proc" and any(can_both_match(parts[-1], name) for name in ("environ", "mem", "auxv")):
        return "environ"
    return None


def can_both_match(pattern: str, shape: str) -> bool:
    """Return True if some name matches both. Only patterns that begin with a dot match names that do."""
    if shape.startswith(".") != pattern.startswith("."):
        return (
            shape.startswith("*")
            and not pattern.startswith(".")
            and _have_common_match(_split_tokens(pattern), _split_tokens(shape))
        )
    return _have_common_match(_split_tokens(pattern), _split_tokens(shape))


def _split_tokens(pattern: str) -> tuple[str, ...]:
    """Single letters, `?` for any one and `*` for any number."""
    return tuple("?" if token[0] == "[" and len(token) > 1 else token[-1] for token in GLOB_TOKEN.findall(pattern))


def _have_common_match(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    row = [True]
    for token in other:
        row.append(row[-1] and token == "*")
    for left in one:
        below = [row[0] and left == "*"]
        for at, right in enumerate(other):
            if left == "*" or right == "*":
                below.append(row[at + 1] or below[at])
            else:
                below.append(row[at] and (left == right or "?" in (left, right)))
        row = below
    return row[-1]
