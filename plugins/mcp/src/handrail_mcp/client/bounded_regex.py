"""Patterns that servers wrote, matched in bounded time."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

# Seconds for one pattern that looks around itself, on one text.
TIMEOUT_S = 0.1
MAX_PATTERN = 1_000
MAX_MEMORY = 8 * 2**20
# Letters of a pattern that looks around itself, with what it counts written out: `regex` does that, in time that no limit ends.
MAX_EXPANDED = 200_000
# An escape, a class of letters, a bracket of a group, a count, or any other letter.
REGEX_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]|[()]|\{(?P<least>\d*)(?:,(?P<most>\d*))?\}|.", re.DOTALL)


class UndecidableMatch(ValueError):
    """Match that cannot be decided within bounds."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that checks if a text contains a match of the pattern.

    Raises `UndecidableMatch` for an invalid pattern; the function raises it for a text that takes too long to match.
    """
    import re2  # pyright: ignore[reportMissingTypeStubs]

    if len(pattern) > MAX_PATTERN:
        raise UndecidableMatch(f"a pattern has more than {MAX_PATTERN:,} letters")
    options: Any = cast("Any", re2).Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        linear: Any = cast("Any", re2).compile(pattern, options)
    except cast("Any", re2).error:
        return _compile_with_lookaround(pattern)
    return lambda text: linear.search(text) is not None


def _compile_with_lookaround(pattern: str) -> Callable[[str], bool]:
    """Compile a pattern that has no linear-time matcher, with a limit on its expanded size and on the time per text."""
    import regex

    if _estimate_expanded_size(pattern) > MAX_EXPANDED:
        raise UndecidableMatch(f"the pattern {pattern[:100]!r} repeats too much")
    try:
        compiled: Any = cast("Any", regex).compile(pattern)
    except (cast("Any", regex).error, RecursionError) as exc:
        raise UndecidableMatch(f"the pattern {pattern[:100]!r} cannot be read") from exc

    def matches(text: str) -> bool:
        try:
            return compiled.search(text, timeout=TIMEOUT_S) is not None
        except TimeoutError as exc:
            raise UndecidableMatch(f"the pattern {pattern[:100]!r} takes too long") from exc

    return matches


def _estimate_expanded_size(pattern: str) -> int:
    """Return about how many letters the pattern has when every count in it is written out."""
    # The size of each open group, and of the last part of it, which a count repeats.
    open_groups: list[int] = []
    size = last = 0
    for token in REGEX_TOKEN.finditer(pattern):
        if token[0] == "(":
            open_groups.append(size + last)
            size = last = 0
        elif token[0] == ")" and open_groups:
            size, last = open_groups.pop(), size + last + 1
        elif token["least"] is not None:
            # More digits than these are too much in any case.
            last *= max(int(count[:6]) for count in (token["least"] or "1", token["most"] or "1")) or 1
        else:
            size, last = size + last, 1
    return sum(open_groups) + size + last
