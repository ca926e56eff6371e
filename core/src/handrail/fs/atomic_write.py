"""Files that are written before they get their name, which keeps readers from finding a partial file."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from handrail.errors import Downstream
from handrail.fs.dirfd_walk import SAFE_OPEN_FLAGS, HeldFolder, open_file_at

# A disk counts in these; of a file with holes, pieces of this size are left out where they are empty.
STAT_BLOCK_BYTES, HOLE_BYTES = 512, 4096


def create_sibling_name(path: Path) -> Path:
    """Return a new hidden name beside a file."""
    # A name has at most 255 bytes.
    beginning = os.fsdecode(os.fsencode(path.name)[:200])
    return path.with_name(f".{beginning}.{secrets.token_hex(6)}")


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of it: the system may take less at once."""
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def has_holes(status: os.stat_result) -> bool:
    """Return True if a file occupies less disk space than its length."""
    return sys.platform != "win32" and status.st_blocks * STAT_BLOCK_BYTES < status.st_size


def write_around_holes(fd: int, data: bytes) -> None:
    """Write what is not empty, and leave holes for the rest."""
    view = memoryview(data)
    for at in range(0, len(data), HOLE_BYTES):
        piece = view[at : at + HOLE_BYTES]
        if bytes(piece).count(0) < len(piece):
            os.lseek(fd, at, os.SEEK_SET)
            write_all(fd, piece)
    os.ftruncate(fd, len(data))


@dataclass(slots=True)
class DraftFile:
    """Open new file.

    `name` is its hidden name, or None while it has none; without a name it always disappears with this process.
    """

    at: HeldFolder
    fd: int
    name: Path | None

    def put(self, path: Path, *, overwrite: bool) -> None:
        """Give it this name in its folder: in place of what has it, or where nothing has."""
        if overwrite or sys.platform == "win32":
            if self.name is None:
                # Only a name can take the place of another: it is there for that moment.
                hidden = create_sibling_name(path)
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
def open_draft(at: HeldFolder, path: Path, *, mode: int) -> Generator[DraftFile, None, None]:
    """Yield a new file in the directory of `path`, to be put there; otherwise it is removed."""
    draft = _open_unnamed_draft(at, mode) or _open_hidden_draft(at, path, mode)
    try:
        yield draft
    finally:
        draft.forget()
        os.close(draft.fd)


def _open_unnamed_draft(at: HeldFolder, mode: int) -> DraftFile | None:
    """Return a file that a killed process does not leave behind.

    None if the system or the file system does not support such files.
    """
    if sys.platform != "linux" or not os.path.exists("/proc/self/fd"):
        return None
    try:
        return DraftFile(at, os.open(".", os.O_TMPFILE | os.O_WRONLY | SAFE_OPEN_FLAGS, mode, dir_fd=at.fd), None)
    # What stands in the way of a hidden one, too, is told by it.
    except OSError:
        return None


def _open_hidden_draft(at: HeldFolder, path: Path, mode: int) -> DraftFile:
    partial = create_sibling_name(path)
    return DraftFile(
        at, open_file_at(at, partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_OPEN_FLAGS, mode=mode), partial
    )
