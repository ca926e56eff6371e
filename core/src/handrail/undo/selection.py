"""Selection of a call and its undoing: the part that `handrail undo`, the console and `Session.undo` share. In the keeper's thread."""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from handrail.errors import Downstream, HandrailError, NotFound
from handrail.undo.disk_pass import PassStopped
from handrail.undo.keeper import UndoKeeper
from handrail.undo.path_states import ABSENT_STATE, PathKind, are_states_alike, format_path
from handrail.undo.plans import PathPlan, UndoPlan, build_undo_plan, describe_obstacles, find_unfinished_undo, iter_diff
from handrail.undo.restore import InodeKey, PathRestorer
from handrail.undo.store import CallRecord, UndoStore
from handrail.undo.workspace_roots import roots_overlap

__all__ = ["build_diff", "find_undo_plan", "list_undo_plans"]

log = logging.getLogger(__name__)

# The tool whose calls undo others.
UNDO_TOOL = "undo_call"
# Calls that are looked at to find those of one workspace.
MAX_SEARCHED = 2_000
BATCH_SIZE = 100
# Calls that are named among those that were passed over.
MAX_LISTED_NAMES = 5


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """The outcome of undo: `plans` that were carried out; `left`: folders that stay because something else is in them; `amiss`: paths that are not as
    they were to be, though nothing failed. `also`: files with several names that were restored, each with what other names show it.
    """

    plans: tuple[PathPlan, ...]
    left: tuple[str, ...]
    amiss: tuple[str, ...]
    also: tuple[tuple[str, str], ...] = ()


def list_undo_plans(
    keeper: UndoKeeper, roots: Sequence[str] | None, *, most: int, stop: threading.Event
) -> list[UndoPlan]:
    """Return what undoing each of the newest calls in a workspace would do, newest first; `roots` None: in all workspaces."""
    with keeper.step() as store:
        if roots is not None:
            keeper.look_for_open(store, roots, stop)
        return _build_plans(keeper, store, list(_iter_call_groups(store, roots, most=most)), stop)


def find_undo_plan(keeper: UndoKeeper, call: str | None, roots: Sequence[str], *, stop: threading.Event) -> UndoPlan:
    """Return the plan of undoing one call, given as `ID` or `SESSION/ID`.

    None selects the newest call that is not undone and can be restored at least in part. Raises `NotFound` if no such
    call exists.
    """
    passed_over: list[str] = []
    with keeper.step() as store:
        keeper.look_for_open(store, roots, stop)
        if call is not None:
            return _build_plans(keeper, store, [_find_call_records(store, call, roots)], stop)[0]
        # What was begun is done first.
        for half in store.half_undone():
            if roots_overlap(half.roots, roots) and find_unfinished_undo(store, [half]) is not None:
                plan = _build_plans(
                    keeper, store, [_find_call_records(store, f"{half.session}/{half.root_call}", roots)], stop
                )[0]
                if any(path.acts for path in plan.paths):
                    return plan
        for records in _iter_call_groups(store, roots, most=MAX_SEARCHED):
            if all(not record.undone and record.tool != UNDO_TOOL for record in records):
                plan = _build_plans(keeper, store, [records], stop)[0]
                if plan.hopeless:
                    passed_over.append(
                        f"{plan.call} was passed over: nothing of it can be put back ({describe_obstacles(plan.lost)})"
                    )
                elif any(path.step != "keep" for path in plan.paths):
                    return replace(plan, passed_over=tuple(passed_over))
    told = "".join(f"; {each}" for each in passed_over[:MAX_LISTED_NAMES])
    raise NotFound(f"there is nothing left to undo in this workspace{told}", hint="`handrail undo --list --all`")


def build_diff(keeper: UndoKeeper, plans: Sequence[PathPlan]) -> list[str]:
    """Return what undo would change, as lines of a diff."""
    with keeper.step() as store:
        return list(iter_diff(store, plans))


def restore_plan(
    keeper: UndoKeeper, plan: UndoPlan, chosen: Sequence[PathPlan], *, by: int | None, stop: threading.Event
) -> UndoOutcome:
    """Restore what a plan says, completely or not at all. `by`: the record of the undoing call.

    Once restored, the calls are recorded as undone, even if something fails after that.
    """
    if by is not None:
        # Written down before the first step, so that a later undo finds it if this one is killed.
        with keeper.step() as store:
            store.mark_undone(plan.ids, -by)
    work = _RestoreWork(tuple(chosen))
    try:
        _restore_paths(keeper, plan, work, by=by, stop=stop)
    except BaseException as exc:
        if work.done or by is not None:
            with keeper.step() as store:
                if work.done:
                    _mark_done(store, plan, by)
                else:
                    for each in plan.records:
                        store.mark_undone([each.id], each.undone_by)
        if not work.done or not isinstance(exc, HandrailError):
            raise
        log.warning("undo could not be recorded at once: %s", exc)
    return _verify_outcome(keeper, plan, work, by=by)


@dataclass
class _RestoreWork:
    """The plans that are carried out, as things were when that began, and what did it. `done`: all of it is put back."""

    plans: tuple[PathPlan, ...]
    left: Sequence[str] = ()
    through: Sequence[str] = ()
    done: bool = False


