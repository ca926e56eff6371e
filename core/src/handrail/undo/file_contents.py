"""Reading and keeping a file's content, as it was at a single point in time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys

from handrail.fs.atomic_write import write_all
from handrail.fs.dirfd_walk import NO_FOLLOW, SAFE_OPEN_FLAGS
from handrail.undo.path_states import PathKind, PathState, build_state
from handrail.undo.store import INLINE_BYTES, StoreFull, UndoStore

# ioctl of Linux: share the blocks of another file (btrfs, XFS, bcachefs).
FICLONE_IOCTL = 0x40049409
# A file that is being written is read so often.
MAX_TRIES = 3
COPY_PIECE_BYTES = 1_048_576

TOO_LARGE = "it is larger than undo.max_file_bytes"
BUSY_REASON = "it was written to while it was copied"


def keep_file(store: UndoStore, folder: int, name: str, *, now: int) -> PathState | None:
    """Keep the content of a regular file in an open directory and return its state; None if the file is gone.

    `why` in the state says why the content is not kept.
    """
    for _ in range(MAX_TRIES):
        try:
            descriptor = os.open(name, os.O_RDONLY | NO_FOLLOW | SAFE_OPEN_FLAGS, dir_fd=folder)
        except OSError as exc:
            return _build_unkept_state(folder, name, now, exc)
        try:
            state = _keep_open_file(store, descriptor, now)
        except OSError as exc:
            return _build_unkept_state(folder, name, now, exc)
        finally:
            os.close(descriptor)
        if state is not None:
            return state
    return _build_unkept_state(folder, name, now, None)


def _build_unkept_state(folder: int, name: str, now: int, exc: OSError | None) -> PathState | None:
    """Return the state of a file whose content is not available."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    state = build_state(status, now=now)
    if state.kind is PathKind.LINK:
        return read_link_state(folder, name, state)
    why = BUSY_REASON if exc is None else f"it cannot be read: {exc.strerror}"
    return state._replace(why=why) if state.kind is PathKind.FILE else state


def read_link_state(folder: int, name: str, state: PathState) -> PathState | None:
    """Return the state of a symlink with its target; None if it is gone."""
    try:
        return state._replace(target=os.fsencode(os.readlink(name, dir_fd=folder)))
    except OSError:
        return None


def _keep_open_file(store: UndoStore, descriptor: int, now: int) -> PathState | None:
    """Return the state of an open file with its content kept; None if it changed while it was read."""
    before = os.fstat(descriptor)
    state = build_state(before, now=now)
    if not stat.S_ISREG(before.st_mode):
        return state
    if before.st_size > store.settings.max_file_bytes:
        return state._replace(why=TOO_LARGE)
    try:
        if before.st_size <= INLINE_BYTES:
            digest = _keep_small_file(store, descriptor, before.st_size)
        else:
            digest = _keep_large_file(store, descriptor, before)
    except StoreFull as exc:
        return state._replace(why=str(exc))
    after = os.fstat(descriptor)
    same = (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    return state._replace(digest=digest) if digest is not None and same else None


def _keep_small_file(store: UndoStore, descriptor: int, size: int) -> bytes | None:
    data = os.read(descriptor, INLINE_BYTES + 1)
    if len(data) != size:
        return None
    digest = hashlib.sha256(data).digest()
    if not store.fits(size) and not store.has(digest):
        store.room_for(size)
    store.put(digest, data)
    return digest


def _keep_large_file(store: UndoStore, descriptor: int, status: os.stat_result) -> bytes | None:
    """Copy the content to a file of the store, sharing blocks if the file system can.

    Returns its digest, or None if the file changed while it was copied.
    """
    store.room_for(status.st_size)
    draft = store.draft()
    copy = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        digest, size = _hash_file(copy) if _clone_blocks(descriptor, copy) else _copy_content(descriptor, copy, status)
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


def _clone_blocks(descriptor: int, copy: int) -> bool:
    if sys.platform != "linux":
        return False
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.ioctl(copy, FICLONE_IOCTL, descriptor)
        return True
    return False


def _copy_content(descriptor: int, copy: int, status: os.stat_result) -> tuple[bytes, int]:
    """Copy so many bytes as the file had, leaving holes where there is nothing; their digest, and how many there were."""
    sparse = status.st_blocks * 512 < status.st_size
    digest, left = hashlib.sha256(), status.st_size
    while left > 0 and (piece := os.read(descriptor, min(COPY_PIECE_BYTES, left))):
        digest.update(piece)
        if sparse and not any(piece):
            os.lseek(copy, len(piece), os.SEEK_CUR)
        else:
            write_all(copy, piece)
        left -= len(piece)
    os.ftruncate(copy, status.st_size - left)
    return digest.digest(), status.st_size - left


def _hash_file(copy: int) -> tuple[bytes, int]:
    """Return the digest of a complete file, and its size in bytes."""
    digest, size = hashlib.sha256(), 0
    os.lseek(copy, 0, os.SEEK_SET)
    while piece := os.read(copy, COPY_PIECE_BYTES):
        digest.update(piece)
        size += len(piece)
    return digest.digest(), size
