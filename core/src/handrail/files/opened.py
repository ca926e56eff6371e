"""Files and folders opened so that what was judged is what is touched.

Every function here takes the real path that a verdict speaks of, and goes down to it folder by folder, each relative to the one before and none
through a link. Whoever puts a link in place of a folder or a file after the judgement gets an error, never another file. Where the system has
no such calls (Windows), a file is opened and then asked where it is.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from handrail.errors import Denied, Downstream, NotFound
from handrail.files import likeness

# Opens a folder only to open what is in it, which needs no right to list it.
PASSING = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# A disk counts in these; of a file with holes, pieces of this size are left out where they are empty.
STAT_BLOCK, HOLE = 512, 4096
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# A pipe or a terminal must neither be waited for nor become ours.
QUIET = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
LISTING = os.O_RDONLY | QUIET | getattr(os, "O_DIRECTORY", 0)
BY_HANDLE = os.open in os.supports_dir_fd

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


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
    with _holding(path) as at, _reading_in(at, path) as file:
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
        with _reading_in(_Folder(self.fd), self.path / name) as file:
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
        with _holding(path) as at:
            status = _status(at, path)
            assert status is not None
            if stat.S_ISLNK(status.st_mode):
                raise _exchanged(path)
            if not stat.S_ISDIR(status.st_mode):
                raise Downstream(f"{str(path)!r} is {KINDS.get(stat.S_IFMT(status.st_mode), 'a file')}, no folder")
            fd = _open(at, path, LISTING)
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
    path: Path, data: bytes, *, overwrite: bool = True, create_dirs: bool = False, expected: Expected | None = None
) -> os.stat_result:
    """Put a file with this content at a judged path, at once and as a whole; what the system says of it.

    A file that was there keeps its permissions, owner, access lists, extended attributes and holes. Without `overwrite` one that is there is left
    alone, as is one that is not as `expected`: `Downstream`. Readers see the old content or the new, also after a crash. A file with several
    names, or one that a new file could not be made like, is written in place instead, as editors do: then its old content lies beside it,
    durable, until the new one is. A killed process leaves nothing else, where the file system has files without a name.
    """
    with _holding(path, create_dirs=create_dirs) as at:
        before = _status(at, path, missing_ok=True)
        if before is not None:
            _check_ordinary(before, path)
            if not overwrite:
                raise Downstream(f"{str(path)!r} is there already", hint="nothing was changed")
        if expected is not None and not unchanged(before, expected.status):
            raise _changed(path)
        try:
            fresh = expected is not None and expected.status is None
            alone = before is None or before.st_nlink == 1
            status = _write_anew(at, path, before, data, overwrite=overwrite and not fresh) if alone else None
            return status or _write_in_place(at, path, before, data)
        except OSError as exc:
            raise Downstream(f"{str(path)!r} could not be written: {exc.strerror}", hint="nothing was changed") from exc


def _write_anew(
    at: _Folder, path: Path, before: os.stat_result | None, data: bytes, *, overwrite: bool
) -> os.stat_result | None:
    """A new file in the place of the one that is there; None where that is not to be had, and nothing was done."""
    with _draft(at, path, mode=0o666 if before is None else 0o600) as draft:
        if before is not None and not likeness.take(draft.fd, at.name_for_attributes(path), before):
            return None
        _write_all(draft.fd, data) if before is None or not _has_holes(before) else _write_around_holes(draft.fd, data)
        os.fsync(draft.fd)
        status = os.fstat(draft.fd)
        if before is not None and not unchanged(_status(at, path, missing_ok=True), before):
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


def _write_in_place(at: _Folder, path: Path, before: os.stat_result | None, data: bytes) -> os.stat_result:
    with ExitStack() as closing:
        fd = _open(at, path, os.O_RDWR | QUIET)
        closing.callback(os.close, fd)
        if not unchanged(os.fstat(fd), before):
            raise _changed(path)
        old = _read_all(fd)
        kept = _sibling(path)
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


def _restore(at: _Folder, fd: int, old: bytes, kept: Path) -> None:
    _overwrite(fd, old)
    # Where that failed, it is still to be found there.
    os.unlink(at.name(kept), dir_fd=at.fd)


def _write_beside(at: _Folder, path: Path, data: bytes) -> None:
    with _draft(at, path, mode=0o600) as draft:
        _write_all(draft.fd, data)
        os.fsync(draft.fd)
        draft.put(path, overwrite=False)
    at.settle()


def _overwrite(fd: int, data: bytes) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    _write_all(fd, data)
    os.ftruncate(fd, len(data))
    os.fsync(fd)


def _read_all(fd: int) -> bytes:
    data = bytearray()
    while more := os.read(fd, 1_048_576):
        data += more
    return bytes(data)


def check_arrival(path: Path) -> None:
    """Raise what `arriving` would raise for this place as it is now."""
    with _holding(path) as at:
        _check_may_go(_status(at, path, missing_ok=True), path)


@dataclass(frozen=True, slots=True)
class Arriving:
    """A file that is not in its place yet."""

    fd: int

    def write(self, data: bytes) -> None:
        """Add all of it."""
        _write_all(self.fd, data)

    def settle(self) -> None:
        """Bring what was written to the disk; the end waits for all that was not."""
        os.fsync(self.fd)


@contextmanager
def arriving(path: Path, *, attributes: Mapping[str, bytes] | None = None) -> Generator[Arriving, None, None]:
    """A whole new file, written piece by piece. When the block ends without an error, it is put at the judged path at once.

    It is another file than one that was there: nothing is taken over, and one that may be executed is left alone (`Downstream`).
    `attributes` are extended ones, as far as the file system takes them. On an error nothing has changed.
    """
    with _holding(path) as at:
        _check_may_go(_status(at, path, missing_ok=True), path)
        try:
            with _draft(at, path, mode=0o666) as draft:
                yield Arriving(draft.fd)
                _mark(draft.fd, attributes or {})
                os.fsync(draft.fd)
                _check_may_go(_status(at, path, missing_ok=True), path)
                draft.put(path, overwrite=True)
        except OSError as exc:
            raise Downstream(f"{str(path)!r} could not be written: {exc.strerror}") from exc
        at.settle()


def delete(path: Path, *, recursive: bool = False) -> None:
    """Take away the file, link or empty folder at a judged path; with `recursive` a folder with all that is in it, following no link."""
    with _holding(path) as at:
        status = _status(at, path)
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


@dataclass(frozen=True, slots=True)
class _Folder:
    """An open folder, for calls relative to it; without a descriptor where the system has none, then paths are whole."""

    fd: int | None

    def name(self, path: Path) -> str:
        return str(path) if self.fd is None else path.name

    def name_for_attributes(self, path: Path) -> str:
        """For calls that take no folder's descriptor."""
        return str(path) if self.fd is None else f"/proc/self/fd/{self.fd}/{path.name}"

    def settle(self) -> None:
        """Make sure that a change of names survives a crash."""
        if self.fd is not None:
            readable = os.open(".", os.O_RDONLY | PASSING & ~getattr(os, "O_PATH", 0), dir_fd=self.fd)
            try:
                os.fsync(readable)
            finally:
                os.close(readable)


