"""Files that git can restore, read from the repository's index without running git, which would obey the repository's settings."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from handrail.fs.dirfd_walk import NO_FOLLOW, SAFE_OPEN_FLAGS

__all__ = ["GitIndexes", "find_repository_above"]

# Bytes of an index and of a file that are read, and files that are compared.
MAX_INDEX = 64_000_000
MAX_FILE = 4_000_000
INDEX_HEADER = struct.Struct(">4sLL")
# Bytes of an entry before its digest, with the digest and the flags.
STAT_LENGTH, DIGEST_LENGTH, FIXED_LENGTH = 40, 20, 62
EXTENDED, STAGE = 0x4000, 0x3000
# The flag of a file that is only to be added later, of which nothing is kept.
INTENT_TO_ADD = 0x2000
GITDIR_POINTER = b"gitdir: "


class GitIndexes:
    """The indexes of the repositories around files, each read once."""

    def __init__(self) -> None:
        self._digests: dict[str, Mapping[bytes, bytes]] = {}
        self._roots: dict[str, str | None] = {}

    def has_contents(self, path: str) -> bool:
        """Return True if git has stored the current content of a file or symlink, committed or staged.

        False if that cannot be determined.
        """
        folder, _, name = path.rpartition("/")
        root = self._root_of(folder)
        if root is None:
            return False
        if root not in self._digests:
            self._digests[root] = dict(_iter_index_entries(_read_file_limited(_locate_index(root), MAX_INDEX) or b""))
        known = self._digests[root].get(os.fsencode(os.path.relpath(path, root)))
        return known is not None and known == _compute_git_digest(f"{folder}/{name}")

    def _root_of(self, folder: str) -> str | None:
        passed: list[str] = []
        while folder not in self._roots:
            passed.append(folder)
            if os.path.lexists(f"{folder}/.git"):
                self._roots[folder] = folder
            elif (above := os.path.dirname(folder)) == folder:
                self._roots[folder] = None
            else:
                folder = above
        root = self._roots[folder]
        self._roots.update(dict.fromkeys(passed, root))
        return root


def find_repository_above(folder: str) -> str | None:
    """Return the `.git` that git finds from an absolute directory, or None.

    It is in the directory itself or in the nearest one above it.
    """
    above = (folder, *map(str, PurePath(folder).parents)) if os.path.isabs(folder) else ()
    return next((git for place in above if os.path.lexists(git := os.path.join(place, ".git"))), None)


def _locate_index(root: str) -> str:
    """Return the index path of a repository, or of a work tree whose `.git` is a file that names its directory."""
    pointer = _read_file_limited(f"{root}/.git", 4_096)
    if pointer is not None and pointer.startswith(GITDIR_POINTER):
        return os.path.join(root, os.fsdecode(pointer[len(GITDIR_POINTER) :].strip()), "index")
    return f"{root}/.git/index"


def _iter_index_entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the paths in an index, each with the digest of its content.

    Yields nothing for an index of another format, and stops where it is damaged.
    """
    if len(data) < INDEX_HEADER.size:
        return
    magic, version, count = INDEX_HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3):
        return
    at = INDEX_HEADER.size
    for _ in range(count):
        if at + FIXED_LENGTH > len(data):
            return
        digest = data[at + STAT_LENGTH : at + STAT_LENGTH + DIGEST_LENGTH]
        (flags,) = struct.unpack_from(">H", data, at + FIXED_LENGTH - 2)
        start, more = at + FIXED_LENGTH, 0
        if flags & EXTENDED:
            if start + 2 > len(data):
                return
            (more,) = struct.unpack_from(">H", data, start)
            start += 2
        end = data.find(b"\0", start)
        if end < 0:
            return
        if not flags & STAGE and not more & INTENT_TO_ADD:
            yield data[start:end], digest
        # Padded with one to eight zeros, so that the next one begins at a multiple of eight.
        at += (end - at) // 8 * 8 + 8


def _compute_git_digest(path: str) -> bytes | None:
    """Return git's digest of a file's content or of a symlink's target, or None if it cannot be computed."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            data = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(status.st_mode):
            data = _read_file_limited(path, MAX_FILE)
        else:
            return None
    except OSError:
        return None
    if data is None:
        return None
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest()


def _read_file_limited(path: str, most: int) -> bytes | None:
    """Return what a plain file holds; None for a missing file, or more than `most` bytes."""
    try:
        descriptor = os.open(path, os.O_RDONLY | NO_FOLLOW | SAFE_OPEN_FLAGS)
    except OSError:
        return None
    try:
        # A folder (`.git`) can be opened and not read, and then `open` would leave the descriptor open.
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(most + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data if len(data) <= most else None
