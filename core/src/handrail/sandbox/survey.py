"""Survey of the workspace for secrets and for files that programs run unasked.

A sandboxed command must not read the former or change the latter. Directories are listed nearest first, and again only
if they changed. Third-party packages are not searched. No limit is silent: `SurveyResult.unsurveyed` names directories
beyond the limits. In directories known to exist that could not be listed completely, the names that programs obey are
looked up one by one, regardless of what else is there.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from handrail.fs import path_resolution, sensitive_paths
from handrail.sandbox import leftovers

# A first look at 5,000 folders with 100,000 names takes a quarter of a second of a processor; the next ones stat the folders alone, which
# takes 5 µs each.
MAX_FOLDERS = 5_000
MAX_NAMES = 200_000
# Names listed in one folder.
MAX_IN_FOLDER = 100_000
MAX_SURVEY_DEPTH = 60
# Folders beyond these bounds in which well-known names are looked up.
MAX_LOOKED_UP = 500
# How many folders beyond the bounds are named.
MAX_NAMED = 10
# Folders of other people's code, and those that are looked at by themselves.
SKIPPED_FOLDERS = frozenset(
    (
        "node_modules",
        "site-packages",
        "__pycache__",
        ".git",
        ".svn",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
    )
)
# A repository whose folder is listed alone, for the settings that lie in it.
LISTED_ALONE = ".hg"
# A folder that was changed a moment before it was listed may have been changed again in the same tick of the clock.
SETTLED_NS = 50_000_000

# What a name stood for: device, inode.
FileIdentity = tuple[int, int]
PathNames = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SurveyResult:
    """Secrets, and paths that programs run or obey unasked with the identity of each; a path may be both.

    `unsurveyed` names some of the directories that were not listed completely; it is empty if the entire workspace was
    surveyed. `began` is when the survey began, in nanoseconds of the clock used for file timestamps.
    """

    secrets: tuple[Path, ...]
    autorun: Mapping[Path, FileIdentity]
    unsurveyed: tuple[str, ...] = ()
    began: int = 0

    @property
    def whole(self) -> bool:
        """True if no bound was reached."""
        return not self.unsurveyed


@dataclass(frozen=True, slots=True)
class _FolderListing:
    """Listing of one directory.

    `looked` is when it was listed, by the clock of its change time (ctime), which programs cannot set. `whole` is False
    if it was not listed completely; well-known names were then looked up in it.
    """

    changed: int
    looked: int
    secrets: tuple[Path, ...]
    autorun: tuple[Path, ...]
    below: tuple[str, ...]
    names: int
    whole: bool = True


class WorkspaceSurvey:
    """Searcher of the same folders, again and again. Folders of the names `skipped` are not looked into.

    With `read_only`, commands cannot change modes there, and folders that are closed to their owner stay so.
    """

    def __init__(self, skipped: frozenset[str] = SKIPPED_FOLDERS, *, read_only: bool = False) -> None:
        self._known: dict[str, _FolderListing] = {}
        self._skipped = skipped
        self._read_only = read_only

    def covers(self, folder: str) -> bool:
        """Return True if the directory was listed completely in the last survey of the roots."""
        known = self._known.get(folder)
        return known is not None and known.whole

    def look(self, roots: Iterable[Path]) -> SurveyResult:
        """Return what there is now below the roots (real paths)."""
        with contextlib.ExitStack() as opened:
            return self.look_into(tuple(roots), opened)

    def look_into(self, roots: Sequence[Path], opened: contextlib.ExitStack) -> SurveyResult:
        """Return the same, and have folders that are closed to their owner, who runs this, open until `opened` is closed.

        What runs in a sandbox could open them, too.
        """
        began = time.time_ns()
        known: dict[str, _FolderListing] = {}
        waiting = deque((str(root), 0) for root in roots)
        missed: list[str] = []
        names = 0
        while waiting and len(known) < MAX_FOLDERS and names < MAX_NAMES:
            path, depth = waiting.popleft()
            if path in known:
                continue
            if (folder := self._folder(path, roots, opened)) is None:
                missed += [path] if is_folder_kept_back(path) else []
                continue
            known[path] = folder
            names += folder.names
            if not folder.whole:
                missed.append(path)
            if depth < MAX_SURVEY_DEPTH:
                waiting.extend((below, depth + 1) for below in folder.below)
            else:
                missed += folder.below
        beyond = list(dict.fromkeys((*(path for path, _ in waiting), *missed)))
        for path in beyond[:MAX_LOOKED_UP]:
            if path not in known and (folder := self._folder(path, roots, opened, listing=False)) is not None:
                known[path] = folder
        # What was found once is not lost behind folders that were made later.
        for path, before in self._known.items():
            if (
                path not in known
                and (before.secrets or before.autorun)
                and (folder := self._folder(path, roots, opened)) is not None
            ):
                known[path] = folder
        self._known = known
        secrets = tuple(dict.fromkeys(secret for folder in known.values() for secret in folder.secrets))
        autorun = {place: identity for f in known.values() for place in f.autorun if (identity := read_identity(place))}
        return SurveyResult(secrets, autorun, tuple(beyond[:MAX_NAMED]), began)

    def _folder(
        self, path: str, roots: Sequence[Path], opened: contextlib.ExitStack, *, listing: bool = True
    ) -> _FolderListing | None:
        try:
            found = os.stat(path)
            if leftovers.is_folder_closed(found) and not self._read_only:
                open_closed_folder(path, roots, opened)
        except OSError:
            return None
        changed = found.st_ctime_ns
        before = self._known.get(path)
        if (
            before is not None
            and before.changed == changed
            and before.looked - changed > SETTLED_NS
            and (before.whole or not listing or before.names > MAX_IN_FOLDER)
        ):
            return before
        near = get_last_names(path, roots)
        return (
            _list_folder(path, changed, near, self._skipped)
            if listing
            else _look_up_names(path, changed, near, names=0)
        )


def open_closed_folder(path: str, roots: Sequence[Path], opened: contextlib.ExitStack) -> None:
    """Make a directory of this user below the roots accessible, regardless of its mode, until `opened` is closed.

    Raises OSError.
    """
    if os.access(path, os.R_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return
    folder = Path(path)
    root = next((root for root in roots if folder.is_relative_to(root)), folder)
    leftovers.open_up_folder(folder, root, opened)


def is_folder_kept_back(path: str) -> bool:
    """Return True if a directory that could not be listed is owned by this user.

    A sandboxed command could list it, as it runs as the same user.
    """
    try:
        return os.lstat(path).st_uid == os.geteuid()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def read_identity(place: Path) -> FileIdentity | None:
    """Return the identity of what a name refers to now, without following symlinks; None if nothing exists there."""
    try:
        found = os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def was_present_before(place: Path, before: SurveyResult) -> bool:
    """Return True if a path missing from a survey may have existed then.

    That is so if the survey was incomplete and the path has not changed since.
    """
    if before.whole:
        return False
    try:
        return os.lstat(place).st_ctime_ns < before.began - SETTLED_NS
    except OSError:
        return False


def get_last_names(folder: str, roots: Sequence[Path]) -> PathNames:
    """Return the last names of a folder's path, at most from the name of its root on: as many as tell what lies in it."""
    root = next((root for root in roots if folder == str(root) or folder.startswith(f"{root}/")), Path(folder))
    below = tuple(folder[len(str(root)) :].strip("/").split("/")) if folder != str(root) else ()
    # A workspace of that name is not a place as a whole.
    is_place = (
        bool(below)
        and sensitive_paths.is_notable(root.name)
        and (path_resolution.describe_secret(root.name) or path_resolution.describe_autorun(Path(root.name)))
    )
    return (below if is_place else (root.name, *below))[1 - sensitive_paths.MOST_NAMES :]


