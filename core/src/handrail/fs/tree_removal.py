"""Removal of directory trees of any depth."""

from __future__ import annotations

import errno
import itertools
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

# Permissions of the owner that removing a directory's entries takes.
OWNER_BITS = stat.S_IRWXU


def remove_tree(path: Path | str, *, dir_fd: int | None = None, force: bool = False) -> None:
    """Remove a directory with everything in it, following no symlink. Raises `OSError` if something cannot be removed.

    `force` also removes what is in directories that their owner may not read or change.
    """
    if not force or sys.platform == "win32":
        try:
            shutil.rmtree(path, dir_fd=dir_fd)
        except RecursionError:
            pass
        except OSError as exc:
            if exc.errno != errno.EMFILE:
                raise
        else:
            return
    _TreeRemover(path, dir_fd, force=force).remove()


class _TreeRemover:
    """Removes trees that are too deep for `shutil.rmtree`, which recurses and keeps a descriptor for each level.

    Subdirectories are moved up beside the first level before they are emptied, so that two descriptors are enough.
    """

    def __init__(self, path: Path | str, dir_fd: int | None, *, force: bool) -> None:
        self._path, self._dir_fd, self._force = path, dir_fd, force
        prefix = secrets.token_hex(8)
        self._names: Iterator[str] = (f"{prefix}.{number}" for number in itertools.count())

    def remove(self) -> None:
        top = self._open(self._path, self._dir_fd)
        try:
            while names := os.listdir(top):
                for name in names:
                    if not _is_folder(name, top):
                        os.unlink(name, dir_fd=top)
                        continue
                    self._empty(name, top)
                    os.rmdir(name, dir_fd=top)
        finally:
            os.close(top)
        os.rmdir(self._path, dir_fd=self._dir_fd)

    def _empty(self, name: str, top: int) -> None:
        """Remove the files of a directory, and move its subdirectories up."""
        folder = self._open(name, top)
        try:
            for child in os.listdir(folder):
                if not _is_folder(child, folder):
                    os.unlink(child, dir_fd=folder)
                    continue
                if self._force:
                    # A directory that cannot be changed cannot be moved either.
                    _grant_owner(child, folder)
                os.rename(child, next(self._names), src_dir_fd=folder, dst_dir_fd=top)
        finally:
            os.close(folder)

    def _open(self, path: Path | str, dir_fd: int | None) -> int:
        if self._force:
            _grant_owner(path, dir_fd)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)


def _grant_owner(path: Path | str, dir_fd: int | None) -> None:
    """Let the owner of a directory read and change it; nothing else takes its place meanwhile."""
    if not sys.platform.startswith("linux"):
        os.chmod(path, OWNER_BITS, dir_fd=dir_fd, follow_symlinks=False)
        return
    held = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        if os.fstat(held).st_mode & OWNER_BITS != OWNER_BITS:
            os.chmod(f"/proc/self/fd/{held}", OWNER_BITS)
    finally:
        os.close(held)


def _is_folder(path: str, dir_fd: int) -> bool:
    return stat.S_ISDIR(os.lstat(path, dir_fd=dir_fd).st_mode)
