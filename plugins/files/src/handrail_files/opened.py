"""Files opened so that what was named is what is read: once, without waiting, and only ordinary ones."""

from __future__ import annotations

import difflib
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from handrail import Downstream, InvalidArguments, NotFound, paths

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
MAX_NAMES = 2_000


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file: its descriptor, its real path and its size in bytes (0 for those that the kernel makes up)."""

    fd: int
    path: Path
    size: int


@contextmanager
def opened(path: Path, text: str) -> Generator[Opened, None, None]:
    """The ordinary file at a real path, open for reading; `text` is what the call named it.

    Raises `NotFound` for none, and `Downstream` for anything that is not an ordinary file, may not be read, or is not at that path any more.
    """
    # Opening a device or a pipe may already do something.
    _ordinary(_status(path, text), text)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as exc:
        raise Downstream(f"{text!r} could not be opened: {exc.strerror}") from exc
    try:
        status = os.fstat(fd)
        _ordinary(status, text)
        _same_place(fd, path, text)
        yield Opened(fd, path, status.st_size)
    finally:
        os.close(fd)


def real_path(text: str, *, cwd: Path, home: Path) -> paths.Resolved:
    """Where `text` leads now; `InvalidArguments` says why it may not be followed."""
    found = paths.resolve(text, cwd=cwd, home=home, platform=sys.platform)
    if found.refused is not None:
        raise InvalidArguments(f"{text!r} is not followed: {found.refused.text}")
    return found


def _status(path: Path, text: str) -> os.stat_result:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError) as exc:
        raise NotFound(f"there is no file {text!r}", hint=_near(path)) from exc
    except OSError as exc:
        raise Downstream(f"{text!r} could not be opened: {exc.strerror}") from exc


def _ordinary(status: os.stat_result, text: str) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = KINDS.get(stat.S_IFMT(status.st_mode), "no ordinary file")
    hint = "list it with execute_cli `ls`" if kind == "a folder" else "read_file reads ordinary files only"
    raise Downstream(f"{text!r} is {kind}", hint=hint)


def _same_place(fd: int, path: Path, text: str) -> None:
    """A link put in place of a folder between looking and opening would lead elsewhere."""
    if sys.platform == "linux" and os.readlink(f"/proc/self/fd/{fd}") != str(path):
        raise Downstream(f"{text!r} was exchanged while it was opened", hint="try again")


def _near(path: Path) -> str:
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry, _ in zip(entries, range(MAX_NAMES), strict=False)]
    except OSError:
        return f"there is no folder {str(path.parent)!r} either"
    close = difflib.get_close_matches(path.name, names, n=3)
    return f"near it there is {', '.join(close)}" if close else f"{str(path.parent)!r} holds nothing of a similar name"