def _list_folder(path: str, changed: int, near: PathNames, skipped: frozenset[str]) -> _FolderListing | None:
    looked = time.time_ns()
    secrets: list[Path] = []
    autorun: list[Path] = []
    below: list[str] = []
    inside: set[str] = set()
    names = 0
    # In such a folder every name counts.
    everything = sensitive_paths.is_notable(near[-1])
    alone = near[-1] == LISTED_ALONE
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                names += 1
                if names > MAX_IN_FOLDER:
                    return _look_up_names(path, changed, near, names=names)
                name = entry.name
                if name in sensitive_paths.REPOSITORY_NAMES:
                    inside.add(name)
                if (everything or sensitive_paths.is_notable(name)) and _classify_path(
                    entry.path, (*near, name), secrets, autorun
                ):
                    # Some folders that are obeyed keep secrets, too.
                    kept = (
                        name.lower() in sensitive_paths.SECRET_STARTS and path_resolution.describe_secret(name) is None
                    )
                    if kept and entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                    continue
                if name == LISTED_ALONE and entry.is_symlink():
                    autorun.append(Path(entry.path))
                if name not in skipped and not alone and entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
    except OSError:
        return None
    if sensitive_paths.is_repository(inside):
        autorun.append(Path(path))
    if len(near) > 1 and path_resolution.describe_autorun(PurePosixPath(*near)) is not None:
        # It is looked after as a part of the place that is obeyed as a whole.
        autorun.clear()
    return _FolderListing(changed, looked, tuple(secrets), tuple(autorun), tuple(below), names)


def _look_up_names(path: str, changed: int, near: PathNames, *, names: int) -> _FolderListing:
    """Return the listing of a directory based only on looking up well-known names one by one."""
    looked = time.time_ns()
    secrets: list[Path] = []
    autorun: list[Path] = []
    for place in sensitive_paths.PLACES_BY_NAME:
        at = f"{path}/{place}"
        if os.path.lexists(at):
            _classify_path(at, (*near, *place.split("/")), secrets, autorun)
    if sensitive_paths.is_repository(
        {name for name in sensitive_paths.REPOSITORY_NAMES if os.path.lexists(f"{path}/{name}")}
    ):
        autorun.append(Path(path))
    return _FolderListing(changed, looked, tuple(secrets), tuple(autorun), (), names, whole=False)


def _classify_path(path: str, names: PathNames, secrets: list[Path], autorun: list[Path]) -> bool:
    """Add the path with these last names to the lists it fits, possibly both; return False if it fits neither.

    Some paths are recognized by the directories they are in (`.config/sops/age`).
    """
    near = "/".join(names)
    secret = path_resolution.describe_secret(near) is not None
    obeyed = path_resolution.describe_autorun(PurePosixPath(near)) is not None
    if secret:
        # A link is as good as what it leads to.
        secrets.append(Path(os.path.realpath(path)))
    if obeyed:
        autorun.append(Path(path))
    return secret or obeyed
