"""Reading one file and keeping what is in it, so that what is kept is what the file held at one time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys

from handrail.files.drafts import write_all
from handrail.files.holding import NO_LINK, QUIET
from handrail.undo.states import PathKind, PathState, state_of
from handrail.undo.store import INLINE_BYTES, StoreFull, UndoStore

# ioctl of Linux: share the blocks of another file (btrfs, XFS, bcachefs).
FICLONE = 0x40049409
# A file that is being written is read so often.
TRIES = 3
PIECE = 1_048_576

TOO_LARGE = "it is larger than undo.max_file_bytes"
BUSY = "it was written to while it was copied"


def kept_file(store: UndoStore, folder: int, name: str, *, now: int) -> PathState | None:
    """The state of an ordinary file in an open folder, its contents kept; None where it is gone. `why` says why contents are not kept."""
    for _ in range(TRIES):
        try:
            descriptor = os.open(name, os.O_RDONLY | NO_LINK | QUIET, dir_fd=folder)
        except OSError as exc:
            return _unreadable(folder, name, now, exc)
        try:
            state = _kept_open(store, descriptor, now)
        except OSError as exc:
            return _unreadable(folder, name, now, exc)
        finally:
            os.close(descriptor)
        if state is not None:
            return state
    return _unreadable(folder, name, now, None)


def _unreadable(folder: int, name: str, now: int, exc: OSError | None) -> PathState | None:
    """The state of a file whose contents are not to be had."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    state = state_of(status, now=now)
    if state.kind is PathKind.LINK:
        return link_state(folder, name, state)
    why = BUSY if exc is None else f"it cannot be read: {exc.strerror}"
    return state._replace(why=why) if state.kind is PathKind.FILE else state


def link_state(folder: int, name: str, state: PathState) -> PathState | None:
    """The state of a link with its target; None where it is gone."""
    try:
        return state._replace(target=os.fsencode(os.readlink(name, dir_fd=folder)))
    except OSError:
        return None


def _kept_open(store: UndoStore, descriptor: int, now: int) -> PathState | None:
    """The state of an open file; None where it changed while it was read."""
    before = os.fstat(descriptor)
    state = state_of(before, now=now)
    if not stat.S_ISREG(before.st_mode):
        return state
    if before.st_size > store.settings.max_file_bytes:
        return state._replace(why=TOO_LARGE)
    try:
        if before.st_size <= INLINE_BYTES:
            digest = _kept_small(store, descriptor, before.st_size)
        else:
            digest = _kept_large(store, descriptor, before)
    except StoreFull as exc:
        return state._replace(why=str(exc))
    after = os.fstat(descriptor)
    same = (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    return state._replace(digest=digest) if digest is not None and same else None


def _kept_small(store: UndoStore, descriptor: int, size: int) -> bytes | None:
    data = os.read(descriptor, INLINE_BYTES + 1)
    if len(data) != size:
        return None
    digest = hashlib.sha256(data).digest()
    if not store.fits(size) and not store.has(digest):
        store.room_for(size)
    store.put(digest, data)
    return digest


def _kept_large(store: UndoStore, descriptor: int, status: os.stat_result) -> bytes | None:
    """A copy as a file of the store: blocks that are shared where the file system can, else bytes."""
    store.room_for(status.st_size)
    draft = store.draft()
    copy = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        digest, size = _digest(copy) if _cloned(descriptor, copy) else _copied(descriptor, copy, status)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    finally:
        os.close(copy)
    if size != status.st_size:
        draft.unlink(missing_ok=True)
        return None
    store.put_file(digest, size, draft)
    return digest


def _cloned(descriptor: int, copy: int) -> bool:
    if sys.platform != "linux":
        return False
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.ioctl(copy, FICLONE, descriptor)
        return True
    return False


def _copied(descriptor: int, copy: int, status: os.stat_result) -> tuple[bytes, int]:
    """Copy so many bytes as the file had, leaving holes where there is nothing; their digest, and how many there were."""
    sparse = status.st_blocks * 512 < status.st_size
    digest, left = hashlib.sha256(), status.st_size
    while left > 0 and (piece := os.read(descriptor, min(PIECE, left))):
        digest.update(piece)
        if sparse and not any(piece):
            os.lseek(copy, len(piece), os.SEEK_CUR)
        else:
            write_all(copy, piece)
        left -= len(piece)
    os.ftruncate(copy, status.st_size - left)
    return digest.digest(), status.st_size - left


def _digest(copy: int) -> tuple[bytes, int]:
    """The digest of a whole file, and its size."""
    digest, size = hashlib.sha256(), 0
    os.lseek(copy, 0, os.SEEK_SET)
    while piece := os.read(copy, PIECE):
        digest.update(piece)
        size += len(piece)
    return digest.digest(), size
