"""Records of places as they were when nothing in the sandbox could change them, to tell later whether anything has."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from handrail.fs import sensitive_paths
from handrail.sandbox.repositories import OBEYED_NAMES

# A place with more below it counts as changed.
MAX_ENTRIES = 500
# Two changes within this time may be stamped with the same one.
TICK_NS = 50_000_000

# Of the place and what is below it: the path, the inode, and when it was changed by the clock that no program can set.
PlaceState = Sequence[tuple[str, int, int]]


def state_of(place: Path) -> PlaceState | None:
    """Return what tells later whether a place has changed; None where nothing is there, or too much to look at. Of a repository: what git obeys."""
    found: list[tuple[str, int, int]] = []
    try:
        for path in _paths(place):
            status = os.lstat(path)
            found.append((str(path), status.st_ino, status.st_ctime_ns))
            if len(found) > MAX_ENTRIES:
                return None
    except OSError:
        return None
    return sorted(found)


def wait_for_tick(states: Sequence[PlaceState]) -> None:
    """Return once another change of these places would be stamped with a later time. Takes 50 ms at most."""
    latest = max((changed for state in states for _, _, changed in state), default=0)
    left_ns = latest + TICK_NS - time.time_ns()
    if 0 < left_ns <= TICK_NS:
        time.sleep(left_ns / 1e9)


def _paths(place: Path) -> Iterator[Path]:
    waiting = [place]
    while waiting:
        path = waiting.pop()
        yield path
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            continue
        names = os.listdir(path)
        if sensitive_paths.is_repository(sensitive_paths.REPOSITORY_NAMES.intersection(names)):
            yield from (path / name for name in OBEYED_NAMES if os.path.lexists(path / name))
        else:
            waiting += [path / name for name in names]
