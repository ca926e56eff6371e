"""Suggestions for names that do not exist."""

from __future__ import annotations

import os
from pathlib import Path

from handrail.text import find_similar_texts

__all__ = ["describe_similar_names"]

# Names that are looked at for one that was meant.
MAX_NAMES = 2_000


def describe_similar_names(path: Path) -> str:
    """Return a phrase that lists the names beside a missing file that resemble its name."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry, _ in zip(entries, range(MAX_NAMES), strict=False)]
    except OSError:
        return f"there is no folder {str(path.parent)!r} either"
    close = find_similar_texts(path.name, names, most=3)
    return f"near it there is {', '.join(close)}" if close else f"{str(path.parent)!r} holds nothing of a similar name"
