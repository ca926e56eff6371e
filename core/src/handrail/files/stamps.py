"""Whether files have changed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# Time in nanoseconds, size, inode; None where there is no file.
Stamp = tuple[int, int, int] | None


def stamps(files: Iterable[Path]) -> list[Stamp]:
    """What tells a changed file from an unchanged one: time, size, inode; None where there is none."""
    found: list[Stamp] = []
    for file in files:
        try:
            now = file.stat()
        except OSError:
            found.append(None)
        else:
            found.append((now.st_mtime_ns, now.st_size, now.st_ino))
    return found
