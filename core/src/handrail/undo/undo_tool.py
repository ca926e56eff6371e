"""The call that undoes another: made by the user (`handrail undo`, the console, `Session.undo`), never by an agent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from handrail.api.call import InfoConfirmation
from handrail.api.context import CallContext
from handrail.api.tool import Delete, Write, tool
from handrail.errors import Denied, Downstream
from handrail.fs.path_resolution import escape_deceptive_path
from handrail.undo.path_states import PathKind, format_path

if TYPE_CHECKING:
    from handrail.api.verdict import Verdict
    from handrail.undo.call_changes import CallChanges
    from handrail.undo.plans import PathPlan, UndoPlan
    from handrail.undo.selection import UndoOutcome


class UndoSession(Protocol):
    """A session, as far as undoing a call needs it."""

    @property
    def workspace(self) -> tuple[Path, ...]: ...
    @property
    def changes(self) -> CallChanges: ...


class UndoContext(CallContext, Protocol):
    """Context of a call as the tool uses it."""

    @property
    def session(self) -> UndoSession: ...
    async def about_to_change(self, paths: Sequence[Path | str]) -> None: ...


UNDO_TITLE = "Undo a call"
# Paths that a result and a question name.
MAX_SHOWN_PATHS = 20


class UndoArguments(BaseModel):
    """The call to undo, and the paths that this may touch: written to, or, where a link is, replaced or deleted themselves."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    call: str = Field(description="The call, as SESSION/ID.")
    writes: tuple[str, ...] = Field(default=(), description="Paths that are written to.")
    deletes: tuple[str, ...] = Field(default=(), description="Links that are replaced or deleted themselves.")
    final: tuple[str, ...] = Field(default=(), description="Files whose present contents nothing could bring back.")
    passed_over: tuple[str, ...] = Field(
        default=(), description="What is to be said of newer calls, which cannot be undone."
    )
    force: bool = Field(default=False, description="Undo what was changed since, too.")
    skip_changed: bool = Field(default=False, description="Leave what was changed since.")


def _describe_undo(given: UndoArguments) -> str:
    count = len(given.writes) + len(given.deletes)
    return f"Undo {given.call}: {count} {'path' if count == 1 else 'paths'}"


def _build_confirmation(given: UndoArguments, verdict: Verdict) -> InfoConfirmation:
    named = [*given.writes, *given.deletes]
    more = [f"and {len(named) - MAX_SHOWN_PATHS} more"] if len(named) > MAX_SHOWN_PATHS else []
    final = [f"cannot be brought back by redo: {path}" for path in given.final]
    return InfoConfirmation(
        _describe_undo(given), "\n".join(["puts back as they were before:", *named[:MAX_SHOWN_PATHS], *more, *final])
    )


@tool(
    name="undo_call",
    title=UNDO_TITLE,
    effects=[Write("file", arg="writes"), Delete("file", arg="deletes")],
    by_hand=True,
    timeout=600,
    trusted=True,
    describe=_describe_undo,
    confirmation=_build_confirmation,
)
async def undo_call(given: UndoArguments, context: UndoContext) -> Mapping[str, Any]:
    """Put files back as they were before a call changed them."""
    from handrail.undo import selection

    engine, session = context.session.changes.engine, context.session
    roots, stop = [str(root) for root in session.workspace], threading.Event()
    plan = await engine.run(lambda keeper: selection.find_undo_plan(keeper, given.call, roots, stop=stop))
    final = set(given.final)
    allowed = all(escape_deceptive_path(path.path) in final for path in plan.final)
    chosen = choose_paths(plan, force=given.force and allowed, skip_changed=given.skip_changed, final=allowed)
    _check_judged(chosen, given)
    await context.about_to_change([path.path for path in chosen])
    by = session.changes.record_of(context.call_id)
    work = engine.submit(lambda keeper: selection.restore_plan(keeper, plan, chosen, by=by, stop=stop))
    waiting = asyncio.wrap_future(work)
    # The loop would complain of an error that nobody looks at, where the call is cancelled once more.
    waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        done = await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # It takes back what it has done so far.
        stop.set()
        await asyncio.wait([waiting])
        raise
    told = _build_result(plan, done)
    return {**told, "passed_over": given.passed_over} if given.passed_over else told


