"""Opening of files and directories which ensures that what was judged is what is touched.

Every function here takes the real path that a verdict refers to, and walks down to it directory by directory, each
opened relative to the one before and none through a symlink. Someone who replaces a directory or file with a symlink
after the judgment causes an error, never access to another file. On systems without such calls (Windows), a file is
opened and its path is checked afterwards.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from handrail.errors import Denied, Downstream, NotFound
from handrail.fs import file_metadata
from handrail.fs.atomic_write import create_sibling_name, has_holes, open_draft, write_all, write_around_holes
from handrail.fs.dirfd_walk import (
    FILE_KIND_NAMES,
    HAS_DIR_FD,
    LIST_FLAGS,
    NO_FOLLOW,
    SAFE_OPEN_FLAGS,
    HeldFolder,
    check_path_unchanged,
    check_regular_file,
    hold_parent_folder,
    open_file_at,
    path_exchanged_error,
    read_status,
)
from handrail.fs.hard_links import holds_all_names
from handrail.fs.tree_removal import remove_tree

__all__ = [
    "ExpectedState",
    "OpenFolder",
    "OpenedFile",
    "check_new_file_allowed",
    "is_unchanged",
    "open_folder",
    "open_for_reading",
    "open_new_file",
    "replace_file",
]


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """An open file: its descriptor, its real path, and what the system said of it once it was open."""

    fd: int
    path: Path
    status: os.stat_result

    @property
    def size(self) -> int:
        """Bytes; 0 for files that the kernel makes up."""
        return self.status.st_size


@contextmanager
def open_for_reading(path: Path) -> Generator[OpenedFile, None, None]:
    """Open the regular file at a judged path for reading.

    Raises `NotFound` if it does not exist, `Denied` if a symlink is now in the way, `Downstream` if it is not a regular
    file or may not be read.
    """
    with hold_parent_folder(path) as at, _open_reading_at(at, path) as file:
        yield file


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """An open folder: its descriptor (None on systems without calls relative to one) and its real path."""

    fd: int | None
    path: Path

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Yield the directory's entries in no particular order.

        `stat(follow_symlinks=False)` of an entry works while the directory is open.
        """
        with os.scandir(self.path if self.fd is None else self.fd) as entries:
            yield from entries

    @contextmanager
    def folder(self, name: str) -> Generator[OpenFolder, None, None]:
        """Open a subdirectory; raises OSError if it is not a directory, is a symlink, or may not be listed."""
        path = self.path / name
        if self.fd is None:
            if path.is_symlink() or not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            yield OpenFolder(None, path)
            return
        fd = os.open(name, LIST_FLAGS | NO_FOLLOW, dir_fd=self.fd)
        try:
            yield OpenFolder(fd, path)
        finally:
            os.close(fd)

    @contextmanager
    def reading(self, name: str) -> Generator[OpenedFile, None, None]:
        """Open a regular file in the directory for reading; raises what `open_for_reading` raises."""
        with _open_reading_at(HeldFolder(self.fd), self.path / name) as file:
            yield file


@contextmanager
def open_folder(path: Path) -> Generator[OpenFolder, None, None]:
    """Open the directory at a judged path for listing.

    Raises `NotFound` if it does not exist, `Denied` if a symlink is now in the way, `Downstream` if it is not a
    directory or may not be listed.
    """
    if not HAS_DIR_FD:
        if not path.is_dir():
            raise NotFound(f"there is no folder {str(path)!r}")
        yield OpenFolder(None, path)
        return
    if path == Path(path.anchor):
        fd = os.open(path, LIST_FLAGS)
    else:
        with hold_parent_folder(path) as at:
            status = read_status(at, path)
            assert status is not None
            if stat.S_ISLNK(status.st_mode):
                raise path_exchanged_error(path)
            if not stat.S_ISDIR(status.st_mode):
                raise Downstream(
                    f"{str(path)!r} is {FILE_KIND_NAMES.get(stat.S_IFMT(status.st_mode), 'a file')}, no folder"
                )
            fd = open_file_at(at, path, LIST_FLAGS)
    try:
        yield OpenFolder(fd, path)
    finally:
        os.close(fd)


def is_unchanged(now: os.stat_result | None, before: os.stat_result | None) -> bool:
    """Return True if two statuses of a path show the same file with, judging by size and time, the same content."""
    if now is None or before is None:
        return now is before
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) == (
        before.st_dev,
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )


@dataclass(frozen=True, slots=True)
class ExpectedState:
    """State that a file must be in to be replaced: as it was when it was read, or missing (None)."""

    status: os.stat_result | None


