"""Plans of undoing a call: the effect on each path that it changed, and the obstacles."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from handrail.line_diffs import format_unified_diff
from handrail.undo.coverage import REPOSITORY_DATA
from handrail.undo.keeper import KILLED_NOTE
from handrail.undo.path_states import (
    ABSENT_STATE,
    NO_FILE,
    PathChange,
    PathKind,
    PathState,
    are_states_alike,
    find_renames,
    format_path,
    is_restorable,
)
from handrail.undo.store import CallRecord, UndoStore

__all__ = ["UndoPlan"]

UndoStep = Literal["delete", "create", "restore", "mode", "replace", "keep"]
# Bytes of a file whose lines are compared, and lines of a diff that are shown.
MAX_COMPARED_BYTES = 500_000
MAX_DIFF_LINES = 400
# Paths of one call that are shown in a list.
MAX_LISTED = 20
NOT_COVERED = "a folder is there, and undo does not cover what is in it"
TEXT_ENCODING = "utf-8"


@dataclass(frozen=True, slots=True)
class PathPlan:
    """Step of an undo for one path.

    `step`: `delete` the path, `create` it again, `restore` its contents or its `mode`, or `replace` it by what it was;
    `keep`: it is as it was, or is left as it is. `conflict`: why it is not touched unless the user forces it. `lost`:
    why it cannot be restored at all. `source`: the file's present path in the same directory, which is renamed back;
    `moves`: this is such a path.
    """

    path: str
    step: UndoStep
    now: PathState
    wanted: PathState
    conflict: str = ""
    lost: str = ""
    source: str = ""
    moves: bool = False

    @property
    def acts(self) -> bool:
        """True if something would be done."""
        return self.step != "keep" and not self.lost

    @property
    def no_redo(self) -> str:
        """Why what is there now could not be brought back; empty where it could, and where it stays."""
        gone = (
            self.acts
            and not self.moves
            and self.step in ("delete", "restore", "replace")
            and self.now.kind is PathKind.FILE
        )
        return self.now.why if gone and not self.now.digest else ""

    def wire(self) -> dict[str, Any]:
        """Return the step as plain data."""
        told = {"path": format_path(self.path), "step": self.step, "conflict": self.conflict, "lost": self.lost}
        told["no_redo"] = self.no_redo
        return {key: value for key, value in told.items() if value}


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """Plan of undoing one call of a host: `records` are its parts, newest first.

    `passed_over`: notes on newer calls of which nothing can be restored.
    """

    records: tuple[CallRecord, ...]
    paths: tuple[PathPlan, ...]
    passed_over: tuple[str, ...] = ()
    # An undo of this call that was killed before it was done.
    unfinished: CallRecord | None = None

    @property
    def call(self) -> str:
        """The name of the call: its session and its id."""
        return f"{self.records[0].session}/{self.records[0].root_call}"

    @property
    def conflicts(self) -> list[PathPlan]:
        return [path for path in self.paths if path.conflict]

    @property
    def lost(self) -> list[PathPlan]:
        return [path for path in self.paths if path.lost]

    @property
    def final(self) -> list[PathPlan]:
        """The contents that would be lost for good."""
        return [path for path in self.paths if path.no_redo]

    @property
    def hopeless(self) -> bool:
        """True if there is something to restore, but none of it can be restored."""
        return bool(self.lost) and not any(path.acts for path in self.paths)

    @property
    def undone(self) -> bool:
        """True if another call has undone it and has not been undone itself."""
        return all(record.undone for record in self.records)

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(record.id for record in self.records)

    def chosen(self, *, force: bool, skip_changed: bool, final: bool = False) -> list[PathPlan]:
        """Return the paths to undo; without `final`, only those whose present contents could be brought back."""
        return [
            path
            for path in self.paths
            if path.acts
            and (not path.conflict or (force and not skip_changed))
            and (final or force or not path.no_redo)
        ]

    def wire(self, *, most: int | None = None) -> dict[str, Any]:
        """Return the plan as plain data, with at most `most` paths."""
        first = self.records[-1]
        notes = list(dict.fromkeys(note for record in reversed(self.records) for note in record.notes))
        wire: dict[str, Any] = {
            "call": self.call,
            "tool": first.tool,
            "what": first.what,
            "at": datetime.fromtimestamp(first.at, UTC).isoformat(timespec="seconds"),
            "paths": [path.wire() for path in self.paths[:most]],
            "count": len(self.paths),
            "conflicts": len(self.conflicts),
            "undone": self.undone,
            "running": any(record.ended is None for record in self.records),
        }
        if self.unfinished is not None:
            wire["unfinished"] = f"{self.unfinished.session}/{self.unfinished.root_call}"
        if self.hopeless:
            wire["hopeless"] = True
        if self.passed_over:
            wire["passed_over"] = list(self.passed_over)
        return {**wire, "notes": notes} if notes else wire


def describe_obstacles(paths: Sequence[PathPlan]) -> str:
    """Return a phrase that lists the obstacles to undoing these."""
    told = [f"not kept: {format_path(path.path)}: {path.lost}" for path in paths if path.lost]
    told += [f"{format_path(path.path)}: {path.conflict}" for path in paths if path.conflict and not path.lost]
    told += [
        f"cannot be brought back by redo: {format_path(path.path)}: {path.no_redo}" for path in paths if path.no_redo
    ]
    more = [f"and {len(told) - MAX_LISTED} more"] if len(told) > MAX_LISTED else []
    return "; ".join([*told[:MAX_LISTED], *more])


def find_unfinished_undo(store: UndoStore, records: Sequence[CallRecord]) -> CallRecord | None:
    """Return the call that began to undo these and was killed before it finished, or None."""
    begun = {-record.undone_by for record in records if record.undone_by is not None and record.undone_by < 0}
    return next((undo for undo in map(store.call, begun) if undo is not None and KILLED_NOTE in undo.notes), None)


def build_undo_plan(store: UndoStore, records: Sequence[CallRecord], now: Mapping[str, PathState]) -> UndoPlan:
    """Build the plan for these records, from what is at their paths now."""
    unfinished = find_unfinished_undo(store, records)
    halves = {} if unfinished is None else {c.path: c.after for _, c in store.changes_of([unfinished.id])}
    ids = [record.id for record in records]
    by_path: dict[str, list[tuple[int, PathChange]]] = {}
    for number, change in store.changes_of(ids):
        by_path.setdefault(change.path, []).append((number, change))
    paths = [
        _plan_path(store, frozenset(ids), changes, now.get(path, ABSENT_STATE), halves.get(path))
        for path, changes in sorted(by_path.items())
    ]
    return UndoPlan(tuple(records), tuple(_apply_renames(paths)), unfinished=unfinished)


def _apply_renames(paths: Sequence[PathPlan]) -> Iterator[PathPlan]:
    """Yield the plans; a file that was not kept, but only has a new name in its directory, is renamed back."""
    able = [plan for plan in paths if plan.lost or (plan.acts and not plan.conflict)]
    sources = find_renames(PathChange(plan.path, plan.now, plan.wanted) for plan in able)
    lost = {plan.path for plan in paths if plan.lost}
    # One file is given one name.
    names = {source: path for path, source in sources.items() if path in lost}
    for plan in paths:
        if names.get(sources.get(plan.path, "")) == plan.path:
            yield replace(plan, lost="", source=sources[plan.path])
        else:
            yield replace(plan, moves=True) if plan.path in names else plan


def _plan_path(
    store: UndoStore,
    ids: frozenset[int],
    changes: Sequence[tuple[int, PathChange]],
    now: PathState,
    half: PathState | None,
) -> PathPlan:
    """Plan the undo of one path. `half`: what a killed undo has left there."""
    path, wanted, left = changes[0][1].path, changes[0][1].before, changes[-1][1].after
    if are_states_alike(now, wanted):
        return PathPlan(path, "keep", now, wanted)
    if left.kind is PathKind.LEFT_OUT and now.kind in (PathKind.LEFT_OUT, PathKind.FOLDER):
        # What was made and is left out stays: what is in it is not known.
        return PathPlan(path, "keep", now, wanted)
    step = _choose_step(now, wanted)
    if not is_restorable(wanted):
        return PathPlan(
            path,
            step,
            now,
            wanted,
            lost=wanted.why or (REPOSITORY_DATA if wanted.kind is PathKind.LEFT_OUT else NO_FILE),
        )
    if wanted.digest and now.digest != wanted.digest and not store.has(wanted.digest):
        return PathPlan(path, step, now, wanted, lost="its contents are not kept any longer")
    in_the_way = now.kind is PathKind.FOLDER and wanted.kind not in (PathKind.FOLDER, PathKind.ABSENT)
    if in_the_way and not (now.listed or now.why):
        return PathPlan(path, step, now, wanted, conflict=NOT_COVERED)
    whole = all(are_states_alike(one.after, other.before) for (_, one), (_, other) in itertools.pairwise(changes))
    if (are_states_alike(now, left) and whole) or (
        half is not None and are_states_alike(now, half) and _is_half_undone(now, wanted)
    ):
        return PathPlan(path, step, now, wanted)
    return PathPlan(path, step, now, wanted, conflict=_describe_conflict(store, ids, changes, path))


def _is_half_undone(now: PathState, wanted: PathState) -> bool:
    """Return True for a state between two steps of an undo.

    That is a directory with another mode, a missing path, or a file whose contents are being written in place.
    """
    if now.kind is PathKind.FILE:
        return now.links > 1 and (now.device, now.inode) == (wanted.device, wanted.inode)
    return now.kind is PathKind.ABSENT or (now.kind is wanted.kind is PathKind.FOLDER)


def _describe_conflict(
    store: UndoStore, ids: frozenset[int], changes: Sequence[tuple[int, PathChange]], path: str
) -> str:
    later = [record for record in store.changed_later(path, after=changes[0][0]) if record.id not in ids]
    if not later:
        return "it was changed since"
    told = ", ".join(f"{record.session}/{record.root_call} ({record.tool})" for record in later[-3:])
    return f"it was changed since by {told}"


def _choose_step(now: PathState, wanted: PathState) -> UndoStep:
    if wanted.kind is PathKind.ABSENT:
        return "delete"
    if now.kind is PathKind.ABSENT:
        return "create"
    if now.kind is not wanted.kind:
        return "replace"
    same = now.kind is PathKind.FOLDER or (now.kind is PathKind.FILE and now.digest and now.digest == wanted.digest)
    return "mode" if same else "restore"


def iter_diff(store: UndoStore, plans: Iterable[PathPlan]) -> Iterator[str]:
    """Yield what would change, as lines of a unified diff; for anything but text, a line that describes the step."""
    for plan in plans:
        if not plan.acts:
            continue
        name = format_path(plan.path)
        before, after = _read_lines(store, plan.now), _read_lines(store, plan.wanted)
        if before is None or after is None or plan.step == "mode":
            yield _describe_step(plan, name)
            continue
        shown = list(format_unified_diff(before, after, name, name))
        yield from shown[:MAX_DIFF_LINES] or [_describe_step(plan, name)]
        if len(shown) > MAX_DIFF_LINES:
            yield f"… {len(shown) - MAX_DIFF_LINES} more lines"


def _describe_step(plan: PathPlan, name: str) -> str:
    match plan.step:
        case "mode":
            return f"{name}: mode {plan.now.mode:o} becomes {plan.wanted.mode:o}"
        case "create" if plan.source:
            return f"{format_path(plan.source)}: is named {name} again"
        case "delete":
            return f"{name}: {plan.now.kind.value} is deleted"
        case _:
            to = f" to {format_link_target(plan.wanted)}" if plan.wanted.kind is PathKind.LINK else ""
            return f"{name}: {plan.wanted.kind.value}{to} is put back"


def format_link_target(state: PathState) -> str:
    """Return where a link points to, as text."""
    return repr(state.target.decode(TEXT_ENCODING, "backslashreplace"))


def _read_lines(store: UndoStore, state: PathState) -> list[str] | None:
    """Return a file's lines, or None if it has none: it is not text, not kept, or too large."""
    if state.kind is PathKind.ABSENT:
        return []
    if state.kind is not PathKind.FILE or not state.digest or state.size > MAX_COMPARED_BYTES:
        return None
    data = store.contents(state.digest)
    if data is None or b"\0" in data:
        return None
    try:
        return data.decode(TEXT_ENCODING).splitlines()
    except UnicodeDecodeError:
        return None