@contextmanager
def _reading_in(at: _Folder, path: Path) -> Generator[Opened, None, None]:
    # Opening a device or a pipe may already do something.
    _check_ordinary(_status(at, path), path)
    fd = _open(at, path, os.O_RDONLY | QUIET)
    try:
        status = os.fstat(fd)
        _check_ordinary(status, path)
        if not BY_HANDLE:
            _check_place(status, path)
        yield Opened(fd, path, status)
    finally:
        os.close(fd)


@contextmanager
def _holding(path: Path, *, create_dirs: bool = False) -> Generator[_Folder, None, None]:
    """The folder that a judged path lies in, reached from the root through no link. What was made on the way is taken back on an error."""
    if not BY_HANDLE:
        if create_dirs:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield _Folder(None)
        return
    if not path.is_absolute() or ".." in path.parts or not path.name:
        raise Denied(f"{str(path)!r} is not a path that was judged")
    fd = os.open(path.anchor, PASSING)
    made: list[tuple[int, str]] = []
    try:
        for index, name in enumerate(path.parts[1:-1], start=2):
            try:
                below = _enter(name, fd, made if create_dirs else None)
            except OSError as exc:
                raise _way_error(exc, name, fd, Path(*path.parts[:index]), path) from exc
            os.close(fd)
            fd = below
        yield _Folder(fd)
        for parent, _ in made:
            _Folder(parent).settle()
    except BaseException:  # whatever ended it goes on: what was made for it goes
        for parent, name in reversed(made):
            # One that somebody has put something into stays.
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)
        raise
    finally:
        os.close(fd)
        for parent, _ in made:
            os.close(parent)


