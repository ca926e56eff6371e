"""Private temp directory for sandboxed commands; deleted when the session ends, including after a crash."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from handrail.fs.file_locks import try_lock
from handrail.fs.tree_removal import remove_tree

__all__ = ["ScratchFolder"]

log = logging.getLogger(__name__)

FOLDER_PREFIX = "handrail-box-"
LOCK_FILE = "owner"
# Left by processes that were killed; the next ones see to them.
MAX_STALE = 20


class ScratchFolder:
    """`temporary` is for the commands, 0700; what `shown` makes is for them to read. It is made in `parent`, else where the system has them."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        if sys.platform != "win32":
            _remove_stale_folders(parent)
        # Under the name that others sweep it appears with its lock held, or they could take it for one that was left.
        made = Path(tempfile.mkdtemp(prefix=f".{FOLDER_PREFIX}", dir=os.path.realpath(parent)))
        self._lock = _try_lock_file(made / LOCK_FILE, create=True)
        self._folder = made.rename(made.with_name(made.name.removeprefix(".")))
        self.temporary = self._folder / "tmp"
        self.temporary.mkdir(mode=0o700)
        self._shown: dict[Path, Path] = {}

    def shown(self, home: Path, git_settings: str) -> Mapping[Path, Path]:
        """Return the files that have different content inside.

        Each maps its path there to the host file that replaces it.
        """
        file = self._folder / "gitconfig"
        if git_settings and home / ".gitconfig" not in self._shown:
            file.write_text(git_settings, encoding="utf-8")
            self._shown[home / ".gitconfig"] = file
        return self._shown

    def stand_in(self, text: str) -> Path:
        """Return a file with this content, outside the private folder. It is written once for each content."""
        file = self._folder / hashlib.sha256(text.encode()).hexdigest()
        if not file.exists():
            file.write_text(text, encoding="utf-8")
        return file

    def close(self) -> None:
        """Remove all of it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        _remove_folder(self._folder)


def is_private_place(place: Path) -> bool:
    """Return True for a place in the private folder of some session, where its commands can exchange anything at any moment."""
    return any(part.startswith(FOLDER_PREFIX) for part in place.parts)


def _remove_stale_folders(parent: Path) -> None:
    """Remove the folders whose owner is gone."""
    with contextlib.suppress(OSError):
        mine = [path for path in parent.glob(f"{FOLDER_PREFIX}*") if path.lstat().st_uid == os.getuid()]
        for folder in mine[:MAX_STALE]:
            lock = _try_lock_file(folder / LOCK_FILE, create=False)
            if lock is not None:
                os.close(lock)
                _remove_folder(folder)


def _try_lock_file(file: Path, *, create: bool) -> int | None:
    """Return a descriptor that holds the file's lock; None if it is locked elsewhere, does not exist, or on Windows."""
    if sys.platform == "win32":
        return None
    try:
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o600)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if try_lock(fd):
            return fd
    os.close(fd)
    return None


def _remove_folder(folder: Path) -> None:
    """Remove a folder whose content may have been made hard to remove; nothing outside it is touched."""
    try:
        remove_tree(folder, force=True)
    except OSError as exc:
        log.warning("%s stays: %s", folder, exc)
