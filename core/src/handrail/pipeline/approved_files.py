"""Workspace files that a call names, and detection of changes to them since the user was asked."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.api.verdict import Verdict

# Of larger files only size and times count.
MAX_HASHED_BYTES = 4 * 1024 * 1024
# What makes a file another one: device, inode, size, times of change in nanoseconds, and a digest of the content, which a program that has
# mapped the file can change without changing its times. None where there is no file.
FileState = tuple[int, int, int, int, int, bytes] | None


def read_file_states(verdict: Verdict, roots: Iterable[Path]) -> Mapping[str, FileState]:
    """Return the states of the files below these folders that a call reads or runs, by path.

    Folders, pipes and devices are omitted.
    """
    folders = tuple(roots)
    named = {
        touch.what
        for part in verdict.parts
        for touch in part.touches
        if touch.kind in ("read", "execute") and os.path.isabs(touch.what)
    }
    states: dict[str, FileState] = {}
    for path in sorted(named):
        if any(Path(path).is_relative_to(folder) for folder in folders) and not os.path.isdir(path):
            states[path] = _read_file_state(path)
    return states


def find_changed_file(before: Mapping[str, FileState]) -> str | None:
    """Return the first file that has changed, or None if all are the same."""
    return next((path for path, state in before.items() if _read_file_state(path) != state), None)


def _read_file_state(path: str) -> FileState:
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(file)
        digest = b""
        if stat.S_ISREG(found.st_mode) and found.st_size <= MAX_HASHED_BYTES:
            with os.fdopen(os.dup(file), "rb") as content:
                digest = hashlib.blake2b(content.read(MAX_HASHED_BYTES + 1)).digest()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, digest
    except OSError:
        return None
    finally:
        os.close(file)
