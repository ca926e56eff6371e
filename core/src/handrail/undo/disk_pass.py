"""One look at the disk: what differs from what was last seen, with the contents of new and changed files kept.

Nothing is followed: folders are opened one below the other, each relative to the one before and none through a link.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import stat
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from handrail.fs.dirfd_walk import LIST_FLAGS, NO_FOLLOW, PATH_FLAGS
from handrail.undo.change_watch import ChangeWatch
from handrail.undo.coverage import OTHER_FILE_SYSTEM, FileCoverage
from handrail.undo.file_contents import TOO_LARGE, keep_file, read_link_state
from handrail.undo.manifest import DiskManifest
from handrail.undo.path_states import ABSENT_STATE, PathChange, PathKind, PathState, are_states_alike, build_state
from handrail.undo.store import NO_ROOM, StoreFull, UndoStore

UNREADABLE_REASON = "the folder cannot be read"
# Deeper folders are left out: nobody works there, and a program that makes them is up to something.
MAX_FOLDER_DEPTH = 100
TOO_DEEP_REASON = "it lies too deep"


class TooManyFiles(Exception):
    """The workspace holds more files than undo keeps."""


class PassStopped(Exception):
    """Raised to end a pass when its result is not needed anymore."""


class KeepCandidate(NamedTuple):
    """File whose content should be kept."""

    folder: str
    name: str
    size: int


@dataclass
class DiskPass:
    """Pass over paths and entire directories that collects differences from the manifest in `found`.

    Use it within a turn and a transaction of the store. `watch`: directories that are listed are watched from then on.
    `stop` ends the pass.
    """

    store: UndoStore
    manifest: DiskManifest
    coverage: FileCoverage
    watch: ChangeWatch | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    found: dict[str, PathState] = field(default_factory=dict[str, PathState])
    # False where what says that a folder is generated may have come from a call.
    trusts_marks: bool = True
    # Unix time in seconds from which on calls may have said that git ignores the folders they make.
    ignored_since: float = math.inf

    def __post_init__(self) -> None:
        self.now = time.time_ns()
        self._candidates: list[KeepCandidate] = []
        self._count = 0
        self._root = ""
        self._device = 0
        self._most = self.store.settings.max_files
        self._every_folder = False
        self._listed: set[str] = set()
        # Why nothing more can be kept; empty as long as there is room.
        self._no_room = ""

    # What to look at

    def whole(self, root: str, *, every_folder: bool = False) -> None:
        """Scan everything below a root.

        With `every_folder`, directories are listed even if their names are known, to have them watched.
        """
        self._every_folder = every_folder
        status = self._begin(root)
        if status is None:
            self._gone(root)
        else:
            self._visit(root, status, self._known(root))

    def known(self, root: str) -> None:
        """Look at what is known of a root and at nothing else: what is new in it is left out, however much that is."""
        known = self._known(root)
        if self._begin(root) is None:
            self._gone(root)
        elif known is not None:
            self._visit_known(root, known)

    def some(self, root: str, folders: Iterable[str]) -> None:
        """Look at these folders below a root, and at files that have to be looked at each time."""
        if self._begin(root) is None:
            self._gone(root)
            return
        waiting = set(folders)
        for folder in sorted(waiting):
            known = self.manifest.get(folder)
            if folder not in self._listed and known is not None and known.kind is PathKind.FOLDER:
                self.one(root, folder, deep=False)
        for path in (*self.manifest.unsettled, *self.manifest.linked):
            if path.startswith(f"{root}/") and path not in self.found:
                self.one(root, path, deep=False)
        for path in tuple(self.manifest.not_kept):
            if path.startswith(f"{root}/") and path not in self.found:
                self.only(root, path)

    def one(self, root: str, path: str, *, deep: bool = True) -> None:
        """Look at one path; if it is a folder, `deep` at everything in it, else at what lies directly in it."""
        status = self._status(root, path)
        if status is None:
            self._gone(path)
        elif deep or not stat.S_ISDIR(status.st_mode):
            self._visit(path, status, self._known(path))
        else:
            self._visit_folder(path, status, self._known(path), deep=False)

    def only(self, root: str, path: str) -> None:
        """Look at one path, and into no folder that is known."""
        status = self._status(root, path)
        if status is None:
            self._gone(path)
        else:
            self._visit_in(path, status, self._known(path), deep=False)

    def _status(self, root: str, path: str) -> os.stat_result | None:
        if not self._root:
            self._begin(root)
        try:
            return os.lstat(path)
        except (OSError, ValueError):
            return None

    def _begin(self, root: str) -> os.stat_result | None:
        self._root = root
        try:
            status = os.lstat(root)
        except OSError:
            return None
        self._device = status.st_dev
        return status if stat.S_ISDIR(status.st_mode) else None

    # What is there

    def _known(self, path: str) -> PathState | None:
        return self.found[path] if path in self.found else self.manifest.get(path)

    def _visit(self, path: str, status: os.stat_result, known: PathState | None) -> None:
        self._count += 1
        if self._count > self._most:
            raise TooManyFiles
        if stat.S_ISDIR(status.st_mode):
            self._visit_folder(path, status, known, deep=True)
        else:
            self._visit_file(path, status, known)

    def _visit_file(self, path: str, status: os.stat_result, known: PathState | None) -> None:
        if known is not None and not self._differs(known, status):
            return
        if known is not None and known.kind is PathKind.FOLDER:
            self._gone_below(path)
        self._new_file(path, status, known)

    def _visit_known(self, path: str, known: PathState) -> None:
        """Look at a path that is known, and at what is known to be in it. A folder that is another one than before is not `listed`."""
        if self.stop.is_set():
            raise PassStopped
        try:
            status = os.lstat(path)
        except OSError:
            self._gone(path)
            return
        if not stat.S_ISDIR(status.st_mode):
            self._visit_file(path, status, known)
            return
        state = build_state(status, now=self.now)
        if known.kind is PathKind.LEFT_OUT:
            state = state._replace(kind=known.kind, why=known.why)
        elif known.kind is PathKind.FOLDER and (known.device, known.inode) == (state.device, state.inode):
            # What is new in it is found when it is listed again.
            state = known._replace(mode=state.mode)
        if state != known:
            self.found[path] = state
        for name, below in list(self.manifest.folders.get(path, {}).items()):
            if below.kind is not PathKind.ABSENT:
                self._visit_known(f"{path}/{name}", below)

    def _differs(self, known: PathState, status: os.stat_result) -> bool:
        """Return True if a file may differ from the known state, or if its content can be kept by now."""
        if known.changed != status.st_ctime_ns or known.inode != status.st_ino or not known.settled:
            return True
        if not known.why or known.kind is not PathKind.FILE:
            return False
        if known.why == TOO_LARGE:
            return known.size <= self.store.settings.max_file_bytes
        return known.why in NO_ROOM and self.store.has_room

    def _new_file(self, path: str, status: os.stat_result, known: PathState | None) -> None:
        folder, _, name = path.rpartition("/")
        covered = known is not None and known.kind is PathKind.FILE
        why = "" if covered else self.coverage.reason_against(path, root=self._root, is_folder=False)
        if why and not self._was_kept(folder, status):
            self.found[path] = build_state(status, now=self.now, kind=PathKind.LEFT_OUT, why=why)
        elif stat.S_ISREG(status.st_mode):
            self._candidates.append(KeepCandidate(folder, name, status.st_size))
        elif stat.S_ISLNK(status.st_mode):
            with _open_path(folder, PATH_FLAGS) as descriptor:
                state = (
                    read_link_state(descriptor, name, build_state(status, now=self.now))
                    if descriptor is not None
                    else None
                )
            self.found[path] = ABSENT_STATE if state is None else state
        else:
            self.found[path] = build_state(status, now=self.now)

    def _was_kept(self, folder: str, status: os.stat_result) -> bool:
        """Return True for a file that undo kept under another name in the same directory."""
        entries = self.manifest.folders.get(folder, {}).values()
        return any(s.kind is PathKind.FILE and (s.device, s.inode) == (status.st_dev, status.st_ino) for s in entries)

    def _visit_folder(self, path: str, status: os.stat_result, known: PathState | None, *, deep: bool) -> None:
        same = known is not None and (known.device, known.inode) == (status.st_dev, status.st_ino)
        kind = known.kind if known is not None else None
        unchanged = same and known is not None and known.changed == status.st_ctime_ns
        if kind is PathKind.LEFT_OUT and unchanged:
            return
        if kind is PathKind.FOLDER and not same:
            self._gone_below(path)
        if not (kind is PathKind.FOLDER and same):
            is_new = kind is None or kind is PathKind.ABSENT
            if why := self._reason_against(path, status, is_new=is_new):
                self.found[path] = build_state(status, now=self.now, kind=PathKind.LEFT_OUT, why=why)
                return
            self._list(path, status, {}, deep=True)
        elif unchanged and known is not None and known.listed and known.settled and not self._every_folder:
            self._look_at_names(path, deep=deep)
        else:
            self._list(path, status, self.manifest.folders.get(path, {}), deep=deep)

    def _reason_against(self, path: str, status: os.stat_result, *, is_new: bool) -> str:
        if path == self._root:
            return ""
        # What was left out before stays so: nobody knows what was in it.
        since = self.ignored_since if is_new else math.inf
        why = self.coverage.reason_against(
            path, root=self._root, is_folder=True, trusts_marks=self.trusts_marks, ignored_since=since
        )
        if why:
            return why
        if status.st_dev != self._device:
            return OTHER_FILE_SYSTEM
        return TOO_DEEP_REASON if path.count("/") - self._root.count("/") > MAX_FOLDER_DEPTH else ""

    def _look_at_names(self, path: str, *, deep: bool) -> None:
        """Look at what is known to be in a folder that has no other names than before."""
        if self.stop.is_set():
            raise PassStopped
        self._listed.add(path)
        prefix, lstat, kept_folder = f"{path}/", os.lstat, PathKind.FOLDER
        entries = self.manifest.folders.get(path, {})
        self._count += len(entries)
        if self._count > self._most:
            raise TooManyFiles
        for name, known in list(entries.items()):
            try:
                status = lstat(prefix + name)
            except OSError:
                self._gone(prefix + name)
                continue
            if known.changed == status.st_ctime_ns and known.inode == status.st_ino and known.settled:
                if known.kind is not kept_folder:
                    continue
                if not deep:
                    continue
            self._count -= 1
            self._visit_in(prefix + name, status, self.found.get(prefix + name, known), deep=deep)

    def _visit_in(self, path: str, status: os.stat_result, known: PathState | None, *, deep: bool) -> None:
        """Look at what is in a folder; not `deep`: at folders that are known already only from outside."""
        folder = stat.S_ISDIR(status.st_mode) and known is not None and known.kind is PathKind.FOLDER
        same = known is not None and (known.device, known.inode) == (status.st_dev, status.st_ino)
        if deep or known is None or not (folder and same):
            self._visit(path, status, known)
            return
        self._count += 1
        if known.mode != stat.S_IMODE(status.st_mode):
            # Its names are looked at when it is its turn.
            self.found[path] = known._replace(mode=stat.S_IMODE(status.st_mode))

    def _list(self, path: str, status: os.stat_result, known: Mapping[str, PathState], *, deep: bool) -> None:
        """Scan everything that is in a directory now. `known`: what was seen in it before."""
        if self.stop.is_set():
            raise PassStopped
        self._listed.add(path)
        with _open_path(path, LIST_FLAGS) as descriptor:
            if descriptor is None:
                self._unlisted(path, status)
                return
            if self.watch is not None:
                self.watch.add(descriptor, path)
            # Asked again now that it is watched: what changes from here on is noticed.
            self.found[path] = build_state(os.fstat(descriptor), now=time.time_ns(), listed=True)
            children = list(_iter_entries(descriptor))
        entries, default = self.manifest.folders.get(path, {}), self.manifest.default_in(path)
        for name, child in children:
            at = f"{path}/{name}"
            self._visit_in(at, child, self.found.get(at) or entries.get(name) or default, deep=deep)
        for name in known.keys() - dict(children).keys():
            self._gone(f"{path}/{name}")

    def _unlisted(self, path: str, status: os.stat_result) -> None:
        """Record a directory that cannot be listed or has disappeared."""
        self._gone_below(path)
        self.found[path] = build_state(status, now=self.now, why=UNREADABLE_REASON)

    def _gone(self, path: str) -> None:
        known = self._known(path)
        if known is not None and known.kind is PathKind.FOLDER:
            self._gone_below(path)
            if self.watch is not None:
                self.watch.remove(path)
        if known is None or known.kind is not PathKind.ABSENT:
            self.found[path] = ABSENT_STATE

    def _gone_below(self, path: str) -> None:
        for below, _ in self.manifest.below(path):
            self.found[below] = ABSENT_STATE

    # Contents

    def keep(self) -> None:
        """Keep the content of new files; if there is not enough room for all, small files are kept first."""
        wanted, self._candidates = self._candidates, []
        if not wanted:
            return
        if sum(each.size for each in wanted) > self.store.settings.max_bytes // 2:
            wanted.sort(key=lambda each: each.size)
        try:
            self.store.check_disk()
        except StoreFull as exc:
            self._no_room = str(exc)
        for folder, candidates in itertools.groupby(wanted, key=lambda each: each.folder):
            with _open_path(folder, PATH_FLAGS) as descriptor:
                for candidate in candidates:
                    if self.stop.is_set():
                        raise PassStopped
                    self._keep_one(f"{folder}/{candidate.name}", candidate.name, descriptor)

    def _keep_one(self, path: str, name: str, folder: int | None) -> None:
        state = None
        if folder is not None and self._no_room:
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                state = build_state(status, now=self.now, why=self._no_room)
        elif folder is not None:
            state = keep_file(self.store, folder, name, now=self.now)
        if state is not None:
            self.found[path] = state
        elif self._known(path) is not None:
            self.found[path] = ABSENT_STATE

    # What came of it

    def found_other_names(self) -> bool:
        """Return True if a file has another name by now.

        It may have been written to through that name, which the kernel does not report.
        """
        return any(
            state.links > 1 and state.kind is PathKind.FILE and path not in self.manifest.linked
            for path, state in self.found.items()
        )

    def changes(self) -> list[PathChange]:
        """Return what differs from what was known before, in the order of paths."""
        found: list[PathChange] = []
        folders: dict[str, tuple[Mapping[str, PathState], PathState | None]] = {}
        for path, after in sorted(self.found.items()):
            folder, _, name = path.rpartition("/")
            if folder not in folders:
                folders[folder] = self.manifest.folders.get(folder, {}), self.manifest.default_in(folder)
            entries, default = folders[folder]
            before = entries.get(name) or default
            if before is None and not self.manifest.is_loaded(path):
                before = self.manifest.get(path)
            if before is not None and not are_states_alike(before, after):
                found.append(PathChange(path, before, after))
        return found

    def touched(self) -> list[tuple[str, str]]:
        """Return the directories left out of undo in which something was created or removed.

        Each comes with the reason why it is left out.
        """
        found: list[tuple[str, str]] = []
        for path, after in sorted(self.found.items()):
            if after.kind is not PathKind.LEFT_OUT:
                continue
            before = self.manifest.get(path)
            if before is not None and before.kind is PathKind.LEFT_OUT and before.changed != after.changed:
                found.append((path, after.why))
        return found


def _iter_entries(descriptor: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the names in an open directory with their status; entries that disappear meanwhile are skipped."""
    with os.scandir(descriptor) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                yield entry.name, entry.stat(follow_symlinks=False)


@contextmanager
def _open_path(path: str, flags: int) -> Generator[int | None]:
    """Open a directory, reached from the root without following symlinks; yield None if that is not possible."""
    at: int | None = None
    try:
        at = os.open("/", PATH_FLAGS)
        parts = path.strip("/").split("/") if path != "/" else []
        for number, name in enumerate(parts, start=1):
            below = os.open(name, (flags if number == len(parts) else PATH_FLAGS) | NO_FOLLOW, dir_fd=at)
            os.close(at)
            at = below
    except OSError:
        if at is not None:
            os.close(at)
        at = None
    try:
        yield at
    finally:
        if at is not None:
            os.close(at)
