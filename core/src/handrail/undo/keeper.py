"""Begins and ends the records of calls: looks at the disk before a call acts and after, and says to which calls it puts down what came between.

Everything here runs in one thread of the process, in turn with other processes that keep the same workspace.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from handrail.config.settings import UndoSettings
from handrail.errors import Downstream
from handrail.undo.change_watch import ChangeWatch, is_local_file_system
from handrail.undo.coverage import (
    OWN_PLACE,
    REGENERATED_REASONS,
    REPOSITORY_DATA,
    REPOSITORY_FOLDERS,
    FileCoverage,
    is_damaged,
    is_generated_marker,
)
from handrail.undo.disk_pass import DiskPass, TooManyFiles
from handrail.undo.file_contents import TOO_LARGE
from handrail.undo.manifest import DiskManifest
from handrail.undo.path_states import NO_FILE, PathKind, find_renames, format_path, is_restorable
from handrail.undo.store import CallRecord, StoreFailure, UndoStore
from handrail.undo.workspace_roots import is_inside, outermost_roots, roots_overlap, topmost_paths

# Seconds for which the kernel's word is taken for what changed, before every file is looked at again.
TRUSTED_S = 300.0
# Seconds after which a workspace that held too many files is counted again.
COUNT_AGAIN_S = 600.0
# Files of one folder that are not kept, above which the folder stands for them.
MOST_BESIDE = 20
KILLED_NOTE = "its process was killed: what changed until that was noticed may be due to others"
BACKGROUND_NOTE = "it went on in the background: what no other call had made meanwhile is put down to it"
INPUT_NOTE = "it gave input to a process in the background: what that changed meanwhile is put down to both"
# What such calls may have done is put down to another one that runs beside them.
YIELDING_NOTES = frozenset((BACKGROUND_NOTE, INPUT_NOTE))
TOO_MANY = "the workspace holds more files than undo.max_files"
MISSED_REASON = f"{TOO_MANY}: files that it made are not covered"

# A path and why it is not kept.
UnkeptPath = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CallScope:
    """Scope of a call's changes: `names` are real paths, `roots` the workspace; `anywhere`: anything in the workspace.

    `relied_on`: the paths that it must be possible to put back; None for everything in the workspace. `confined`: it reaches no other files.
    `feeds`: it gives input to what an earlier call has started. `named`: it changes what it names and nothing else, each path once.
    """

    roots: tuple[str, ...]
    names: tuple[str, ...] = ()
    anywhere: bool = False
    relied_on: tuple[str, ...] | None = ()
    confined: bool = False
    feeds: bool = False
    named: bool = False


@dataclass(frozen=True, slots=True)
class CallStart:
    """Record of a call at its beginning.

    `lost`: what of `relied_on` could not be restored. `new`: what in the workspace was found for the first time not to
    be kept. `notes` say in words what else is not kept. `unkept`: everything in the workspace that could not be
    restored, for a call that may change anything in it; a directory represents many files. `uncovered`: why undo no
    longer covers a workspace that it did cover; empty if it does, or if it never did.
    """

    id: int
    lost: tuple[UnkeptPath, ...] = ()
    new: tuple[UnkeptPath, ...] = ()
    notes: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    uncovered: str = ""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The number of paths that a call changed, and those that cannot be restored. `missed`: the reason if what it made is unknown.

    `outgrown`: files that it made, or that were kept before, and that are too large to be kept now.
    """

    changed: int = 0
    lost: tuple[UnkeptPath, ...] = ()
    missed: str = ""
    outgrown: tuple[UnkeptPath, ...] = ()