def replace_file(
    path: Path,
    data: bytes,
    *,
    overwrite: bool = True,
    create_dirs: bool = False,
    expected: ExpectedState | None = None,
    mode: int = 0o666,
    within: Sequence[Path] = (),
) -> os.stat_result:
    """Write a file with this content to a judged path atomically and return its new status.

    An existing file keeps its permissions, owner, access lists, extended attributes and holes; a new one gets `mode`.
    Without `overwrite`, an existing file is left alone, as is a file that is not as `expected`: both raise
    `Downstream`. Readers see the old content or the new, also after a crash. Other names of the file (hard links) keep
    the old content, unless all of them are in the directories `within`: then the file is written in place, as is a file
    with a single name whose metadata a new file could not be given. Meanwhile a durable copy of its old content is kept
    beside it. A killed process leaves nothing else behind if the file system supports unnamed files.
    """
    with hold_parent_folder(path, create_dirs=create_dirs) as at:
        before = read_status(at, path, missing_ok=True)
        if before is not None:
            check_regular_file(before, path)
            if not overwrite:
                raise Downstream(f"{str(path)!r} is there already", hint="nothing was changed")
        if expected is not None and not is_unchanged(before, expected.status):
            raise _file_changed_error(path)
        try:
            fresh = expected is not None and expected.status is None
            shared = before is not None and before.st_nlink > 1 and holds_all_names(within, before)
            anew = partial(_write_anew, at, path, before, data, overwrite=overwrite and not fresh, mode=mode)
            written = None if shared else anew()
            if written is None and before is not None and before.st_nlink > 1 and not shared:
                raise Downstream(
                    f"{str(path)!r} has other names outside the workspace, and cannot be replaced by a new file",
                    hint="nothing was changed",
                )
            return written or _write_in_place(at, path, before, data)
        except OSError as exc:
            raise Downstream(f"{str(path)!r} could not be written: {exc.strerror}", hint="nothing was changed") from exc


def _write_anew(
    at: HeldFolder, path: Path, before: os.stat_result | None, data: bytes, *, overwrite: bool, mode: int
) -> os.stat_result | None:
    """Put a new file in place of the existing one; return None, with nothing done, if that is not possible."""
    with open_draft(at, path, mode=mode if before is None else 0o600) as draft:
        if before is not None and not file_metadata.copy_metadata(draft.fd, at.name_for_attributes(path), before):
            return None
        (write_around_holes if before is not None and has_holes(before) else write_all)(draft.fd, data)
        os.fsync(draft.fd)
        status = os.fstat(draft.fd)
        if before is not None and not is_unchanged(read_status(at, path, missing_ok=True), before):
            raise _file_changed_error(path)
        try:
            draft.put(path, overwrite=overwrite)
        except OSError as exc:
            # A file that something is mounted on cannot be exchanged.
            if before is not None and exc.errno == errno.EBUSY:
                return None
            raise
    at.settle()
    return status


def _write_in_place(at: HeldFolder, path: Path, before: os.stat_result | None, data: bytes) -> os.stat_result:
    with ExitStack() as closing:
        fd = open_file_at(at, path, os.O_RDWR | SAFE_OPEN_FLAGS)
        closing.callback(os.close, fd)
        if not is_unchanged(os.fstat(fd), before):
            raise _file_changed_error(path)
        old = _read_whole(fd)
        kept = create_sibling_name(path)
        _write_backup(at, kept, old)
        with ExitStack() as undoing:
            undoing.callback(_restore_content, at, fd, old, kept)
            if len(data) > len(old) and hasattr(os, "posix_fallocate"):
                # A full disk is to be found out before anything is changed.
                os.posix_fallocate(fd, len(old), len(data) - len(old))
            _overwrite_content(fd, data)
            undoing.pop_all()
        os.unlink(at.name(kept), dir_fd=at.fd)
        return os.fstat(fd)


def _restore_content(at: HeldFolder, fd: int, old: bytes, kept: Path) -> None:
    _overwrite_content(fd, old)
    # Where that failed, it is still to be found there.
    os.unlink(at.name(kept), dir_fd=at.fd)


def _write_backup(at: HeldFolder, path: Path, data: bytes) -> None:
    with open_draft(at, path, mode=0o600) as draft:
        write_all(draft.fd, data)
        os.fsync(draft.fd)
        draft.put(path, overwrite=False)
    at.settle()


