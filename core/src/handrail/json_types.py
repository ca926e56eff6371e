"""Type guards for JSON, TOML and YAML data, for the type checker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

__all__ = ["BASE64_KEYS", "count_values", "is_list", "is_mapping", "is_object"]

# `dict` first: the check for any other mapping is slow. Written out, the union would be made anew at each call.
MAPPING_TYPES: tuple[type[Mapping[str, Any]], ...] = (dict, Mapping)
_SEQUENCE_TYPES = (list, tuple)
# Keys whose values are pictures in base64, the one to look at first.
PICTURE_KEYS = ("image_b64", "raw_image_b64")
# Keys whose values are base64, and so no text at all.
BASE64_KEYS = frozenset((*PICTURE_KEYS, "data_b64"))
# Texts in data that is nested deeper are not looked at.
MAX_TEXT_DEPTH = 60


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return True if the value is a JSON object (a dict)."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return True if the value is a list, with elements of any type."""
    return isinstance(value, list)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Return True if the value is a mapping of any kind, with any keys."""
    return isinstance(value, MAPPING_TYPES)


def is_nested_deeper(value: object, levels: int) -> bool:
    """Return True if mappings and lists are nested more than `levels` deep.

    Iterative: stack use does not grow with the depth of the value.
    """
    below = [value]
    for _ in range(levels + 1):
        below = [item for each in below for item in _iter_children(each)]
    return bool(below)


def count_values(value: object, most: int) -> int:
    """Return how many values a structure holds, those in its objects and lists included; more than `most` are not all counted."""
    count = 1
    waiting: list[object] = [value]
    while waiting and count <= most:
        held = waiting.pop()
        if is_object(held) or is_list(held):
            count += len(held)
            if count > most:
                break
            waiting += [item for item in _iter_children(held) if is_object(item) or is_list(item)]
    return count


def has_non_finite_number(value: object) -> bool:
    """Return True if a number in the value is NaN or infinite, which JSON cannot express. Iterative, as `is_nested_deeper`."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return True
        waiting += _iter_children(item)
    return False


def iter_integers(value: object) -> Iterator[int]:
    """Yield the integers in nested mappings and lists."""
    if isinstance(value, int):
        yield value
    for item in _iter_children(value):
        yield from iter_integers(item)


def _iter_children(value: object) -> Iterable[object]:
    if is_object(value):
        return value.values()
    return value if is_list(value) else ()


def is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    """Return True if the value is a list or tuple; strings do not count."""
    return isinstance(value, _SEQUENCE_TYPES)


def iter_texts(value: Any, *, leave_out: frozenset[str] = frozenset(), depth: int = 0) -> Iterator[str]:
    """Yield every text in the value, in order; not keys, and not values under a key in `leave_out`."""
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
