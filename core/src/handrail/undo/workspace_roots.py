"""Relations between paths and workspace roots, as text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence


def topmost_paths(names: Iterable[str]) -> tuple[str, ...]:
    """Return the paths, each replaced by the first missing directory on the way to it, if there is one."""
    found: dict[str, None] = {}
    for name in names:
        at = name
        while (above := os.path.dirname(at)) not in ("/", "") and not os.path.lexists(above):
            at = above
        found[at] = None
    return tuple(found)


def is_inside(path: str, roots: Sequence[str]) -> bool:
    """Return True if the path is one of the roots or below one."""
    return any(path == root or path.startswith(f"{root}/") for root in roots)


def roots_overlap(some: Sequence[str], others: Sequence[str]) -> bool:
    """Return True if a root of one group equals, contains or is inside a root of the other."""
    return any(is_inside(one, others) for one in some) or any(is_inside(one, some) for one in others)


def outermost_roots(roots: Sequence[str]) -> list[str]:
    """Return the roots that are not inside another one."""
    return [root for root in dict.fromkeys(roots) if not is_inside(os.path.dirname(root), roots)]
