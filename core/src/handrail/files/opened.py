"""Files and folders opened so that what was judged is what is touched.

Every function here takes the real path that a verdict speaks of, and goes down to it folder by folder, each relative to the one before and none
through a link. Whoever puts a link in place of a folder or a file after the judgement gets an error, never another file. Where the system has
no such calls (Windows), a file is opened and then asked where it is.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from handrail.errors import Denied, Downstream, NotFound
from handrail.files import likeness
from handrail.files.drafts import drafted, has_holes, sibling, write_all, write_around_holes
from handrail.files.hard_links import holds_all_names
from handrail.files.holding import (
    BY_HANDLE,
    KINDS,
    LISTING,
    NO_LINK,
    QUIET,
    Held,
    check_ordinary,
    check_place,
    exchanged,
    holding,
    open_file,
    status_of,
)


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file: its descriptor, its real path, and what the system said of it once it was open."""

    fd: int
    path: Path
    status: os.stat_result

    @property
    def size(self) -> int:
        """Bytes; 0 for files that the kernel makes up."""
        return self.status.st_size


@contextmanager
def reading(path: Path) -> Generator[Opened, None, None]:
    """The ordinary file at a judged path, open for reading.

    Raises `NotFound` for none, `Denied` when a link stands in the way by now, `Downstream` for what is no ordinary file or may not be read.
    """
    with holding(path) as at, _reading_in(at, path) as file:
        yield file


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder: its descriptor (None on systems without calls relative to one) and its real path."""

    fd: int | None
    path: Path

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """What is in it, in no order. `stat(follow_symlinks=False)` of an entry works while the folder is open."""
        with os.scandir(self.path if self.fd is None else self.fd) as entries:
            yield from entries

    @contextmanager
    def folder(self, name: str) -> Generator[Folder, None, None]:
        """A folder in it, open; OSError for what is none, is a link, or may not be listed."""
        path = self.path / name
        if self.fd is None:
            if path.is_symlink() or not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            yield Folder(None, path)
            return
        fd = os.open(name, LISTING | NO_LINK, dir_fd=self.fd)
        try:
            yield Folder(fd, path)
        finally:
            os.close(fd)

    @contextmanager
    def reading(self, name: str) -> Generator[Opened, None, None]:
        """An ordinary file in it, open for reading; what `opened.reading` raises."""
        with _reading_in(Held(self.fd), self.path / name) as file:
            yield file


@contextmanager
def listing(path: Path) -> Generator[Folder, None, None]:
    """The folder at a judged path, open for listing.

    Raises `NotFound` for none, `Denied` when a link stands in the way by now, `Downstream` for what is no folder or may not be listed.
    """
    if not BY_HANDLE:
        if not path.is_dir():
            raise NotFound(f"there is no folder {str(path)!r}")
        yield Folder(None, path)
        return
    if path == Path(path.anchor):
        fd = os.open(path, LISTING)
    else:
        with holding(path) as at:
            status = status_of(at, path)
            assert status is not None
            if stat.S_ISLNK(status.st_mode):
                raise exchanged(path)
            if not stat.S_ISDIR(status.st_mode):
                raise Downstream(f"{str(path)!r} is {KINDS.get(stat.S_IFMT(status.st_mode), 'a file')}, no folder")
            fd = open_file(at, path, LISTING)
    try:
        yield Folder(fd, path)
    finally:
        os.close(fd)


def unchanged(now: os.stat_result | None, before: os.stat_result | None) -> bool:
    """Whether two looks at a path show the same file with, as far as size and time tell, the same content."""
    if now is None or before is None:
        return now is before
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) == (
        before.st_dev,
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )


@dataclass(frozen=True, slots=True)
class Expected:
    """What a file has to be, so that it may be replaced: as it was when it was read, or not there (None)."""

    status: os.stat_result | None


def replace(
    path: Path,
    data: bytes,
    *,
    overwrite: bool = True,
    create_dirs: bool = False,
    expected: Expected | None = None,
    mode: int = 0o666,
    within: Sequence[Path] = (),
) -> os.stat_result:
    """Put a file with this content at a judged path, at once and as a whole; what the system says of it.

    A file that was there keeps its permissions, owner, access lists, extended attributes and holes; a new one gets `mode`. Without `overwrite` one
    that is there is left alone, as is one that is not as `expected`: `Downstream`. Readers see the old content or the new, also after a crash. Other
    names of the file (hard links) keep the old content, unless all of them lie in the folders `within`: then the file is written in place, as is
    one without other names that a new file could not be made like. Meanwhile its old content lies beside it, durable. A killed process leaves nothing
    else, where the file system has files without a name.
    """
    with holding(path, create_dirs=create_dirs) as at:
        before = status_of(at, path, missing_ok=True)
        if before is not None:
            check_ordinary(before, path)
            if not overwrite:
                raise Downstream(f"{str(path)!r} is there already", hint="nothing was changed")
        if expected is not None and not unchanged(before, expected.status):
            raise _changed(path)
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
    at: Held, path: Path, before: os.stat_result | None, data: bytes, *, overwrite: bool, mode: int
) -> os.stat_result | None:
    """A new file in the place of the one that is there; None where that is not to be had, and nothing was done."""
    with drafted(at, path, mode=mode if before is None else 0o600) as draft:
        if before is not None and not likeness.take(draft.fd, at.name_for_attributes(path), before):
            return None
        (write_around_holes if before is not None and has_holes(before) else write_all)(draft.fd, data)
        os.fsync(draft.fd)
        status = os.fstat(draft.fd)
        if before is not None and not unchanged(status_of(at, path, missing_ok=True), before):
            raise _changed(path)
        try:
            draft.put(path, overwrite=overwrite)
        except OSError as exc:
            # A file that something is mounted on cannot be exchanged.
            if before is not None and exc.errno == errno.EBUSY:
                return None
            raise
    at.settle()
    return status


def _write_in_place(at: Held, path: Path, before: os.stat_result | None, data: bytes) -> os.stat_result:
    with ExitStack() as closing:
        fd = open_file(at, path, os.O_RDWR | QUIET)
        closing.callback(os.close, fd)
        if not unchanged(os.fstat(fd), before):
            raise _changed(path)
        old = _read_all(fd)
        kept = sibling(path)
        _write_beside(at, kept, old)
        with ExitStack() as undoing:
            undoing.callback(_restore, at, fd, old, kept)
            if len(data) > len(old) and hasattr(os, "posix_fallocate"):
                # A full disk is to be found out before anything is changed.
                os.posix_fallocate(fd, len(old), len(data) - len(old))
            _overwrite(fd, data)
            undoing.pop_all()
        os.unlink(at.name(kept), dir_fd=at.fd)
        return os.fstat(fd)


def _restore(at: Held, fd: int, old: bytes, kept: Path) -> None:
    _overwrite(fd, old)
    # Where that failed, it is still to be found there.
    os.unlink(at.name(kept), dir_fd=at.fd)


def _write_beside(at: Held, path: Path, data: bytes) -> None:
    with drafted(at, path, mode=0o600) as draft:
        write_all(draft.fd, data)
        os.fsync(draft.fd)
        draft.put(path, overwrite=False)
    at.settle()


def _overwrite(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    write_all(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)


def _read_all(fd: int) -> bytes:
    data = bytearray()
    while more := os.read(fd, 1_048_576):
        data += more
    return bytes(data)


def check_arrival(path: Path) -> None:
    """Raise what `arriving` would raise for this place as it is now."""
    with holding(path) as at:
        _check_may_go(status_of(at, path, missing_ok=True), path)


@dataclass(frozen=True, slots=True)
class Arriving:
    """A file that is not in its place yet."""

    fd: int

    def write(self, data: bytes) -> None:
        """Add all of it."""
        write_all(self.fd, data)

    def settle(self) -> None:
        """Bring what was written to the disk; the end waits for all that was not."""
        os.fsync(self.fd)


@contextmanager
def arriving(path: Path, *, attributes: Mapping[str, bytes] | None = None) -> Generator[Arriving, None, None]:
    """A whole new file, written piece by piece. When the block ends without an error, it is put at the judged path at once.

    It is another file than one that was there: nothing is taken over, and one that may be executed is left alone (`Downstream`).
    `attributes` are extended ones, as far as the file system takes them. On an error nothing has changed.
    """
    with holding(path) as at:
        _check_may_go(status_of(at, path, missing_ok=True), path)
        try:
            with drafted(at, path, mode=0o666) as draft:
                yield Arriving(draft.fd)
                _mark(draft.fd, attributes or {})
                os.fsync(draft.fd)
                _check_may_go(status_of(at, path, missing_ok=True), path)
                draft.put(path, overwrite=True)
        except OSError as exc:
            raise Downstream(f"{str(path)!r} could not be written: {exc.strerror}") from exc
        at.settle()


def delete(path: Path, *, recursive: bool = False) -> None:
    """Take away the file, link or empty folder at a judged path; with `recursive` a folder with all that is in it, following no link."""
    with holding(path) as at:
        status = status_of(at, path)
        assert status is not None
        try:
            if not stat.S_ISDIR(status.st_mode):
                os.unlink(at.name(path), dir_fd=at.fd)
            elif recursive:
                shutil.rmtree(at.name(path), dir_fd=at.fd) if at.fd is not None else shutil.rmtree(path)
            else:
                os.rmdir(at.name(path), dir_fd=at.fd)
        except OSError as exc:
            raise Downstream(f"{str(path)!r} could not be deleted: {exc.strerror}") from exc
        at.settle()


def safe_member(root: Path, name: str) -> Path:
    """Where a member of an archive belongs below a judged folder; `Denied` for a name that leads out of it or is not what it looks like.

    Write it with `replace(…, create_dirs=True)`, which also goes through no link that an earlier member has made; extract no links.
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
def _reading_in(at: Held, path: Path) -> Generator[Opened, None, None]:
    # Opening a device or a pipe may already do something.
    check_ordinary(status_of(at, path), path)
    fd = open_file(at, path, os.O_RDONLY | QUIET)
    try:
        status = os.fstat(fd)
        check_ordinary(status, path)
        if not BY_HANDLE:
            check_place(status, path)
        yield Opened(fd, path, status)
    finally:
        os.close(fd)


def _check_may_go(status: os.stat_result | None, path: Path) -> None:
    """Whether another file may take the place of what is there."""
    if status is None:
        return
    check_ordinary(status, path)
    if status.st_mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH):
        raise Downstream(f"{str(path)!r} may be executed, and is not replaced", hint="use another name")


def _mark(fd: int, attributes: Mapping[str, bytes]) -> None:
    if sys.platform == "linux":
        for name, value in attributes.items():
            # Not every file system has them.
            with suppress(OSError):
                os.setxattr(fd, name, value)


def _changed(path: Path) -> Downstream:
    return Downstream(
        f"{str(path)!r} was changed by somebody else in the meantime",
        hint="nothing was written; read it again and repeat the change",
        details={"reason": "stale"},
    )