def _restore_paths(
    keeper: UndoKeeper, plan: UndoPlan, work: _RestoreWork, *, by: int | None, stop: threading.Event
) -> None:
    def check() -> None:
        if stop.is_set():
            raise PassStopped

    chosen = work.plans
    paths = [each.path for each in chosen]
    with keeper.step() as store:
        record = store.call(by) if by is not None else None
        keeper.look_at(paths, plan.records[0].roots, stop, by=record)
        now = {path: keeper.manifest.get(path) or ABSENT_STATE for path in paths}
        if changed := [each.path for each in chosen if not are_states_alike(each.now, now[each.path])]:
            raise Downstream(
                f"nothing was undone: {format_path(changed[0])} was changed in this moment", hint="try again"
            )
        work.plans = tuple(replace(each, now=now[each.path]) for each in chosen)
        restorer = PathRestorer(store, _index_other_names(keeper, plan, work.plans, stop))
        restorer.apply(work.plans, check=check)
        work.left, work.through, work.done = restorer.left, restorer.through, True
        _mark_done(store, plan, by)


def _mark_done(store: UndoStore, plan: UndoPlan, by: int | None) -> None:
    """Record that a plan was carried out. Within a step."""
    store.mark_undone(plan.ids, by if by is not None else 0)
    store.mark_undone(store.undone_by(plan.ids), None)


def _verify_outcome(keeper: UndoKeeper, plan: UndoPlan, work: _RestoreWork, *, by: int | None) -> UndoOutcome:
    """Look at what was put back; what cannot be looked at counts as amiss."""
    paths = [each.path for each in work.plans]
    left = tuple(work.left)
    try:
        with keeper.step() as store:
            record = store.call(by) if by is not None else None
            keeper.look_at(paths, plan.records[0].roots, threading.Event(), by=record)
            wrong = [
                p for p in work.plans if not are_states_alike(keeper.manifest.get(p.path) or ABSENT_STATE, p.wanted)
            ]
            amiss = tuple(each.path for each in wrong if each.path not in left)
            return UndoOutcome(work.plans, left, amiss, tuple(_iter_other_names(keeper, plan, work.through)))
    except HandrailError as exc:
        log.warning("what undo has put back could not be looked at: %s", exc)
        return UndoOutcome(work.plans, left, tuple(paths))


def _build_plans(
    keeper: UndoKeeper, store: UndoStore, groups: Sequence[Sequence[CallRecord]], stop: threading.Event
) -> list[UndoPlan]:
    found: list[UndoPlan] = []
    for records in groups:
        ids = [record.id for record in records]
        paths = list(dict.fromkeys(change.path for _, change in store.changes_of(ids)))
        keeper.look_at(paths, records[0].roots, stop)
        found.append(
            build_undo_plan(store, records, {path: keeper.manifest.get(path) or ABSENT_STATE for path in paths})
        )
    return found


def _iter_call_groups(store: UndoStore, roots: Sequence[str] | None, *, most: int) -> Iterator[list[CallRecord]]:
    """Yield the newest calls of hosts, each with its parts, newest first."""
    seen: set[tuple[str, str]] = set()
    before, looked = None, 0
    while looked < MAX_SEARCHED and len(seen) < most:
        batch = store.calls(most=BATCH_SIZE, before=before)
        if not batch:
            return
        before, looked = batch[-1].id, looked + len(batch)
        for record in batch:
            key = record.session, record.root_call
            if key in seen or (roots is not None and not roots_overlap(record.roots, roots)) or len(seen) >= most:
                continue
            records = [
                each for each in store.calls_named(record.root_call, record.session) if store.changes_of([each.id])
            ]
            if records:
                seen.add(key)
                yield records


def _find_call_records(store: UndoStore, call: str, roots: Sequence[str]) -> list[CallRecord]:
    session, slash, id = call.partition("/")
    records = store.calls_named(id if slash else call, session if slash else None)
    if not slash:
        records = [record for record in records if roots_overlap(record.roots, roots)]
    records = [record for record in records if store.changes_of([record.id])]
    sessions = list(dict.fromkeys(record.session for record in records))
    if not sessions:
        raise NotFound(
            f"no call {call!r} has changed files here", hint="`handrail undo --list` names those that can be undone"
        )
    if len(sessions) > 1:
        told = ", ".join(f"{each}/{call}" for each in sessions[:5])
        raise NotFound(f"several sessions have a call {call!r}", hint=f"name one of {told}")
    return records


def _iter_other_names(keeper: UndoKeeper, plan: UndoPlan, through: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each file that was written in place, with a description of the other names that show the change."""
    for path in dict.fromkeys(through):
        status = os.lstat(path)
        inside = sorted(keeper.names_of(status.st_dev, status.st_ino, plan.records[0].roots) - {path})
        told = [format_path(name) for name in inside[:MAX_LISTED_NAMES]]
        if (rest := status.st_nlink - 1 - len(told)) > 0:
            where = "" if len(inside) > MAX_LISTED_NAMES else "outside the workspace" if told else "elsewhere"
            told.append(f"{rest} {'name' if rest == 1 else 'names'} {where}".rstrip())
        if told:
            yield path, " and ".join(told)


def _index_other_names(
    keeper: UndoKeeper, plan: UndoPlan, chosen: Sequence[PathPlan], stop: threading.Event
) -> dict[InodeKey, str]:
    """Other names of files that had several, which are there as they were."""
    wanted = {
        (p.wanted.device, p.wanted.inode): p.wanted
        for p in chosen
        if p.wanted.kind is PathKind.FILE and p.wanted.links > 1
    }
    found: dict[InodeKey, str] = {}
    if not wanted:
        return found
    # Any file of the workspace may be the same one.
    keeper.look_at_roots(plan.records[0].roots, stop)
    taken = {each.path for each in chosen}
    for root in plan.records[0].roots:
        for path, state in keeper.manifest.below(root):
            known = wanted.get((state.device, state.inode))
            if known is None or path in taken or state.kind is not PathKind.FILE or state.digest != known.digest:
                continue
            status = os.lstat(path) if os.path.lexists(path) else None
            if status is not None and stat.S_ISREG(status.st_mode) and status.st_ctime_ns == state.changed:
                found[state.device, state.inode] = path
    return found
