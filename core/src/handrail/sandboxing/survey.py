"""What lies in the workspace that a sandboxed command must not read (secrets) or not change (what other programs run unasked).

Bounded: so many folders and names, nearest first, and what packages bring is not looked into. A folder is listed again only when it changed.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from handrail.files import paths
from handrail.sandboxing import repositories

MAX_FOLDERS = 600
MAX_NAMES = 8_000
MAX_DEPTH = 8
# Folders of other people's code, and those that are looked at by themselves.
SKIPPED = frozenset(
    (
        "node_modules",
        "site-packages",
        "__pycache__",
        ".git",
        ".hg",
        ".svn",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
    )
)
# A folder that was changed a moment before it was listed may have been changed again in the same tick of the clock.
SETTLED_NS = 50_000_000

# What a name stood for: device, inode.
Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Found:
    """Secrets, and places that programs run or obey unasked with what they stand for. `whole` is false when a bound was reached."""

    secrets: tuple[Path, ...]
    autorun: Mapping[Path, Identity]
    whole: bool


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder as it was listed. `looked`: when, by the clock that its time of change is of; that time cannot be set by a program."""

    changed: int
    looked: int
    secrets: tuple[Path, ...]
    autorun: tuple[Path, ...]
    below: tuple[str, ...]
    names: int


class Survey:
    """Looks through the same folders again and again."""

    def __init__(self) -> None:
        self._known: dict[str, _Folder] = {}

    def covers(self, folder: str) -> bool:
        """True if the folder was listed when the roots were last looked at."""
        return folder in self._known

    def look(self, roots: Iterable[Path]) -> Found:
        """What there is now below the roots (real paths)."""
        known: dict[str, _Folder] = {}
        waiting = deque((str(root), 0) for root in roots)
        names, whole = 0, True
        while waiting:
            path, depth = waiting.popleft()
            if len(known) >= MAX_FOLDERS or names >= MAX_NAMES:
                whole = False
                break
            if path in known or (folder := self._folder(path)) is None:
                continue
            known[path] = folder
            names += folder.names
            if depth < MAX_DEPTH:
                waiting.extend((below, depth + 1) for below in folder.below)
            elif folder.below:
                whole = False
        # What was found once is not lost behind folders that were made later.
        for path, before in self._known.items():
            if path not in known and (before.secrets or before.autorun) and (folder := self._folder(path)) is not None:
                known[path] = folder
        self._known = known
        secrets = tuple(dict.fromkeys(secret for folder in known.values() for secret in folder.secrets))
        autorun = {place: identity for f in known.values() for place in f.autorun if (identity := stands_for(place))}
        return Found(secrets, autorun, whole)

    def _folder(self, path: str) -> _Folder | None:
        try:
            changed = os.stat(path).st_ctime_ns
        except OSError:
            return None
        before = self._known.get(path)
        if before is not None and before.changed == changed and before.looked - changed > SETTLED_NS:
            return before
        return _listed(path, changed)


def stands_for(place: Path) -> Identity | None:
    """What a name stands for now, without following it; None when there is nothing."""
    try:
        found = os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _listed(path: str, changed: int) -> _Folder | None:
    looked = time.time_ns()
    secrets: list[Path] = []
    autorun: list[Path] = []
    below: list[str] = []
    inside: set[str] = set()
    names = 0
    near = os.path.basename(path)
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                names += 1
                if names > MAX_NAMES:
                    break
                if entry.name in repositories.INSIDE:
                    inside.add(entry.name)
                _sort(entry, near, secrets, autorun, below)
    except OSError:
        return None
    if repositories.bare(inside):
        autorun.append(Path(path))
    return _Folder(changed, looked, tuple(secrets), tuple(autorun), tuple(below), names)


def _sort(entry: os.DirEntry[str], near: str, secrets: list[Path], autorun: list[Path], below: list[str]) -> None:
    """Put one name where it belongs. Some places are told by the folder they are in (`.cargo/config.toml`)."""
    name, together = entry.name, f"{near}/{entry.name}"
    if paths.secret(name) is not None or paths.secret(together) is not None:
        # A link is as good as what it leads to.
        secrets.append(Path(os.path.realpath(entry.path)))
    elif paths.autorun(PurePosixPath(name)) is not None or paths.autorun(PurePosixPath(together)) is not None:
        autorun.append(Path(entry.path))
    elif name not in SKIPPED and entry.is_dir(follow_symlinks=False):
        below.append(entry.path)
