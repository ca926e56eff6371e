"""A bag of values by dotted path, for what tools and hosts keep beside the contract."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from handrail.json_types import is_object

_NO_VALUE = object()


class Bag:
    """Store of values under dotted paths: `bag.set("mail.folder", "inbox")`. Reads return copies."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = copy.deepcopy(dict(values)) if values else {}

    def get(self, path: str, default: Any = None) -> Any:
        """Return a copy of the value at `path`, or `default`."""
        node: Any = self._values
        for part in path.split("."):
            if not is_object(node) or part not in node:
                return default
            node = node[part]
        return copy.deepcopy(node)

    def set(self, path: str, value: Any) -> None:
        """Put a copy of `value` at `path`, making the mappings on the way."""
        *parents, last = path.split(".")
        node = self._values
        for part in parents:
            below = node.setdefault(part, {})
            if not is_object(below):
                raise ValueError(f"{path!r} goes through {part!r}, which holds a value")
            node = below
        node[last] = copy.deepcopy(value)

    def has(self, path: str) -> bool:
        """Return True if there is a value at `path`, even if it is None."""
        return self.get(path, _NO_VALUE) is not _NO_VALUE

    def delete(self, path: str) -> None:
        """Take away what is at `path`; nothing happens when there is nothing."""
        *parents, last = path.split(".")
        node: Any = self._values
        for part in parents:
            node = node.get(part) if is_object(node) else None
        if is_object(node):
            node.pop(last, None)

    def all(self) -> dict[str, Any]:
        """Return a copy of all values, as nested mappings."""
        return copy.deepcopy(self._values)

    def keys(self) -> Iterator[str]:
        """Yield the dotted paths of all values that are not mappings themselves."""
        return _iter_leaf_paths(self._values, "")


def _iter_leaf_paths(node: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for key, value in node.items():
        if is_object(value) and value:
            yield from _iter_leaf_paths(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
