"""The way to a judged path: down from the root folder by folder, each held open, and through no link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from handrail.errors import Denied, Downstream, NotFound

# Opens a folder only to open what is in it, which needs no right to list it.
PATH_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# A pipe or a terminal must neither be waited for nor become ours.
SAFE_OPEN_FLAGS = (
    getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
LIST_FLAGS = os.O_RDONLY | SAFE_OPEN_FLAGS | getattr(os, "O_DIRECTORY", 0)
HAS_DIR_FD = os.open in os.supports_dir_fd

FILE_KIND_NAMES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


@dataclass(frozen=True, slots=True)
class HeldFolder:
    """Open directory for calls relative to it.

    On systems without such calls it has no descriptor, and full paths are used.
    """

    fd: int | None

    def name(self, path: Path) -> str:
        return str(path) if self.fd is None else path.name

    def name_for_attributes(self, path: Path) -> str:
        """Return the name for calls that do not accept a directory descriptor."""
        return str(path) if self.fd is None else f"/proc/self/fd/{self.fd}/{path.name}"

    def settle(self) -> None:
        """Make sure that a change of names survives a crash."""
        if self.fd is not None:
            readable = os.open(".", os.O_RDONLY | PATH_FLAGS & ~getattr(os, "O_PATH", 0), dir_fd=self.fd)
            try:
                os.fsync(readable)
            finally:
                os.close(readable)


@contextmanager
def hold_parent_folder(path: Path, *, create_dirs: bool = False) -> Generator[HeldFolder, None, None]:
    """Yield the directory of a judged path, reached from the root without following symlinks.

    On an error, the directories created on the way are removed again.
    """
    if not HAS_DIR_FD:
        if create_dirs:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield HeldFolder(None)
        return
    if not path.is_absolute() or ".." in path.parts or not path.name:
        raise Denied(f"{str(path)!r} is not a path that was judged")
    fd = os.open(path.anchor, PATH_FLAGS)
    made: list[tuple[int, str]] = []
    try:
        for index, name in enumerate(path.parts[1:-1], start=2):
            try:
                below = _open_subfolder(name, fd, made if create_dirs else None)
            except OSError as exc:
                raise _convert_walk_error(exc, name, fd, Path(*path.parts[:index]), path) from exc
            os.close(fd)
            fd = below
        yield HeldFolder(fd)
        for parent, _ in made:
            HeldFolder(parent).settle()
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


def _open_subfolder(name: str, fd: int, made: list[tuple[int, str]] | None) -> int:
    """Open a directory in another one.

    If `made` is given, a missing directory is created and recorded in `made` with a descriptor of its parent.
    """
    try:
        return os.open(name, PATH_FLAGS | NO_FOLLOW, dir_fd=fd)
    except FileNotFoundError:
        if made is None:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=fd)
            made.append((os.dup(fd), name))
        return os.open(name, PATH_FLAGS | NO_FOLLOW, dir_fd=fd)


def _convert_walk_error(exc: OSError, name: str, fd: int, at: Path, path: Path) -> Exception:
    """Return the error for a directory on the way to `path` that could not be entered."""
    if exc.errno == errno.ENOENT:
        return NotFound(f"there is no {str(path)!r}", hint=f"there is no folder {str(at)!r} either")
    if exc.errno in (errno.ELOOP, errno.ENOTDIR):
        with suppress(OSError):
            if not stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                return NotFound(f"there is no {str(path)!r}", hint=f"{str(at)!r} is not a folder")
        return path_exchanged_error(path)
    return Downstream(f"{str(path)!r} could not be reached: {exc.strerror}")


def read_status(at: HeldFolder, path: Path, *, missing_ok: bool = False) -> os.stat_result | None:
    """Return the status of a file without following symlinks; None if it is missing and `missing_ok` is set."""
    try:
        return os.stat(at.name(path), dir_fd=at.fd, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError) as exc:
        if missing_ok:
            return None
        raise NotFound(f"there is no {str(path)!r}") from exc
    except OSError as exc:
        raise Downstream(f"{str(path)!r} could not be opened: {exc.strerror}") from exc


def open_file_at(at: HeldFolder, path: Path, flags: int, *, mode: int = 0o600) -> int:
    """Return a descriptor of a file in an open directory, never of one behind a symlink."""
    try:
        return os.open(at.name(path), flags | NO_FOLLOW, mode, dir_fd=at.fd)
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise path_exchanged_error(path) from exc
        if exc.errno == errno.ENOENT:
            raise NotFound(f"there is no {str(path)!r}") from exc
        raise Downstream(f"{str(path)!r} could not be opened: {exc.strerror}") from exc


def check_regular_file(status: os.stat_result | None, path: Path) -> None:
    """Raise an error unless the status is that of a regular file."""
    assert status is not None
    if stat.S_ISLNK(status.st_mode):
        raise path_exchanged_error(path)
    if not stat.S_ISREG(status.st_mode):
        raise Downstream(f"{str(path)!r} is {FILE_KIND_NAMES.get(stat.S_IFMT(status.st_mode), 'no ordinary file')}")


def check_path_unchanged(status: os.stat_result, path: Path) -> None:
    """Raise an error if a path has another file behind it now, on systems without calls relative to a directory."""
    if os.path.realpath(path) != str(path) or not os.path.samestat(status, os.lstat(path)):
        raise path_exchanged_error(path)


def path_exchanged_error(path: Path) -> Denied:
    """Return the error for a path that no longer leads where it did when it was judged."""
    return Denied(
        f"{str(path)!r} has become a link, or goes through one, since the call was judged",
        hint="call again to have it judged anew",
        details={"rule": "effects:exchanged"},
    )
