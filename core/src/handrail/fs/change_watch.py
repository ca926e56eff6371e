"""Detection of changed files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# Time in nanoseconds, size, inode; None where there is no file.
FileStamp = tuple[int, int, int] | None


def read_file_stamps(files: Iterable[Path]) -> list[FileStamp]:
    """Return the modification time, size and inode of each file, to detect changes; None for missing files."""
    found: list[FileStamp] = []
    for file in files:
        try:
            now = file.stat()
        except OSError:
            found.append(None)
        else:
            found.append((now.st_mtime_ns, now.st_size, now.st_ino))
    return found
