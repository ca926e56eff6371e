"""Partial downloads in Handrail's own cache, so that an interrupted download continues where it stopped.

A part is only kept with a validator for the server's version of the file, and is used by one call at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from handrail.fs.file_locks import try_lock

KEPT_DAYS = 7
KEPT_BYTES = 2_000_000_000
READ_BLOCK = 1_048_576
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class PartVersion:
    """Version of a server's file to which a part belongs.

    `validator` goes into If-Range; `total` is the size of the complete file, if known. A part is only valid until the
    next `boot`: data that had not reached the disk when the machine went down may be missing in the middle.
    """

    validator: str
    total: int | None
    boot: str = ""


class PartFile:
    """The beginning of one file. Its note is there only while it can be gone on with."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path
        self._note = path.with_suffix(".json")
        self.version = _read_note(self._note)
        self.size = os.fstat(fd).st_size
        if self.version is None or (self.version.total is not None and self.size > self.version.total):
            self.begin(None)

    @property
    def folder(self) -> Path:
        """The file that holds it."""
        return self._path.parent

    def begin(self, version: PartVersion | None) -> None:
        """Start over with a file of this version; None for one that cannot be resumed."""
        self._note.unlink(missing_ok=True)
        os.ftruncate(self._fd, 0)
        self.size, self.version = 0, version
        if version is not None:
            self._note.write_text(json.dumps({**asdict(version), "boot": _read_boot_id()}))

    def add(self, data: bytes) -> None:
        """Append data to the part."""
        left = memoryview(data)
        while left:
            written = os.pwrite(self._fd, left, self.size)
            self.size += written
            left = left[written:]

    def blocks(self) -> Iterator[bytes]:
        """Yield the complete part from its beginning, in blocks."""
        at = 0
        while block := os.pread(self._fd, READ_BLOCK, at):
            yield block
            at += len(block)

    def forget(self) -> None:
        """Delete the part."""
        self.begin(None)
        self._path.unlink(missing_ok=True)


@contextmanager
def open_part(folder: Path, key: str) -> Generator[PartFile, None, None]:
    """Open the part of the file identified by `key`, for one call at a time; a part that cannot be resumed is deleted.

    If another call uses the part, a separate one is opened, and deleted at the end.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    prune_parts(folder)
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()}.part"
    fd = _open_locked(path)
    alone = fd is not None
    if fd is None:
        # Another call is at the same file: this one has a part of its own, which nobody will go on with.
        path = path.with_suffix(f".{secrets.token_hex(6)}.part")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        part = PartFile(fd, path)
        try:
            yield part
        finally:
            if not alone or part.version is None or part.size == 0:
                part.forget()
    finally:
        os.close(fd)


def prune_parts(folder: Path, *, days: float = KEPT_DAYS, most: int = KEPT_BYTES) -> None:
    """Delete the parts that have not been used for `days` days, and the oldest if all exceed `most` bytes."""
    found: list[tuple[float, int, Path]] = []
    for path in folder.glob("*.part"):
        with suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    kept, limit = 0, time.time() - days * 86_400
    for changed, size, path in sorted(found, reverse=True):
        kept += size
        if changed < limit or kept > most:
            _remove_part(path)


def _remove_part(path: Path) -> None:
    with suppress(OSError):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            # One that is in use stays.
            if try_lock(fd):
                path.with_suffix(".json").unlink(missing_ok=True)
                path.unlink()
        finally:
            os.close(fd)


def _open_locked(path: Path) -> int | None:
    """Open and lock the file; None if another call holds the lock.

    The kernel releases the lock when the process ends, however it ends.
    """
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if not try_lock(fd):
            os.close(fd)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), path.stat()):
                return fd
        # Somebody has forgotten it between the opening and the lock.
        os.close(fd)


def _read_note(file: Path) -> PartVersion | None:
    try:
        version = PartVersion(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return version if version.boot == _read_boot_id() else None


def _read_boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
