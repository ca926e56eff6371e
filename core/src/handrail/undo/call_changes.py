"""A session's side of undo: which of its calls are kept, and what their results say of it."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from handrail.api.events import Progress
from handrail.api.tool import Run
from handrail.api.verdict import Route, View
from handrail.errors import HandrailError, NotUndoable, SandboxDenied
from handrail.undo.call_scopes import derive_scope
from handrail.undo.path_states import format_path

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.api.call import Invocation
    from handrail.api.events import EventBus
    from handrail.api.result import ToolResult
    from handrail.api.verdict import Verdict
    from handrail.config.settings import ServerSettings
    from handrail.undo.engine import UndoEngine
    from handrail.undo.keeper import CallOutcome, CallScope, CallStart, UnkeptPath

log = logging.getLogger(__name__)

# Seconds after which listeners are told that a workspace is being kept.
SLOW_CALL_S = 1.0
# Calls after which the store's journal is looked at.
SETTLE_EVERY = 25
# Paths that a result names.
MAX_SHOWN_PATHS = 5
# Files that are not kept and that a sandbox is told to leave as they are: each costs it a mount.
MAX_PROTECTED = 200
# Characters of what a call says of itself.
MAX_DESCRIPTION_CHARS = 300


class CallChanges:
    """Keeps what the calls of one session change.

    `kept` takes out of a text the secrets that calls were given. `servers` gives the MCP servers of the configuration that holds now.
    `judge_anew` is told that calls can be undone from now on, or no longer.
    """

    def __init__(
        self,
        engine: UndoEngine,
        *,
        session: str,
        workspace: Sequence[Path],
        bus: EventBus,
        kept: Callable[[str], object],
        servers: Callable[[], Mapping[str, ServerSettings]],
        judge_anew: Callable[[], None],
    ) -> None:
        self.engine = engine
        self._session = session
        self._workspace = tuple(map(str, workspace))
        self._bus = bus
        self._kept = kept
        self._servers = servers
        self._judge_anew = judge_anew
        # Calls that are under way, by their id, and those that are over and of which something goes on.
        self._under_way: dict[str, RecordedCall] = {}
        self._going_on: list[RecordedCall] = []
        self._ends = 0
        # What is not kept and no result has named yet.
        self._untold: list[UnkeptPath] = []
        # Paths that the call which made them has named already.
        self._outgrown: set[str] = set()
        # True once undo covered the whole workspace.
        self._covered = False

    @property
    def undoable(self) -> bool:
        """True if what calls change in the workspace now can be put back later."""
        return self.engine.undoable

    async def begin(self, invocation: Invocation, verdict: Verdict) -> RecordedCall | None:
        """Keep a copy of what a call may change, before it does, and return the call's record.

        None for a call that changes no files, or if undo is off. Raises `NotUndoable` for a call that may only run if
        it can be undone, but cannot be, and for an unapproved command that may change anything in the workspace, if
        undo no longer covers that.
        """
        if not self.engine.enabled:
            if verdict.relies_on_undo:
                raise _not_undoable_error("undo is off")
            return None
        scope = derive_scope(self._workspace, self._servers(), invocation, verdict)
        if scope is None:
            return self._collecting(invocation)
        recorded = RecordedCall(self, scope, vague=scope.anywhere and verdict.route is Route.HOST)
        recorded.invocation, recorded.verdict = invocation, verdict
        before = self.undoable
        try:
            recorded.begun = await self._begun(invocation, scope)
        except HandrailError as exc:
            log.warning("undo keeps nothing of %s: %s", invocation.tool.name, exc)
            recorded.failed = str(exc)
        if recorded.begun is not None:
            self._untold += (each for each in recorded.begun.new if each[0] not in self._outgrown)
        if before != self.undoable:
            self._judge_anew()
        why = recorded.why_not if verdict.relies_on_undo else ""
        if why or (is_unapproved(verdict) and (why := self._why_uncovered(recorded, scope))):
            recorded.finish()
            raise _not_undoable_error(why)
        self._covered |= scope.anywhere and recorded.is_covered
        self._under_way[invocation.call_id] = recorded
        return recorded

    def _why_uncovered(self, recorded: RecordedCall, scope: CallScope) -> str:
        """Return why undo no longer covers what a confined call may change; empty if it does, and if it never did."""
        if recorded.begun is None:
            return recorded.failed if self._covered else ""
        if self._covered and len(recorded.begun.unkept) > MAX_PROTECTED:
            some = ", ".join(map(format_path, recorded.begun.unkept[:MAX_SHOWN_PATHS]))
            return f"{len(recorded.begun.unkept)} files in the workspace are not kept: {some} …"
        return recorded.begun.uncovered if scope.confined else ""

    def _collecting(self, invocation: Invocation) -> RecordedCall | None:
        """Return the record that collects the reports of the calls this one makes; None for a call that makes none."""
        if not any(isinstance(effect, Run) and effect.what == "steps" for effect in invocation.tool.effects):
            return None
        recorded = self._under_way[invocation.call_id] = RecordedCall(self, None, vague=False)
        return recorded

    def tell_unkept(self, result: ToolResult) -> None:
        """Name in a result what was found for the first time not to be kept."""
        if self._untold:
            result.add_note(f"Undo does not keep {describe_unkept(self._untold)}.")
            self._untold.clear()

    def tell_outgrown(self, result: ToolResult, paths: Sequence[UnkeptPath]) -> None:
        """Name in a result what its call made and undo cannot keep, and what that means for later commands."""
        result.add_note(
            f"From now on undo does not keep {describe_unkept(paths)}; a later command in the sandbox can read and not change it, unless a person "
            "approves the command."
        )
        self._outgrown |= {path for path, _ in paths}

    def tell_above(self, invocation: Invocation, told: Mapping[str, object]) -> None:
        """Have the call that made this one say what of it can be undone."""
        above = invocation.parent
        while above is not None:
            if (recorded := self._under_way.get(above.call_id)) is not None:
                recorded.nested.append(told)
            above = above.parent

    async def _begun(self, invocation: Invocation, scope: CallScope) -> CallStart:
        from handrail.undo.store import CallRecord

        stop = threading.Event()
        tool, root = invocation.tool.name, invocation.root.call_id
        what = str(self._kept(invocation.describe()))[:MAX_DESCRIPTION_CHARS]
        record = CallRecord(0, self._session, invocation.call_id, root, tool, what, time.time())
        future = self.engine.submit(lambda keeper: keeper.begin(record, scope, stop))
        waiting = asyncio.wrap_future(future)
        try:
            if self._bus.listening and not (await asyncio.wait([waiting], timeout=SLOW_CALL_S))[0]:
                self._bus.publish(Progress(invocation.call_id, None, "the workspace is kept, so that it can be undone"))
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            # Nobody waits for the look any more; a record that it still makes is ended.
            stop.set()
            future.add_done_callback(functools.partial(_end_unwanted, self.engine))
            raise

    async def name_more(self, call_id: str, paths: Sequence[str]) -> Sequence[UnkeptPath]:
        """Keep more paths that a call under way is about to change; those that could not be put back, with the reason."""
        recorded = self._under_way.get(call_id)
        if recorded is None or recorded.begun is None:
            return ()
        id, stop = recorded.begun.id, threading.Event()
        return await self.engine.run(lambda keeper: keeper.name_more(id, paths, stop))

    def record_of(self, call_id: str) -> int | None:
        """Return the number of the record of a call under way, or None if it is not kept."""
        recorded = self._under_way.get(call_id)
        return recorded.begun.id if recorded is not None and recorded.begun is not None else None

    def goes_on(self, call_id: str, running: Callable[[], bool]) -> None:
        """Keep the record of a call open while something it has started may change files, as long as `running` returns True."""
        if (recorded := self._under_way.get(call_id)) is not None:
            recorded.running = running

    def over(self, recorded: RecordedCall) -> None:
        """Record that the handler of a call has ended."""
        for call_id in [id for id, each in self._under_way.items() if each is recorded]:
            del self._under_way[call_id]
        if recorded.goes_on:
            self._going_on.append(recorded)
            assert recorded.begun is not None
            id = recorded.begun.id
            self.engine.submit(lambda keeper: keeper.in_background(id))
        else:
            recorded.finish()

    def look(self) -> None:
        """End the records of calls of which nothing runs anymore."""
        if self._going_on:
            for recorded in [each for each in self._going_on if not each.goes_on]:
                self._going_on.remove(recorded)
                recorded.finish()

    def look_past(self, paths: Sequence[str]) -> None:
        """Put down to no call what has just changed at these paths: it was done by us."""
        if self.engine.enabled and (self._under_way or self._going_on or self._ends):
            self.engine.submit(lambda keeper: keeper.look_past(paths, self._workspace))

    async def close(self) -> None:
        """End all records when the session ends: nothing that its calls started is followed any longer."""
        left = [*self._going_on, *self._under_way.values()]
        self._going_on.clear()
        self._under_way.clear()
        for recorded in left:
            recorded.finish()
        if left:
            await self.settle()

    async def settle(self) -> None:
        """Wait until everything is found out that calls have changed so far."""
        await self.engine.settled()

    def ended(self, id: int) -> Future[CallOutcome]:
        """Return a future of what a call has changed."""
        stop = threading.Event()
        future = self.engine.submit(lambda keeper: keeper.end(id, stop))
        self._ends += 1
        if self._ends % SETTLE_EVERY == 0:
            self.engine.submit(lambda keeper: keeper.settle())
        return future


class RecordedCall:
    """Record of a call that is kept for undo, or should have been: then `begun` is None, and `failed` says why.

    `vague`: it may have changed files anywhere. Without a `scope` it changes nothing itself, and collects in `nested`
    the reports of the calls that it makes.
    """

    def __init__(self, changes: CallChanges, scope: CallScope | None, *, vague: bool) -> None:
        self.begun: CallStart | None = None
        self.failed = ""
        self.invocation: Invocation | None = None
        self.verdict: Verdict | None = None
        self.nested: list[Mapping[str, object]] = []
        # Says whether something that the call has started still runs.
        self.running: Callable[[], bool] | None = None
        self._changes = changes
        self._scope = scope
        self._vague = vague
        self._finished = False
        self._ended: Future[CallOutcome] | None = None
        # What the call made or changed, of which nothing can be kept any more.
        self._outgrown: Sequence[UnkeptPath] = ()
        # Why undo does not cover the files that the call made; empty if it does.
        self._missed_new = ""

    @property
    def goes_on(self) -> bool:
        """True if something that the call has started may still change files."""
        return self.begun is not None and self.running is not None and self.running()

    @property
    def why_not(self) -> str:
        """The reason why files that the call relies on could not be put back; empty if they could."""
        return self.failed if self.begun is None else describe_unkept(self.begun.lost)

    @property
    def is_covered(self) -> bool:
        """True if all of the workspace was scanned, and a sandbox can leave unchanged the files that are not kept."""
        return self.begun is not None and not self.begun.notes and len(self.begun.unkept) <= MAX_PROTECTED

    @property
    def protected(self) -> tuple[str, ...]:
        """Files and folders that undo does not keep and that a sandbox leaves as they are, since no person has approved the command.

        What takes a name away and loses nothing by that gives the file another one.
        """
        if self.begun is None or self.verdict is None or not is_unapproved(self.verdict):
            return ()
        if len(self.begun.unkept) > MAX_PROTECTED:
            return ()
        touches = [] if self.verdict.relies_on_undo else [t for part in self.verdict.parts for t in part.touches]
        renamed = {touch.what for touch in touches if touch.kind == "delete"}
        return tuple(path for path in self.begun.unkept if path not in renamed)

    def over(self) -> None:
        """Record that the handler has ended, successfully or not."""
        self._changes.over(self)

    def finish(self) -> None:
        """Find out what was changed, now that the call and what it started have ended."""
        if self.begun is None or self._finished:
            return
        self._finished = True
        self._ended = self._changes.ended(self.begun.id)

    async def tell(self, result: ToolResult) -> None:
        """Say in the result what of the call can be undone; nothing where it changed nothing."""
        told = await self._told()
        if self._outgrown:
            self._changes.tell_outgrown(result, self._outgrown)
        if self.begun is not None and self._scope is not None and self._scope.anywhere:
            self._changes.tell_unkept(result)
        if result["status"] != "success" and (missed := self._missed(result)):
            some = ", ".join(map(format_path, missed[:MAX_SHOWN_PATHS]))
            more = f" and {len(missed) - MAX_SHOWN_PATHS} more" if len(missed) > MAX_SHOWN_PATHS else ""
            result.add_note(f"It could not change what undo does not keep: {some}{more}.")
        if told is None:
            return
        result["undo"] = told
        if not told["kept"]:
            result.add_note(f"It cannot be undone: {told.get('not_kept') or told['why']}.")
        elif "not_kept" in told:
            result.add_note(f"Undo cannot put back {told['not_kept']}.")
        if told["kept"] and self._missed_new:
            result.add_note(f"Undo covers it in part: {self._missed_new}.")
        if self.invocation is not None:
            self._changes.tell_above(self.invocation, told)

    def _missed(self, result: ToolResult) -> Sequence[str]:
        """Return the protected files that a command seems to have failed on: those that it names, and all if the sandbox refused it a write."""
        protected = self.protected
        if result.error_code == SandboxDenied.code and result["error"].get("details", {}).get("denied") == "write":
            return protected
        printed = f"{result.get('stdout')}{result.get('stderr')}"
        return [path for path in protected if os.path.basename(path) in printed]

    async def _told(self) -> Mapping[str, object] | None:
        if self._scope is None:
            return _combine_reports(self.nested)
        if self.begun is None:
            return {"kept": False, "why": self.failed}
        if self._ended is None:
            return {"kept": True}
        try:
            ended = await asyncio.wrap_future(self._ended)
        except HandrailError as exc:
            return {"kept": False, "why": str(exc)}
        self._missed_new = ended.missed
        self._outgrown = ended.outgrown
        notes = (*self.begun.notes, ended.missed) if ended.missed else self.begun.notes
        if not ended.changed and notes:
            # Whether it made anything is not known.
            return {"kept": False, "why": "; ".join(notes)}
        if not ended.changed and not ended.lost and not self._vague:
            return None
        told: dict[str, object] = {"kept": len(ended.lost) < max(ended.changed, 1)}
        if ended.lost:
            told["not_kept"] = describe_unkept(ended.lost)
        if notes:
            told["why"] = "; ".join(notes)
        if self._vague:
            told["covers"] = "workspace"
        return told


def is_unapproved(verdict: Verdict) -> bool:
    """Return True for a command that changes files in the sandbox without anyone's approval."""
    return verdict.route is Route.SANDBOX and verdict.view is View.WORK and verdict.approved is None


