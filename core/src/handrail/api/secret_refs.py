"""References to secrets in arguments: `secret:NAME` stands for a value that only the handler is given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from handrail.json_types import is_mapping, is_sequence

__all__ = ["SECRET_PREFIX", "SECRET_REF", "find_secret_names", "normalize_secret_name"]

SECRET_PREFIX = "secret:"
SECRET_REF = re.compile(r"(?<![A-Za-z0-9_])secret:([A-Za-z][A-Za-z0-9_-]{0,63})")
# Containers in one another that are searched.
MAX_SCAN_DEPTH = 100


def has_secret_ref(value: Any, depth: int = MAX_SCAN_DEPTH) -> bool:
    """Return True if a text anywhere in the value may name a secret."""
    if isinstance(value, str):
        return SECRET_PREFIX in value
    if not depth or not (is_mapping(value) or is_sequence(value)):
        return False
    # A loop: this is asked of every call, and a generator takes twice as long.
    for item in value.values() if is_mapping(value) else value:  # noqa: SIM110
        if has_secret_ref(item, depth - 1):
            return True
    return False


def find_secret_names(value: Any, depth: int = MAX_SCAN_DEPTH) -> frozenset[str]:
    """Return the names of secrets, as written, in all texts of the value."""
    return frozenset(_iter_secret_names(value, depth))


def _iter_secret_names(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from SECRET_REF.findall(value)
    elif depth and is_mapping(value):
        for item in value.values():
            yield from _iter_secret_names(item, depth - 1)
    elif depth and is_sequence(value):
        for item in value:
            yield from _iter_secret_names(item, depth - 1)


def normalize_secret_name(name: str) -> str:
    """Return the form that all names of one environment variable share: `my-token` and `MY_TOKEN` are the same secret."""
    return name.upper().replace("-", "_")
