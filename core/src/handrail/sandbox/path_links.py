"""The way to a place as the system looks it up, name by name: the links on it are what may have it lead elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from handrail.sandbox.leftovers import is_present_or_unknown

# Linux gives up after so many links.
MAX_LINKS = 40


def iter_path_steps(place: Path) -> Iterator[Path]:
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


def find_links_on_paths(places: Iterable[Path], roots: Sequence[Path]) -> dict[Path, str]:
    """Return the links below the roots on the ways to these places, with what they say."""
    steps = dict.fromkeys(step for place in places for step in iter_path_steps(place) if _is_below_roots(step, roots))
    return {step: said for step in steps if (said := _read_link(step)) is not None}


def find_exchanged_link(link: Path, said: str, roots: Sequence[Path]) -> Path | None:
    """Return what has taken the place of a link that said this, or of a folder that it was in; None if nothing has."""
    folders = (folder for folder in reversed(link.parents) if _is_below_roots(folder, roots))
    behind = next((folder for folder in folders if folder.is_symlink()), None)
    if behind is not None:
        return behind
    return link if _read_link(link) != said and is_present_or_unknown(link) else None


def _read_link(link: Path) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None


def _is_below_roots(place: Path, roots: Sequence[Path]) -> bool:
    return any(place != root and place.is_relative_to(root) for root in roots)
