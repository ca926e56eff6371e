"""Small configuration files, read without waiting for anything."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from handrail.fs.dirfd_walk import SAFE_OPEN_FLAGS

__all__ = ["read_small_bytes", "read_small_text"]

MAX_SMALL_FILE_BYTES = 262_144


def read_small_text(file: Path) -> str | None:
    """Return the text of an ordinary file of at most `MAX_SMALL_FILE_BYTES`; None for anything else.

    Links are followed, pipes and devices are not read.
    """
    data = read_small_bytes(file, most=MAX_SMALL_FILE_BYTES)
    return None if data is None else data.decode("utf-8", "replace")


def read_small_bytes(file: Path, *, most: int) -> bytes | None:
    """Return what an ordinary file of at most `most` bytes holds; None for anything else, as `read_small_text`."""
    try:
        fd = os.open(file, os.O_RDONLY | SAFE_OPEN_FLAGS)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        return os.read(fd, most)
    except OSError:
        return None
    finally:
        os.close(fd)
