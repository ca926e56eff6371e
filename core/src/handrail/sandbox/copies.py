"""Comparison of files and folders that a command has made with others, by their content."""

from __future__ import annotations

import os
import stat
from pathlib import Path

# More is not read: what programs obey is small.
MAX_BYTES = 1_000_000
MAX_ENTRIES = 500
FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def holds_nothing_else(place: Path, original: Path) -> bool:
    """Return True if a file is the same as `original`, or a folder holds only files that `original` has, too.

    They count as the same with the same bytes and the same permission to run. False for links, and for what takes long to compare.
    """
    waiting = [(place, original)]
    for _ in range(MAX_ENTRIES):
        if not waiting:
            return True
        copied, first = waiting.pop()
        try:
            if stat.S_ISDIR(os.lstat(copied).st_mode) and stat.S_ISDIR(os.lstat(first).st_mode):
                waiting += [(copied / name, first / name) for name in os.listdir(copied)]
            elif (content := _content(copied)) is None or content != _content(first):
                return False
        except OSError:
            return False
    return False


def _content(file: Path) -> tuple[bool, bytes] | None:
    """Return the content of a small ordinary file, and whether its owner may run it; None for anything else. Raises OSError."""
    fd = os.open(file, FLAGS)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
            return None
        with os.fdopen(os.dup(fd), "rb") as opened:
            return bool(found.st_mode & stat.S_IXUSR), opened.read(MAX_BYTES + 1)
    finally:
        os.close(fd)
