"""The names of a file that has several (hard links)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

# Names that are looked at in all. A file with names among more than these counts as one that has names elsewhere.
MAX_SEARCHED = 100_000


def holds_all_names(folders: Sequence[Path], status: os.stat_result) -> bool:
    """Return True if all names (hard links) of a file are in these directories, which are searched up to a limit."""
    found: set[str] = set()
    for entry in islice((entry for folder in folders for entry in _iter_entries(os.fspath(folder))), MAX_SEARCHED):
        if entry.inode() == status.st_ino and _is_name_of(entry, status):
            found.add(entry.path)
            if len(found) == status.st_nlink:
                return True
    return False


def _iter_entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder; what cannot be listed is left out."""
    waiting = [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _is_name_of(entry: os.DirEntry[str], status: os.stat_result) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.lstat(entry.path), status)
    return False