class UndoKeeper:
    """The engine of undo in one process. `own` are Handrail's own places, which are never looked into."""

    def __init__(self, folder: Path, settings: UndoSettings, own: Sequence[Path]) -> None:
        self._folder = folder
        self._own = tuple(own)
        self._store: UndoStore | None = None
        self._manifest: DiskManifest | None = None
        self._watches: dict[str, ChangeWatch] = {}
        # When each workspace was last looked at whole, and when it was found to hold too many files.
        self._looked: dict[str, float] = {}
        self._too_many: dict[str, float] = {}
        # Workspaces that are to be looked at whole, since a file was found to have another name by now.
        self._unlooked: set[str] = set()
        # Calls that are not ended yet: those that reach no other files and change what they name, and those of which nothing goes on.
        self._plain: set[int] = set()
        self._over: set[int] = set()
        # True if the store could not be used the last time.
        self.store_failed = False
        self.use(settings)

    def use(self, settings: UndoSettings) -> None:
        """Go on with other settings."""
        self._settings = settings
        self._coverage = FileCoverage(settings.leave_out, self._own)
        self._start_anew()

    def _start_anew(self) -> None:
        """Know nothing but what the store knows."""
        for root in list(self._watches):
            self._drop_watch(root)
        self._looked.clear()
        self._too_many.clear()
        self._unlooked.clear()
        self._manifest = None
        if self._store is not None:
            self._store.settings = self._settings

    def close(self) -> None:
        """Close the store."""
        self._start_anew()
        if self._store is not None:
            self._store.close()
            self._store = None

    @contextmanager
    def step(self) -> Generator[UndoStore]:
        """Yield the store for one turn, in one transaction, after ending the calls of killed processes.

        An error leaves everything as it was.
        """
        try:
            if self._store is None:
                self._store = UndoStore(self._folder, self._settings)
            store = self._store
            with store.turn(), store.written():
                if self._manifest is None:
                    self._manifest = DiskManifest(store)
                self._manifest.refresh()
                self._end_killed(store)
                yield store
            if store.forgot_roots:
                # The contents of what is known there may be gone.
                store.forgot_roots = False
                self._start_anew()
            self.store_failed = False
        except TooManyFiles as exc:
            self._start_anew()
            raise Downstream(TOO_MANY) from exc
        except (OSError, sqlite3.Error, StoreFailure) as exc:
            self._start_anew()
            if isinstance(exc, OSError) and not self._is_of_store(exc):
                raise Downstream(f"{exc.strerror}: {exc.filename!r}") from exc
            self.store_failed = True
            if isinstance(exc, StoreFailure):
                raise
            raise StoreFailure(f"the undo store {str(self._folder)!r} cannot be used: {exc}") from exc
        except BaseException:
            self._start_anew()
            raise

    def _is_of_store(self, exc: OSError) -> bool:
        """Return True if an error is the store's own: from one of its files, or from a write, which names no file."""
        return exc.filename is None or is_inside(
            os.path.realpath(os.fsdecode(exc.filename)), (os.path.realpath(self._folder),)
        )

    @property
    def is_full(self) -> bool:
        """True if there was no room the last time that some was looked for."""
        return self._store is not None and self._store.is_full

    def settle(self) -> None:
        """Work a long journal of the store into its database."""
        if self._store is not None:
            self._store.settle()

    def prune(self, *, now: bool = False) -> None:
        """Remove what is too old or too much; unless `now`, only if that was last done at least an hour ago."""
        if not self._folder.is_dir():
            return
        with self.step():
            pass
        assert self._store is not None
        if now or self._store.needs_pruning:
            self._store.prune()
            self._manifest = None

    # Calls

    def begin(self, record: CallRecord, scope: CallScope, stop: threading.Event) -> CallStart:
        """Keep what a call may change, and record the call."""
        with self.step() as store:
            manifest = self.manifest
            # First of all: a workspace in use is not given up when its own contents need room.
            for root in scope.roots:
                store.use_root(root)
            known = set(manifest.not_kept)
            for root in scope.roots:
                manifest.load(root)
            covered = self._covers(scope.roots)
            anywhere = self._look_first(scope.names, scope.roots, stop, anywhere=scope.anywhere) and scope.anywhere
            notes = (f"{TOO_MANY}: only what the call names is kept",) if scope.anywhere and not anywhere else ()
            names, large = self._look_at_names(topmost_paths(scope.names), scope.roots, stop)
            names = self._with_other_names(names, scope.roots, stop)
            said = (*notes, INPUT_NOTE) if scope.feeds else notes
            id = store.begin_call(replace(record, roots=scope.roots, names=names, anywhere=anywhere, notes=said))
            if scope.confined and scope.named:
                self._plain.add(id)
            new = sorted(manifest.not_kept - known)
            beyond = tuple((name, TOO_MANY) for name in large)
            lost = (*self._lost(scope, whole=anywhere), *beyond)
            if beyond:
                # What names the folder says it all.
                lost = tuple(each for each in lost if each[0])
            notes += tuple(f"{format_path(name)}: {TOO_MANY}" for name in large)
            found = tuple((path, self._why(path)) for path in new)
            unkept = self._unkept(scope.roots) if scope.anywhere else ()
            uncovered = TOO_MANY if scope.anywhere and not anywhere and covered else ""
            return CallStart(id, lost if scope.relied_on != () else (), found, notes, unkept, uncovered)

    def name_more(self, id: int, names: Sequence[str], stop: threading.Event) -> tuple[UnkeptPath, ...]:
        """Keep more paths that a call is about to change. Returns those that could not be put back."""
        with self.step() as store:
            record = store.call(id)
            if record is None:
                return ()
            self._look_first(names, record.roots, stop)
            more, large = self._look_at_names(topmost_paths(names), record.roots, stop)
            more = self._with_other_names(more, record.roots, stop)
            store.name_more(id, tuple(dict.fromkeys((*record.names, *more))))
            lost = self._lost(CallScope(record.roots, relied_on=tuple(names)), whole=record.anywhere)
            return (*lost, *((name, TOO_MANY) for name in large))

    def end(self, id: int, stop: threading.Event) -> CallOutcome:
        """Find out what a call that is over has changed."""
        self._over.add(id)
        try:
            with self.step() as store:
                record = store.call(id)
                return CallOutcome() if record is None else self._end(store, record, stop)
        finally:
            self._over.discard(id)
            self._plain.discard(id)

    def _end(self, store: UndoStore, record: CallRecord, stop: threading.Event, *notes: str) -> CallOutcome:
        beside = [other for other in store.open_calls() if other.id != record.id] if record.anywhere else []
        looked, touched = self._look_for(record, stop)
        said = [*notes, *looked]
        changes = [change for _, change in store.changes_of([record.id])]
        renames = find_renames(changes)
        renamed = set(renames.values())
        lost = tuple(
            (c.path, c.before.why or NO_FILE) for c in changes if not is_restorable(c.before) and c.path not in renamed
        )
        lost += tuple((path, why) for path, why in touched if why == REPOSITORY_DATA and is_damaged(path))
        missed = MISSED_REASON if MISSED_REASON in said else ""
        said += [f"{format_path(path)}: {why}" for path, why in lost]
        for other in beside:
            if (
                other.anywhere
                and roots_overlap(other.roots, record.roots)
                and _root_call_name(other) != _root_call_name(record)
            ):
                said += self._told_beside(store, record, other, {change.path for change in changes})
        store.end_call(record.id, notes=said)
        self._forget_outside(store, record)
        grown = (
            c.path for c in changes if c.after.why == TOO_LARGE and is_restorable(c.before) and c.path not in renames
        )
        return CallOutcome(len(changes), lost, missed, tuple((path, TOO_LARGE) for path in grown))

    def _told_beside(self, store: UndoStore, record: CallRecord, other: CallRecord, paths: set[str]) -> list[str]:
        """Note for two concurrent calls which may hold changes of the other; return those for the first call."""
        theirs = {change.path for _, change in store.changes_of([other.id])}
        in_background = _is_yielding(record), _is_yielding(other)
        if in_background[0] is in_background[1]:
            # What was found while both ran is put down to both.
            holds = (bool(paths & theirs),) * 2
        else:
            # What was found while both ran is put down to the one that is not in the background.
            holds = bool(paths) and in_background[1], bool(theirs) and in_background[0]
        if holds[1]:
            store.add_notes(other.id, [_format_beside_note(record)])
        return [_format_beside_note(other)] if holds[0] else []

    def in_background(self, id: int) -> None:
        """Record that a call has ended while something that it started still runs."""
        with self.step() as store:
            store.add_notes(id, [BACKGROUND_NOTE])

    def _end_killed(self, store: UndoStore) -> None:
        for record in store.open_calls():
            if not store.is_alive(record):
                self._end(store, record, threading.Event(), KILLED_NOTE)

    def _forget_outside(self, store: UndoStore, record: CallRecord) -> None:
        """Forget what was seen outside workspaces, as it is not looked at again."""
        outside = [name for name in record.names if not is_inside(name, record.roots)]
        if outside:
            self.manifest.forget(outside)
            store.forget_states(outside)

    def _with_other_names(self, names: Sequence[str], roots: Sequence[str], stop: threading.Event) -> tuple[str, ...]:
        """Add to paths the other names in the workspace that the files there have: what is written to one shows in all."""
        self._look_for_other_names(roots, stop)
        states = [self.manifest.get(name) for name in names if name in self.manifest.linked]
        others = [self.names_of(state.device, state.inode, roots) for state in states if state is not None]
        return tuple(dict.fromkeys((*names, *sorted(set[str]().union(*others)))))

    def _look_for_other_names(self, roots: Sequence[str], stop: threading.Event) -> None:
        """Look at everything in the workspace if a name was found there of a file that may have others, which are not known."""
        self._look_at_roots([root for root in outermost_roots(roots) if root in self._unlooked], stop)

    def names_of(self, device: int, inode: int, roots: Sequence[str]) -> set[str]:
        """Return the names of a file with several hard links in these directories, as last seen. Within a step."""
        found = {path for path in self.manifest.linked if is_inside(path, roots)}
        states = {path: self.manifest.get(path) for path in found}
        return {
            path
            for path, state in states.items()
            if state is not None and (state.device, state.inode) == (device, inode)
        }

    # Looking. All of it within a step.

    @property
    def manifest(self) -> DiskManifest:
        """The states that were last seen. Within a step."""
        assert self._manifest is not None
        return self._manifest

    def look_for_open(self, store: UndoStore, roots: Sequence[str], stop: threading.Event) -> None:
        """Take down what calls that go on have changed so far in these folders."""
        for record in store.open_calls():
            if roots_overlap(record.roots, roots):
                self._look_for(record, stop)

    def look_at(
        self, paths: Iterable[str], roots: Sequence[str], stop: threading.Event, *, by: CallRecord | None = None
    ) -> None:
        """Know what is at these paths now, and put down what has changed there to one call, or to all that may have done it."""
        self._look_at_names(paths, roots, stop, by=by, only=True)

    def look_past(self, paths: Sequence[str], roots: Sequence[str]) -> None:
        """Know what is at these paths now, with everything below them, and put down to no call what has changed there."""
        with self.step():
            self._look_at_names(paths, roots, threading.Event(), by=())

    def look_at_roots(self, roots: Sequence[str], stop: threading.Event) -> None:
        """Know what is in these folders now, unless they hold too many files."""
        self._look_at_roots(roots, stop)

    def _look_for(self, record: CallRecord, stop: threading.Event) -> tuple[list[str], list[UnkeptPath]]:
        """Look at what a call may have changed; return what there is to say of that, and what is left out and was changed."""
        touched: list[UnkeptPath] = []
        whole = not record.anywhere or self._look_at_roots(record.roots, stop, touched)
        if not whole:
            # However much the call has made: what was there before it is known, and kept.
            touched += self._look_at_known(record.roots, stop)
        said = [f"{format_path(path)} was changed, too, and is left as it is: {why}" for path, why in touched]
        if not whole:
            said.append(MISSED_REASON)
        _, large = self._look_at_names(record.names, record.roots, stop, by=record)
        self._look_for_other_names(record.roots, stop)
        return said + [f"{format_path(name)}: {TOO_MANY}" for name in large], touched

    def _look_first(
        self, names: Iterable[str], roots: Sequence[str], stop: threading.Event, *, anywhere: bool = False
    ) -> bool:
        """Look at the workspace before a call changes it, if that matters: False where it holds too many files.

        Before the first change of all, and before files change that say what is generated: a call decides that for no file that was there before.
        """
        within = [name for name in names if is_inside(name, roots)]
        new = within and any(root not in self._looked and root not in self._too_many for root in outermost_roots(roots))
        if anywhere or new or any(is_generated_marker(name) for name in within):
            return self._look_at_roots(roots, stop)
        return False

    def _covers(self, roots: Sequence[str]) -> bool:
        """Return True if everything in the workspace has been scanned at some time."""
        states = [self.manifest.get(root) for root in outermost_roots(roots)]
        return all(state is not None and state.kind is PathKind.FOLDER and state.listed for state in states)

    def _look_at_roots(
        self, roots: Sequence[str], stop: threading.Event, touched: list[UnkeptPath] | None = None
    ) -> bool:
        """Scan these directories completely; return False if they contain too many files for that.

        What is left out of undo and was changed is added to `touched`.
        """
        for root in outermost_roots(roots):
            # What was covered once is counted each time: if it can be again, nobody has to be asked.
            known = self._covers((root,))
            if not known and time.monotonic() - self._too_many.get(root, -COUNT_AGAIN_S) < COUNT_AGAIN_S:
                return False
            try:
                found = self._look_at_root(root, stop)
            except TooManyFiles:
                self._too_many[root] = time.monotonic()
                self._looked.pop(root, None)
                self._unlooked.discard(root)
                return False
            self._too_many.pop(root, None)
            if touched is not None:
                touched += found
        return True

    def _look_at_root(self, root: str, stop: threading.Event) -> list[UnkeptPath]:
        self.manifest.load(root)
        watch, is_new = self._watch_of(root)
        dirty = set[str]() if watch is None or is_new else watch.changed()
        disk_pass = DiskPass(self._parts[0], self.manifest, self._coverage, watch, stop)
        disk_pass.ignored_since = self._began((root,))
        try:
            if watch is not None and watch.whole and not is_new and self._trusts(root):
                disk_pass.some(root, dirty)
                disk_pass.keep()
                if disk_pass.found_other_names():
                    disk_pass.whole(root)
            else:
                disk_pass.whole(root, every_folder=is_new)
                self._looked[root] = time.monotonic()
                self._unlooked.discard(root)
            disk_pass.keep()
        except BaseException:
            # What the watch has told is lost.
            self._drop_watch(root)
            raise
        touched = disk_pass.touched()
        self._take_down(disk_pass)
        return touched

    def _began(self, roots: Sequence[str]) -> float:
        """Return the unix time in seconds when the first of the calls began that may be changing something in these folders."""
        times = (record.at for record in self._parts[0].open_calls() if roots_overlap(record.roots, roots))
        return min(times, default=math.inf)

    def _look_at_known(self, roots: Sequence[str], stop: threading.Event) -> list[UnkeptPath]:
        """Look at what is known in these folders, and at nothing that is new in them; return what is left out and was changed."""
        touched: list[UnkeptPath] = []
        for root in outermost_roots(roots):
            self.manifest.load(root)
            disk_pass = DiskPass(self._parts[0], self.manifest, self._coverage, None, stop)
            disk_pass.known(root)
            disk_pass.keep()
            touched += disk_pass.touched()
            self._take_down(disk_pass)
        return touched

    def _watch_of(self, root: str) -> tuple[ChangeWatch | None, bool]:
        """Return the watch of a workspace, and True if it is new; then every directory must be opened for it."""
        watch = self._watches.get(root)
        if watch is not None and watch.whole:
            return watch, False
        self._drop_watch(root)
        watch = ChangeWatch.start() if is_local_file_system(root) else None
        if watch is not None:
            self._watches[root] = watch
        return watch, watch is not None

    def _drop_watch(self, root: str) -> None:
        if (watch := self._watches.pop(root, None)) is not None:
            watch.close()

    def _trusts(self, root: str) -> bool:
        """Return True if nothing is known to have run that could have written without a report from the kernel.

        That would be through memory maps, which a process that still runs may have, or through another name of a file,
        which the process created and may have removed again, or which is outside the workspace.
        """
        if time.monotonic() - self._looked.get(root, -TRUSTED_S) > TRUSTED_S:
            return False
        quiet = self._over & self._plain
        return all(not record.anywhere or record.id in quiet for record in self._parts[0].open_calls())

    def _look_at_names(
        self,
        names: Iterable[str],
        roots: Sequence[str],
        stop: threading.Event,
        *,
        by: CallRecord | tuple[()] | None = None,
        only: bool = False,
    ) -> tuple[tuple[str, ...], list[str]]:
        """Look at single paths, with everything below them, or at them `only`: those that are kept, and those that hold too many files for that."""
        wanted = [name for name in names if self._refusal(name) is None]
        if not wanted:
            return (), []
        for root in roots:
            self.manifest.load(root)
        plain = [name for name in wanted if only or not os.path.isdir(name)]
        self._look_together(plain, roots, stop, by=by, only=only)
        large: list[str] = []
        for folder in [name for name in wanted if name not in set(plain)]:
            try:
                self._look_together([folder], roots, stop, by=by, only=False)
            except TooManyFiles:
                large.append(folder)
        return tuple(name for name in wanted if name not in large), large

    def _look_together(
        self,
        names: Sequence[str],
        roots: Sequence[str],
        stop: threading.Event,
        *,
        by: CallRecord | tuple[()] | None,
        only: bool,
    ) -> None:
        disk_pass = DiskPass(self._parts[0], self.manifest, self._coverage, None, stop)
        disk_pass.ignored_since = self._began(roots)
        # In a workspace that is not looked at whole, calls may have said by themselves what is generated.
        disk_pass.trusts_marks = all(not is_inside(name, roots) for name in names) or not any(
            root in self._too_many for root in outermost_roots(roots)
        )
        for name in names:
            root = next((root for root in roots if is_inside(name, (root,))), os.path.dirname(name))
            look = disk_pass.only if only else disk_pass.one
            look(root, name)
        disk_pass.keep()
        if disk_pass.found_other_names():
            self._unlooked |= {root for root in outermost_roots(roots) if self._looked.pop(root, None) is not None}
        self._take_down(disk_pass, by=by)

    def _refusal(self, name: str) -> str | None:
        """Return why a path is never kept, whoever names it."""
        if any(part in REPOSITORY_FOLDERS for part in name.split("/")):
            return REPOSITORY_DATA
        return OWN_PLACE if self._coverage.is_own(name) else None

    def _take_down(self, disk_pass: DiskPass, *, by: CallRecord | tuple[()] | None = None) -> None:
        """Write down what a look found: as done by one call, by none (an empty tuple), or by all that may have done it."""
        if not disk_pass.found:
            return
        store, manifest = self._parts
        if changes := disk_pass.changes():
            records = store.open_calls() if by is None else [by] if isinstance(by, CallRecord) else []
            claimed = {
                change.path
                for change in changes
                if any(not _is_yielding(record) and _may_change(record, change.path) for record in records)
            }
            for record in records:
                left = claimed if _is_yielding(record) else frozenset[str]()
                able = [change for change in changes if change.path not in left and _may_change(record, change.path)]
                store.add_changes(record.id, able)
        manifest.take(disk_pass.found)

    @property
    def _parts(self) -> tuple[UndoStore, DiskManifest]:
        assert self._store is not None
        return self._store, self.manifest

    # What is not kept

    def _lost(self, scope: CallScope, *, whole: bool) -> tuple[UnkeptPath, ...]:
        """Return those of the required paths that could not be restored; `whole`: the entire workspace was scanned."""
        if scope.relied_on is None:
            # What does not name its repository is not there to delete it.
            wanted, spared = scope.roots, REGENERATED_REASONS | {REPOSITORY_DATA}
            lost = [] if whole else [("", TOO_MANY)]
        else:
            wanted, spared = scope.relied_on, REGENERATED_REASONS
            lost = [(name, why) for name in wanted if (why := self._refusal(name)) is not None]
        found = sorted(path for path in self.manifest.not_kept if is_inside(path, wanted))
        return (*lost, *((path, why) for path in found if (why := self._why(path)) not in spared))

    def _unkept(self, roots: Sequence[str]) -> tuple[str, ...]:
        """Return the files of the workspace that could not be restored, without empty and generated ones and data of version control."""
        spared = REGENERATED_REASONS | {REPOSITORY_DATA, OWN_PLACE, NO_FILE}
        found = [path for path in self.manifest.not_kept if is_inside(path, roots) and self._why(path) not in spared]
        folders = Counter(os.path.dirname(path) for path in found)
        crowded = {folder for folder, count in folders.items() if count > MOST_BESIDE and folder not in roots}
        return tuple(sorted({path if (above := os.path.dirname(path)) not in crowded else above for path in found}))

    def _why(self, path: str) -> str:
        state = self.manifest.get(path)
        return "" if state is None else state.why


def _root_call_name(record: CallRecord) -> str:
    """Return the name of the host's call that this call is part of."""
    return f"{record.session}/{record.root_call}"


def _is_yielding(record: CallRecord) -> bool:
    return not YIELDING_NOTES.isdisjoint(record.notes)


def _format_beside_note(other: CallRecord) -> str:
    return f"ran beside {_root_call_name(other)}: may hold its changes"


def _may_change(record: CallRecord, path: str) -> bool:
    return (record.anywhere and is_inside(path, record.roots)) or is_inside(path, record.names)
