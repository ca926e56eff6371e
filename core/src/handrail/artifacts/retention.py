"""Retention of past sessions' data. Files of a running session, in any process, are never deleted."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from handrail.artifacts.store import LOCK_FILE
from handrail.config.settings import Settings
from handrail.errors import HandrailError
from handrail.fs.app_dirs import AppDirs
from handrail.fs.file_locks import try_lock
from handrail.fs.tree_removal import remove_tree
from handrail.workers.registry import ProcessRegistry

DAY_S = 86_400.0
# A session that begins makes its folder before it can lock it.
MIN_AGE_S = 60.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredItem:
    """A file, or a folder with its files, of a past session. `at`: when it was last written, unix time in seconds."""

    path: Path
    at: float
    size: int


def prune_sessions(places: AppDirs, settings: Settings) -> None:
    """Take out of both folders what is not to be kept any longer."""
    kept = settings.artifacts
    prune_artifacts(places.artifacts, days=kept.keep_days, most=kept.keep_bytes)
    kept = settings.audit
    prune_audit(places.audit, days=kept.keep_days, most=kept.keep_bytes)
    # Whoever reads the ledger takes out what is gone. A file that is none of its own is told by `handrail uninstall`.
    with contextlib.suppress(HandrailError):
        ProcessRegistry(places.state).all()


def prune_artifacts(folder: Path, *, days: float, most: int) -> int:
    """Take out what past sessions left in `folder`: what is older than `days`, then the oldest while all is more than `most` bytes. How many went."""
    return _prune_items(list(_list_session_folders(folder)), days=days, most=most)


def prune_audit(folder: Path, *, days: float, most: int) -> int:
    """Delete audit files like `prune_artifacts`, each separately; a file is locked while its last writer lives."""
    return _prune_items(list(_list_files(folder, ".jsonl")), days=days, most=most)


def _prune_items(kept: list[StoredItem], *, days: float, most: int) -> int:
    now, gone = time.time(), 0
    total = sum(each.size for each in kept)
    for each in sorted(kept, key=lambda each: each.at):
        old = now - each.at > days * DAY_S
        if not old and total <= most:
            break
        if now - each.at > MIN_AGE_S and _delete_unlocked(each.path):
            gone += 1
            total -= each.size
    return gone


def _delete_unlocked(path: Path) -> bool:
    """Delete it, unless somebody holds its lock; whether it is gone."""
    lock = path / LOCK_FILE if path.is_dir() else path
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        descriptor = None
    except OSError:
        return False
    try:
        if descriptor is not None and not try_lock(descriptor):
            log.debug("%s stays: a living session holds it", path)
            return False
        if path.is_dir():
            remove_tree(path)
        else:
            path.unlink()
    # Not ours to delete.
    except OSError as exc:
        log.debug("%s stays: %s", path, exc)
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return True


def _list_session_folders(folder: Path) -> Iterator[StoredItem]:
    """Yield the subfolders of the folder; symlinks are not followed, since their targets are not ours to delete."""
    for entry in _scan_folder(folder):
        if entry.is_dir(follow_symlinks=False):
            files = list(_list_files(Path(entry.path)))
            newest = max((file.at for file in files), default=entry.stat(follow_symlinks=False).st_mtime)
            yield StoredItem(Path(entry.path), newest, sum(file.size for file in files))


def _list_files(folder: Path, suffix: str = "") -> Iterator[StoredItem]:
    for entry in _scan_folder(folder):
        # It may go while it is looked at: another session prunes, too.
        with contextlib.suppress(FileNotFoundError):
            if entry.name.endswith(suffix) and entry.is_file(follow_symlinks=False):
                found = entry.stat(follow_symlinks=False)
                yield StoredItem(Path(entry.path), found.st_mtime, found.st_size)


def _scan_folder(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError as exc:
        log.warning("%s cannot be looked through: %s", folder, exc)
        return []