def _enter(name: str, fd: int, made: list[tuple[int, str]] | None) -> int:
    """Open a folder in another. One that is missing is made and noted in `made` with what it lies in, if that is given."""
    try:
        return os.open(name, PASSING | NO_LINK, dir_fd=fd)
    except FileNotFoundError:
        if made is None:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=fd)
            made.append((os.dup(fd), name))
        return os.open(name, PASSING | NO_LINK, dir_fd=fd)


def _way_error(exc: OSError, name: str, fd: int, at: Path, path: Path) -> Exception:
    """What it means that a folder on the way could not be entered."""
    if exc.errno == errno.ENOENT:
        return NotFound(f"there is no {str(path)!r}", hint=f"there is no folder {str(at)!r} either")
    if exc.errno in (errno.ELOOP, errno.ENOTDIR):
        with suppress(OSError):
            if not stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                return NotFound(f"there is no {str(path)!r}", hint=f"{str(at)!r} is not a folder")
        return _exchanged(path)
    return Downstream(f"{str(path)!r} could not be reached: {exc.strerror}")


def _status(at: _Folder, path: Path, *, missing_ok: bool = False) -> os.stat_result | None:
    try:
        return os.stat(at.name(path), dir_fd=at.fd, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError) as exc:
        if missing_ok:
            return None
        raise NotFound(f"there is no {str(path)!r}") from exc
    except OSError as exc:
        raise Downstream(f"{str(path)!r} could not be opened: {exc.strerror}") from exc


def _open(at: _Folder, path: Path, flags: int, *, mode: int = 0o600) -> int:
    try:
        return os.open(at.name(path), flags | NO_LINK, mode, dir_fd=at.fd)
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise _exchanged(path) from exc
        if exc.errno == errno.ENOENT:
            raise NotFound(f"there is no {str(path)!r}") from exc
        raise Downstream(f"{str(path)!r} could not be opened: {exc.strerror}") from exc


def _check_ordinary(status: os.stat_result | None, path: Path) -> None:
    assert status is not None
    if stat.S_ISLNK(status.st_mode):
        raise _exchanged(path)
    if not stat.S_ISREG(status.st_mode):
        raise Downstream(f"{str(path)!r} is {KINDS.get(stat.S_IFMT(status.st_mode), 'no ordinary file')}")


def _check_may_go(status: os.stat_result | None, path: Path) -> None:
    """Whether another file may take the place of what is there."""
    if status is None:
        return
    _check_ordinary(status, path)
    if status.st_mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH):
        raise Downstream(f"{str(path)!r} may be executed, and is not replaced", hint="use another name")


def _mark(fd: int, attributes: Mapping[str, bytes]) -> None:
    if sys.platform == "linux":
        for name, value in attributes.items():
            # Not every file system has them.
            with suppress(OSError):
                os.setxattr(fd, name, value)