def _overwrite_content(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    write_all(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)


def _read_whole(fd: int) -> bytes:
    data = bytearray()
    while more := os.read(fd, 1_048_576):
        data += more
    return bytes(data)


def check_new_file_allowed(path: Path) -> None:
    """Raise what `open_new_file` would raise for this place as it is now."""
    with hold_parent_folder(path) as at:
        _check_replaceable(read_status(at, path, missing_ok=True), path)


@dataclass(frozen=True, slots=True)
class NewFileWriter:
    """A file that is not in its place yet."""

    fd: int

    def write(self, data: bytes) -> None:
        """Add all of it."""
        write_all(self.fd, data)

    def settle(self) -> None:
        """Bring what was written to the disk; the end waits for all that was not."""
        os.fsync(self.fd)


@contextmanager
def open_new_file(path: Path, *, attributes: Mapping[str, bytes] | None = None) -> Generator[NewFileWriter, None, None]:
    """Yield a new file to be written piece by piece and put at the judged path when the block ends.

    The file is put in place atomically, and only if the block raises no error; on an error nothing is changed. It takes
    over nothing from a file that it replaces; an executable file is not replaced (`Downstream`). `attributes` are
    extended attributes, set as far as the file system supports them.
    """
    with hold_parent_folder(path) as at:
        _check_replaceable(read_status(at, path, missing_ok=True), path)
        try:
            with open_draft(at, path, mode=0o666) as draft:
                yield NewFileWriter(draft.fd)
                _set_attributes(draft.fd, attributes or {})
                os.fsync(draft.fd)
                _check_replaceable(read_status(at, path, missing_ok=True), path)
                draft.put(path, overwrite=True)
        except OSError as exc:
            raise Downstream(f"{str(path)!r} could not be written: {exc.strerror}") from exc
        at.settle()


def delete_path(path: Path, *, recursive: bool = False) -> None:
    """Take away the file, link or empty folder at a judged path; with `recursive` a folder with all that is in it, following no link."""
    with hold_parent_folder(path) as at:
        status = read_status(at, path)
        assert status is not None
        try:
            if not stat.S_ISDIR(status.st_mode):
                os.unlink(at.name(path), dir_fd=at.fd)
            elif recursive:
                remove_tree(at.name(path), dir_fd=at.fd)
            else:
                os.rmdir(at.name(path), dir_fd=at.fd)
        except OSError as exc:
            raise Downstream(f"{str(path)!r} could not be deleted: {exc.strerror}") from exc
        at.settle()


def resolve_archive_member(root: Path, name: str) -> Path:
    """Return the path of an archive member below a judged directory.

    Raises `Denied` for a name that leads out of it or is deceptive. Write the member with
    `replace_file(…, create_dirs=True)`, which does not follow symlinks made by earlier members either; do not extract
    symlinks.
    """
    parts = PurePosixPath(name.replace("\\", "/")).parts
    bad = (
        not parts
        or name.startswith(("/", "\\"))
        or any(part == ".." or ":" in part or part != part.rstrip(" .") for part in parts)
        or any(ord(character) < 32 or ord(character) == 127 for character in name)
    )
    if bad:
        raise Denied(f"the archive's member {name!r} does not belong into the folder it is unpacked to")
    return root.joinpath(*parts)


@contextmanager
def _open_reading_at(at: HeldFolder, path: Path) -> Generator[OpenedFile, None, None]:
    # Opening a device or a pipe may already do something.
    check_regular_file(read_status(at, path), path)
    fd = open_file_at(at, path, os.O_RDONLY | SAFE_OPEN_FLAGS)
    try:
        status = os.fstat(fd)
        check_regular_file(status, path)
        if not HAS_DIR_FD:
            check_path_unchanged(status, path)
        yield OpenedFile(fd, path, status)
    finally:
        os.close(fd)


def _check_replaceable(status: os.stat_result | None, path: Path) -> None:
    """Raise an error unless another file may replace what is at the path."""
    if status is None:
        return
    check_regular_file(status, path)
    if status.st_mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH):
        raise Downstream(f"{str(path)!r} may be executed, and is not replaced", hint="use another name")


def _set_attributes(fd: int, attributes: Mapping[str, bytes]) -> None:
    if sys.platform == "linux":
        for name, value in attributes.items():
            # Not every file system has them.
            with suppress(OSError):
                os.setxattr(fd, name, value)


def _file_changed_error(path: Path) -> Downstream:
    return Downstream(
        f"{str(path)!r} was changed by somebody else in the meantime",
        hint="nothing was written; read it again and repeat the change",
        details={"reason": "stale"},
    )