def choose_paths(plan: UndoPlan, *, force: bool, skip_changed: bool, final: bool = False) -> list[PathPlan]:
    """Return the paths to undo.

    Raises `Downstream` if some cannot be undone and the caller has not said what to do about them.
    """
    from handrail.undo.plans import describe_obstacles

    final = final or force
    against = [path for path in plan.paths if path.conflict or path.lost or (path.no_redo and not final)]
    chosen = plan.chosen(force=force, skip_changed=skip_changed, final=final)
    if plan.hopeless or (against and not (force or skip_changed)):
        raise Downstream(
            f"nothing was undone: {describe_obstacles(against)}",
            hint=_describe_options(plan),
            details={"conflicts": [path.wire() for path in against[:MAX_SHOWN_PATHS]]},
        )
    if not chosen and against:
        raise Downstream(
            f"nothing was undone of {plan.call}: what is left of it is {describe_obstacles(against)}",
            hint=_describe_options(plan),
        )
    if not chosen:
        raise Downstream(f"there is nothing to undo of {plan.call}: its files are as they were before it")
    return chosen


def _describe_options(plan: UndoPlan) -> str:
    """Return the options that remain if there are obstacles to undoing the call."""
    if plan.hopeless:
        return "nothing of it can be put back; `handrail undo` without a name passes it over"
    ways: list[str] = []
    if any(path.acts and not path.conflict and not path.no_redo for path in plan.paths):
        ways.append("--skip-changed undoes the rest")
    if any(path.acts and path.conflict for path in plan.paths):
        ways.append("--force undoes what was changed since, too")
    if plan.final:
        ways.append("--force takes away for good what redo cannot bring back")
    return ", ".join(ways)


def _check_judged(chosen: Sequence[PathPlan], given: UndoArguments) -> None:
    writes, deletes = split_judged_paths(chosen)
    if not (set(writes) <= set(given.writes) and set(deletes) <= set(given.deletes)):
        raise Denied("other paths would be changed than were judged", hint="undo again")


def split_judged_paths(chosen: Sequence[PathPlan]) -> tuple[list[str], list[str]]:
    """Return the paths to judge as written, and the symlinks to judge as deleted.

    What is behind such a symlink is covered by it.
    """
    deletes = [each.path for each in chosen if each.now.kind is PathKind.LINK]
    behind = tuple(f"{path}/" for path in deletes)
    writes = [each.path for each in chosen if each.now.kind is not PathKind.LINK and not each.path.startswith(behind)]
    return [escape_deceptive_path(path) for path in writes], [escape_deceptive_path(path) for path in deletes]


def _build_result(plan: UndoPlan, done: UndoOutcome) -> dict[str, Any]:
    chosen = {each.path for each in done.plans}
    carried_out = [each for each in done.plans if each.path not in done.left]
    rest = [path for path in plan.paths if path.path not in chosen and (path.lost or path.conflict or path.no_redo)]
    told: dict[str, Any] = {
        "call": plan.call,
        "count": len(carried_out),
        "paths": [{"path": format_path(each.path), "step": each.step} for each in carried_out[:MAX_SHOWN_PATHS]],
        "effect": _describe_effect(done, carried_out),
    }
    if plan.unfinished is not None:
        told["finished"] = f"{plan.unfinished.session}/{plan.unfinished.root_call}"
    if rest:
        told["not_undone"] = [path.wire() for path in rest[:MAX_SHOWN_PATHS]]
    if done.also:
        told["also"] = [{"path": format_path(path), "names": names} for path, names in done.also[:MAX_SHOWN_PATHS]]
    if done.left:
        told["left"] = [format_path(path) for path in done.left[:MAX_SHOWN_PATHS]]
    if done.amiss:
        told["amiss"] = [format_path(path) for path in done.amiss[:MAX_SHOWN_PATHS]]
    return told


def _describe_effect(done: UndoOutcome, carried_out: Sequence[PathPlan]) -> str:
    if done.amiss:
        return "unverified"
    if len(carried_out) == len(done.plans):
        return "confirmed"
    return "partial" if carried_out else "none"


async def build_undo_arguments(
    session: UndoSession, call: str | None, *, force: bool, skip_changed: bool, final: bool
) -> dict[str, Any]:
    """Build the arguments of the call that undoes another, with the paths that it must touch as things are now."""
    from handrail.undo import selection

    roots, stop = [str(root) for root in session.workspace], threading.Event()
    plan = await session.changes.engine.run(lambda keeper: selection.find_undo_plan(keeper, call, roots, stop=stop))
    chosen = choose_paths(plan, force=force, skip_changed=skip_changed, final=final)
    writes, deletes = split_judged_paths(chosen)
    told: dict[str, Any] = {"call": plan.call, "writes": writes, "deletes": deletes}
    if gone := [escape_deceptive_path(path.path) for path in chosen if path.no_redo]:
        told["final"] = gone
    if plan.passed_over:
        told["passed_over"] = list(plan.passed_over)
    return {**told, "force": force, "skip_changed": skip_changed}
