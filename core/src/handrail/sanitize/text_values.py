"""The texts in plain data, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handrail.json_types import is_mapping, is_sequence

# Data that is nested deeper is nobody's to read.
MAX_TEXT_DEPTH = 60


def iter_texts(value: Any, *, leave_out: frozenset[str] = frozenset(), depth: int = 0) -> Iterator[str]:
    """Every text in the value, in order; not the keys, and not what stands under a key of `leave_out`."""
    if isinstance(value, str):
        yield value
    elif depth > MAX_TEXT_DEPTH:
        return
    elif is_mapping(value):
        for key, item in value.items():
            if key not in leave_out:
                yield from iter_texts(item, leave_out=leave_out, depth=depth + 1)
    elif is_sequence(value):
        for item in value:
            yield from iter_texts(item, leave_out=leave_out, depth=depth + 1)
