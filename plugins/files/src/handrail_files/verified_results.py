"""Search results verified by handles: each name still refers to the same file, and not briefly to a symlink's target.

The search program opens files by name. If a file is replaced by a symlink between the check and the open, the program
reads something else; but that also changes the folder at that moment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import PurePath

from handrail import ToolError
from handrail.fs import safe_open

# A file system stamps with a clock that may be this much behind.
COARSE_CLOCK_NS = 50_000_000
# Seconds after which what was changed before is told apart from what is changed then.
SETTLING_S = COARSE_CLOCK_NS / 1e9 + 0.01
# Bytes of a file that are compared.
MAX_COMPARED = 64 * 2**20
BOMS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(frozen=True, slots=True)
class VerifiedResults:
    """The names below an open folder, as they were from a time (nanoseconds) on."""

    folder: safe_open.OpenFolder
    began_ns: int

    def is_unchanged(self, name: str) -> bool:
        """Return True if no folder on the path to a file has changed since.

        The name then referred to the same file all the time.
        """
        try:
            with ExitStack() as held:
                folders = self._way(name, held)
                return all(self._settled(folder) for folder in folders)
        except (OSError, ToolError):
            return False

    def exists(self, name: str) -> bool:
        """Return True if a name exists and no symlink is on the path to it."""
        try:
            with ExitStack() as held:
                folder = self._way(name, held)[-1]
                last = PurePath(name).name
                os.stat(last if folder.fd is not None else folder.path / last, dir_fd=folder.fd, follow_symlinks=False)
        except (OSError, ToolError):
            return False
        return True

    def holds(self, name: str, lines: Mapping[int, str], shown: Callable[[bytes], str]) -> bool:
        """Return True if the file with this name has these lines, by number, after `shown` has converted its bytes."""
        try:
            with ExitStack() as held:
                folder = self._way(name, held)[-1]
                file = held.enter_context(folder.reading(PurePath(name).name))
                data = b"" if file.size > MAX_COMPARED else os.pread(file.fd, file.size, 0)
        except (OSError, ToolError):
            return False
        for mark, charset in BOMS.items():
            if data.startswith(mark):
                data = data[len(mark) :].decode(charset, "replace").encode()
        there = data.split(b"\n")
        return all(number <= len(there) and shown(there[number - 1]) == line for number, line in lines.items())

    def _way(self, name: str, held: ExitStack) -> list[safe_open.OpenFolder]:
        folders = [self.folder]
        for part in PurePath(name).parts[:-1]:
            folders.append(held.enter_context(folders[-1].folder(part)))
        return folders

    def _settled(self, folder: safe_open.OpenFolder) -> bool:
        if folder.fd is None:
            # Where there are no handles there is no sandbox, and no program that runs unasked.
            return True
        return os.fstat(folder.fd).st_ctime_ns < self.began_ns - COARSE_CLOCK_NS