# What lifts a bound, by the end of the reason that names it.
BOUND_REMEDIES = {
    "undo is off": "turn on undo.enabled",
    "undo.max_files": "raise undo.max_files",
    "undo.max_file_bytes": "raise undo.max_file_bytes",
    "undo.max_bytes is reached": "raise undo.max_bytes",
    "the disk is nearly full": "make room on the disk",
}


def _not_undoable_error(why: str) -> NotUndoable:
    """Return the error for a call that was not run, with what helps."""
    ways = [way for bound, way in BOUND_REMEDIES.items() if re.search(rf"{re.escape(bound)}(?!\w)", why)]
    told = " or ".join(["have a person approve it", *ways])
    return NotUndoable(f"what it changes could not be undone: {why}", hint=f"it was not run: {told}")


def _combine_reports(nested: Sequence[Mapping[str, object]]) -> Mapping[str, object] | None:
    """Return one report for several calls; None if none of them changed anything."""
    if not nested:
        return None
    told: dict[str, object] = {"kept": any(each["kept"] for each in nested)}
    for key in ("not_kept", "why", "covers"):
        if said := list(dict.fromkeys(str(each[key]) for each in nested if key in each)):
            told[key] = "; ".join(said[:MAX_SHOWN_PATHS])
    return told


def describe_unkept(lost: Sequence[UnkeptPath]) -> str:
    """Return the paths that are not kept, each with the reason, in words."""
    told = [f"{format_path(path)}: {why}" if path else why for path, why in lost[:MAX_SHOWN_PATHS]]
    more = f" and {len(lost) - MAX_SHOWN_PATHS} more" if len(lost) > MAX_SHOWN_PATHS else ""
    return ", ".join(told) + more


def _end_unwanted(engine: UndoEngine, begun: Future[CallStart]) -> None:
    if not begun.cancelled() and begun.exception() is None:
        id, stop = begun.result().id, threading.Event()
        engine.submit(lambda keeper: keeper.end(id, stop))