def _check_place(status: os.stat_result, path: Path) -> None:
    """For systems without calls relative to a folder."""
    if os.path.realpath(path) != str(path) or not os.path.samestat(status, os.lstat(path)):
        raise _exchanged(path)


def _exchanged(path: Path) -> Denied:
    return Denied(
        f"{str(path)!r} has become a link, or goes through one, since the call was judged",
        hint="call again to have it judged anew",
        details={"rule": "effects:exchanged"},
    )


def _changed(path: Path) -> Downstream:
    return Downstream(
        f"{str(path)!r} was changed by somebody else in the meantime",
        hint="nothing was written; read it again and repeat the change",
        details={"reason": "stale"},
    )


def _sibling(path: Path) -> Path:
    # A name has at most 255 bytes.
    beginning = os.fsdecode(os.fsencode(path.name)[:200])
    return path.with_name(f".{beginning}.{secrets.token_hex(6)}")


def _write_all(fd: int, data: bytes | memoryview) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _has_holes(status: os.stat_result) -> bool:
    """Whether a file takes less of the disk than it is long."""
    return sys.platform != "win32" and status.st_blocks * STAT_BLOCK < status.st_size


def _write_around_holes(fd: int, data: bytes) -> None:
    """Write what is not empty, and leave holes for the rest."""
    view = memoryview(data)
    for at in range(0, len(data), HOLE):
        piece = view[at : at + HOLE]
        if bytes(piece).count(0) < len(piece):
            os.lseek(fd, at, os.SEEK_SET)
            _write_all(fd, piece)
    os.ftruncate(fd, len(data))


@dataclass(slots=True)
class _Draft:
    """An open new file. `name` is its hidden one, None while it has none: then it ends with this process, whatever happens."""

    at: _Folder
    fd: int
    name: Path | None

    def put(self, path: Path, *, overwrite: bool) -> None:
        """Give it this name in its folder: in place of what has it, or where nothing has."""
        if overwrite or sys.platform == "win32":
            if self.name is None:
                # Only a name can take the place of another: it is there for that moment.
                hidden = _sibling(path)
                self._link(hidden)
                self.name = hidden
            os.replace(self.at.name(self.name), self.at.name(path), src_dir_fd=self.at.fd, dst_dir_fd=self.at.fd)
            self.name = None
            return
        try:
            self._link(path)
        except FileExistsError as exc:
            raise Downstream(f"{str(path)!r} is there already", hint="nothing was changed") from exc

    def forget(self) -> None:
        """Take away its hidden name, if it has one."""
        if self.name is not None:
            with suppress(OSError):
                os.unlink(self.at.name(self.name), dir_fd=self.at.fd)

    def _link(self, path: Path) -> None:
        if self.name is None:
            os.link(f"/proc/self/fd/{self.fd}", self.at.name(path), dst_dir_fd=self.at.fd, follow_symlinks=True)
        else:
            os.link(self.at.name(self.name), self.at.name(path), src_dir_fd=self.at.fd, dst_dir_fd=self.at.fd)


@contextmanager
def _draft(at: _Folder, path: Path, *, mode: int) -> Generator[_Draft, None, None]:
    """A new file in the folder of `path`, to be put there. Nothing of it is left where it was not."""
    draft = _nameless(at, mode) or _hidden(at, path, mode)
    try:
        yield draft
    finally:
        draft.forget()
        os.close(draft.fd)


def _nameless(at: _Folder, mode: int) -> _Draft | None:
    """A file that a killed process does not leave behind; None where the system or the file system has none."""
    if sys.platform != "linux" or not os.path.exists("/proc/self/fd"):
        return None
    try:
        return _Draft(at, os.open(".", os.O_TMPFILE | os.O_WRONLY | QUIET, mode, dir_fd=at.fd), None)
    # What stands in the way of a hidden one, too, is told by it.
    except OSError:
        return None


def _hidden(at: _Folder, path: Path, mode: int) -> _Draft:
    partial = _sibling(path)
    return _Draft(at, _open(at, partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | QUIET, mode=mode), partial)
