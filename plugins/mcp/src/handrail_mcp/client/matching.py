"""Patterns that servers wrote, matched in bounded time."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

# Seconds for one pattern that looks around itself, on one text.
SECONDS = 0.1
LONGEST = 1_000
MEMORY = 8 * 2**20


class Untellable(ValueError):
    """Whether a value fits cannot be told within bounds."""


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text holds what the pattern means. Raises `Untellable` for what is no pattern, and later for a text that takes too long."""
    import re2  # pyright: ignore[reportMissingTypeStubs]

    if len(pattern) > LONGEST:
        raise Untellable(f"a pattern has more than {LONGEST:,} letters")
    options: Any = cast("Any", re2).Options()
    options.log_errors = False
    options.max_mem = MEMORY
    try:
        linear: Any = cast("Any", re2).compile(pattern, options)
    except cast("Any", re2).error:
        return _looking_around(pattern)
    return lambda text: linear.search(text) is not None


def _looking_around(pattern: str) -> Callable[[str], bool]:
    """For what linear time cannot do: a limit instead."""
    import regex

    try:
        compiled: Any = cast("Any", regex).compile(pattern)
    except cast("Any", regex).error as exc:
        raise Untellable(f"the pattern {pattern[:100]!r} cannot be read") from exc

    def matches(text: str) -> bool:
        try:
            return compiled.search(text, timeout=SECONDS) is not None
        except TimeoutError as exc:
            raise Untellable(f"the pattern {pattern[:100]!r} takes too long") from exc

    return matches
