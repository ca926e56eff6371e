"""A survey of the workspace: what a sandboxed command must not read (secrets) or not change (what other programs run unasked).

Folders are listed nearest first, and again only when they changed. Packages of other people are not looked into. There are bounds, and none of
them is silent: `Found.unsurveyed` names folders beyond them. In folders known to be there that could not be listed whole, the names that
programs obey are looked up one by one, whatever else is in them.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from handrail.files import known_places, paths
from handrail.sandboxing import repositories

# A first look at 5,000 folders with 100,000 names takes a quarter of a second of a processor; the next ones stat the folders alone, which
# takes 5 µs each.
MAX_FOLDERS = 5_000
MAX_NAMES = 200_000
# Names listed in one folder.
MAX_IN_FOLDER = 100_000
MAX_DEPTH = 60
# Folders beyond these bounds in which well-known names are looked up.
MAX_LOOKED_UP = 500
# How many folders beyond the bounds are named.
MAX_NAMED = 10
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
    """Secrets, and places that programs run or obey unasked with what they stand for; a place may be both.

    `unsurveyed` names some of the folders that were not listed whole; it is empty if the whole workspace was surveyed. `began` is when the
    survey began, in nanoseconds of the clock that files are stamped with.
    """

    secrets: tuple[Path, ...]
    autorun: Mapping[Path, Identity]
    unsurveyed: tuple[str, ...] = ()
    began: int = 0

    @property
    def whole(self) -> bool:
        """True if no bound was reached."""
        return not self.unsurveyed


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder as it was listed. `looked`: when, by the clock that its time of change is of; that time cannot be set by a program.

    `whole` is false if it was not listed to its end, and then well-known names were looked up in it.
    """

    changed: int
    looked: int
    secrets: tuple[Path, ...]
    autorun: tuple[Path, ...]
    below: tuple[str, ...]
    names: int
    whole: bool = True


class Survey:
    """Surveys the same folders again and again."""

    def __init__(self) -> None:
        self._known: dict[str, _Folder] = {}

    def covers(self, folder: str) -> bool:
        """True if the whole folder was listed when the roots were last surveyed."""
        known = self._known.get(folder)
        return known is not None and known.whole

    def look(self, roots: Iterable[Path]) -> Found:
        """Return what there is now below the roots (real paths)."""
        began = time.time_ns()
        known: dict[str, _Folder] = {}
        waiting = deque((str(root), 0) for root in roots)
        missed: list[str] = []
        names = 0
        while waiting and len(known) < MAX_FOLDERS and names < MAX_NAMES:
            path, depth = waiting.popleft()
            if path in known or (folder := self._folder(path)) is None:
                continue
            known[path] = folder
            names += folder.names
            if not folder.whole:
                missed.append(path)
            if depth < MAX_DEPTH:
                waiting.extend((below, depth + 1) for below in folder.below)
            else:
                missed += folder.below
        beyond = list(dict.fromkeys((*(path for path, _ in waiting), *missed)))
        for path in beyond[:MAX_LOOKED_UP]:
            if path not in known and (folder := self._folder(path, listing=False)) is not None:
                known[path] = folder
        # What was found once is not lost behind folders that were made later.
        for path, before in self._known.items():
            if path not in known and (before.secrets or before.autorun) and (folder := self._folder(path)) is not None:
                known[path] = folder
        self._known = known
        secrets = tuple(dict.fromkeys(secret for folder in known.values() for secret in folder.secrets))
        autorun = {place: identity for f in known.values() for place in f.autorun if (identity := stands_for(place))}
        return Found(secrets, autorun, tuple(beyond[:MAX_NAMED]), began)

    def _folder(self, path: str, *, listing: bool = True) -> _Folder | None:
        try:
            changed = os.stat(path).st_ctime_ns
        except OSError:
            return None
        before = self._known.get(path)
        if (
            before is not None
            and before.changed == changed
            and before.looked - changed > SETTLED_NS
            and (before.whole or not listing or before.names > MAX_IN_FOLDER)
        ):
            return before
        return _listed(path, changed) if listing else _looked_up(path, changed, names=0)


def stands_for(place: Path) -> Identity | None:
    """Return what a name stands for now, without following it; None if there is nothing."""
    try:
        found = os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def was_there(place: Path, before: Found) -> bool:
    """True if a place that a survey did not find may have been there all the same: the survey was not whole, and it has not changed since."""
    if before.whole:
        return False
    try:
        return os.lstat(place).st_ctime_ns < before.began - SETTLED_NS
    except OSError:
        return False


def _listed(path: str, changed: int) -> _Folder | None:
    looked = time.time_ns()
    secrets: list[Path] = []
    autorun: list[Path] = []
    below: list[str] = []
    inside: set[str] = set()
    names = 0
    near = os.path.basename(path)
    # In such a folder every name counts.
    everything = known_places.is_notable(near)
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                names += 1
                if names > MAX_IN_FOLDER:
                    return _looked_up(path, changed, names=names)
                name = entry.name
                if name in repositories.INSIDE:
                    inside.add(name)
                if (everything or known_places.is_notable(name)) and _sort(entry.path, name, near, secrets, autorun):
                    continue
                if name not in SKIPPED and entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
    except OSError:
        return None
    if repositories.bare(inside):
        autorun.append(Path(path))
    return _Folder(changed, looked, tuple(secrets), tuple(autorun), tuple(below), names)


def _looked_up(path: str, changed: int, *, names: int) -> _Folder:
    """The folder as far as well-known names tell, each looked up by itself."""
    looked = time.time_ns()
    secrets: list[Path] = []
    autorun: list[Path] = []
    near = os.path.basename(path)
    for place in known_places.PLACES_BY_NAME:
        at = f"{path}/{place}"
        if os.path.lexists(at):
            folder, _, name = place.rpartition("/")
            _sort(at, name, os.path.basename(folder) or near, secrets, autorun)
    if repositories.bare({name for name in repositories.INSIDE if os.path.lexists(f"{path}/{name}")}):
        autorun.append(Path(path))
    return _Folder(changed, looked, tuple(secrets), tuple(autorun), (), names, whole=False)


def _sort(path: str, name: str, near: str, secrets: list[Path], autorun: list[Path]) -> bool:
    """Put one name where it belongs, which may be both lists; False if it belongs to neither.

    Some places are told by the folder they are in (`.cargo/config.toml`).
    """
    together = f"{near}/{name}"
    secret = paths.secret(name) is not None or paths.secret(together) is not None
    obeyed = paths.autorun(PurePosixPath(name)) is not None or paths.autorun(PurePosixPath(together)) is not None
    if secret:
        # A link is as good as what it leads to.
        secrets.append(Path(os.path.realpath(path)))
    if obeyed:
        autorun.append(Path(path))
    return secret or obeyed
