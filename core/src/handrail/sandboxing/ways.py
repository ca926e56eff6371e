"""The way to a place as the system looks it up, name by name: the links on it are what may have it lead elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# Linux gives up after so many links.
MAX_LINKS = 40


def steps_to(place: Path) -> Iterator[Path]:
    """Yield each place on the way to an absolute one, and itself: links, and then the way to where they lead. They need not be there.

    No folder that a step is in is reached by a link.
    """
    at, waiting = Path(place.anchor), list(reversed(place.parts[1:]))
    links = 0
    while waiting:
        name = waiting.pop()
        if name == "..":
            at = at.parent
            continue
        step = at / name
        yield step
        try:
            led = Path(os.readlink(step))
        except OSError:
            at = step
            continue
        links += 1
        if links > MAX_LINKS:
            return
        if led.is_absolute():
            at = Path(led.anchor)
        waiting += reversed(led.parts[1:] if led.is_absolute() else led.parts)
