"""Names and the shell patterns that fit them (`*`, `?`, `[a-z]`), for patterns that somebody else wrote."""

from __future__ import annotations

from fnmatch import fnmatchcase

__all__ = ["is_glob_match"]

# Letters of a pattern: `fnmatch` reads brackets that are not closed in time with the square of their number.
MAX_PATTERN_CHARS = 1_000


def is_glob_match(name: str, shape: str, *, if_long: bool = False) -> bool:
    """Return True if the pattern matches the entire name, or `if_long` if the pattern exceeds 1,000 characters."""
    return fnmatchcase(name, shape) if len(shape) <= MAX_PATTERN_CHARS else if_long
