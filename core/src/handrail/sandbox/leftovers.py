"""Rename what sandboxed commands have left, in folders that they may have closed to their owner."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

ASIDE_SUFFIX = ".handrail-aside"
# The ends of names that were given here.
ENDINGS = re.compile(rf"{re.escape(ASIDE_SUFFIX)}(?:-[0-9a-f]{{16}})?$")
# Names with a part that cannot be guessed are tried this often.
MAX_TRIES = 5
# Bytes in a name, where the file system does not say.
NAME_MAX = 255
FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# All that an owner may do in a folder.
OWNER_RIGHTS = stat.S_IRWXU


def rename_aside(place: Path, roots: Sequence[Path]) -> Path | None:
    """Give a place below a root another name in its folder, which is reached without following a link.

    Returns where it is then; None if it has the old name still.
    """
    root = next((root for root in roots if place.is_relative_to(root) and place != root), None)
    if root is None:
        return None
    try:
        with open_folder(place.parent, root) as folder:
            for name in _iter_aside_names(place.name, folder):
                if not _is_name_taken(name, folder):
                    os.rename(place.name, name, src_dir_fd=folder, dst_dir_fd=folder)
                    return place.with_name(name)
    except (OSError, NotImplementedError):
        return None
    return None


def is_aside(file: Path) -> bool:
    """Return True for an ordinary file with a name that `rename_aside` gives: what obeys it all the same would obey it by any name."""
    if ENDINGS.search(file.name) is None:
        return False
    try:
        return stat.S_ISREG(os.lstat(file).st_mode)
    except OSError:
        return False


@contextlib.contextmanager
def open_folder(path: Path, root: Path) -> Generator[int]:
    """Give a descriptor of a folder at or below `root`, reached without following a link below it.

    Folders on the way that are closed to their owner, who runs this, are open until the block ends. Raises OSError.
    """
    with contextlib.ExitStack() as opened:
        folder = _open_subfolder(root, None, opened)
        for name in path.relative_to(root).parts:
            folder = _open_subfolder(name, folder, opened)
        yield folder


def open_up_folder(path: Path, root: Path, later: contextlib.ExitStack) -> None:
    """Give a folder at or below `root` the mode with which its owner, who runs this, can list it, until `later` is closed. Raises OSError.

    No descriptor is kept: there may be any number of such folders.
    """
    before = os.lstat(path)
    with contextlib.ExitStack() as closing:
        with open_folder(path, root) as folder:
            kept = os.dup(folder)
            closing.callback(os.close, kept)
        # The block has given it its mode back.
        os.fchmod(kept, stat.S_IMODE(before.st_mode) | OWNER_RIGHTS)
    later.callback(_restore_folder_mode, path, root, before)


def _restore_folder_mode(path: Path, root: Path, before: os.stat_result) -> None:
    with contextlib.suppress(OSError, NotImplementedError), open_folder(path, root) as folder:
        found = os.fstat(folder)
        if os.path.samestat(found, before):
            os.fchmod(folder, stat.S_IMODE(before.st_mode))


def is_folder_closed(found: os.stat_result) -> bool:
    """Return True if the mode of this user's folder keeps it from being listed or entered."""
    return found.st_mode & 0o500 != 0o500 and found.st_uid == os.geteuid()


def is_present_or_unknown(place: Path) -> bool:
    """Return True if something is at a place, or if that is unknown."""
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _open_subfolder(name: str | Path, parent: int | None, opened: contextlib.ExitStack) -> int:
    try:
        folder = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    except PermissionError:
        folder = _open_closed_folder(name, parent, opened)
    opened.callback(os.close, folder)
    found = os.fstat(folder)
    if found.st_mode & OWNER_RIGHTS != OWNER_RIGHTS and found.st_uid == os.geteuid():
        os.fchmod(folder, stat.S_IMODE(found.st_mode) | OWNER_RIGHTS)
        opened.callback(_restore_mode, os.dup(folder), found.st_mode)
    return folder


def _open_closed_folder(name: str | Path, parent: int | None, opened: contextlib.ExitStack) -> int:
    """Open a folder whose owner may not list it."""
    if not hasattr(os, "O_PATH"):
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        os.chmod(name, stat.S_IMODE(mode) | OWNER_RIGHTS, dir_fd=parent, follow_symlinks=False)
        folder = os.open(name, FOLDER_FLAGS, dir_fd=parent)
        opened.callback(_restore_mode, os.dup(folder), mode)
        return folder
    # Such a descriptor needs no permission, and its name in /proc leads to that folder whatever the name becomes.
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        mode = os.fstat(handle).st_mode
        at = f"/proc/self/fd/{handle}"
        os.chmod(at, stat.S_IMODE(mode) | OWNER_RIGHTS)
        folder = os.open(at, FOLDER_FLAGS & ~os.O_NOFOLLOW)
    finally:
        os.close(handle)
    opened.callback(_restore_mode, os.dup(folder), mode)
    return folder


def _restore_mode(folder: int, mode: int) -> None:
    """Give a folder its mode back, and close the descriptor."""
    try:
        with contextlib.suppress(OSError):
            os.fchmod(folder, stat.S_IMODE(mode))
    finally:
        os.close(folder)


def _iter_aside_names(name: str, folder: int) -> Iterator[str]:
    """Yield names to try: the plain one, then some with an unguessable part, which no one can have taken in advance."""
    room = _max_name_bytes(folder)
    yield _truncate_name(name, room - len(ASIDE_SUFFIX)) + ASIDE_SUFFIX
    for _ in range(MAX_TRIES):
        ending = f"{ASIDE_SUFFIX}-{secrets.token_hex(8)}"
        yield _truncate_name(name, room - len(ending)) + ending


def _max_name_bytes(folder: int) -> int:
    try:
        return min(os.fpathconf(folder, "PC_NAME_MAX"), NAME_MAX)
    except (OSError, ValueError):
        return NAME_MAX


def _truncate_name(name: str, size: int) -> str:
    """Return as many complete characters of a name as fit into `size` bytes."""
    whole = os.fsencode(name)
    return name if len(whole) <= size else whole[:size].decode("utf-8", "ignore")


def _is_name_taken(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True
