"""One call, from the host's words to a recorded result.

    ToolCall ─bind─▶ Invocation ─judge─▶ Verdict ─confirm─▶ Verdict ─run─▶ ToolResult ─▶ history, audit, events

Each stage takes the value before it and gives a new one; `run_call` is the only place that knows the order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import anyio

from handrail.api.call import Invocation, ToolCall
from handrail.api.context import CallContext
from handrail.api.events import Judged, Proposed, Scheduled, Started
from handrail.api.result import TailCall, ToolResult, complete_failure, convert_to_result
from handrail.api.secret_refs import has_secret_ref
from handrail.api.verdict import Decision, Opinion, Reach, Reason, Route, Verdict, View
from handrail.errors import (
    Denied,
    DeniedByUser,
    Downstream,
    HandrailError,
    InvalidArguments,
    NoConfirmer,
    NotUndoable,
    SandboxDenied,
    Stopped,
    ToolUnavailable,
)
from handrail.json_types import MAPPING_TYPES
from handrail.pipeline.call_task import CallTask, is_cancelled
from handrail.pipeline.finalize import (
    build_failure,
    finalize_call,
    mark_stopped,
    mask_exception,
    record_result,
    refuse_duplicate_id,
)
from handrail.pipeline.observers import observe_and_evaluate

if TYPE_CHECKING:
    from handrail.api.tool import Tool
    from handrail.pipeline.approved_files import FileState
    from handrail.pipeline.call_session import CallSession
    from handrail.sandbox.confinement import Confinement

log = logging.getLogger(__name__)

# Hosts that a result says were not to be reached.
MAX_UNREACHABLE_NOTES = 5
MAX_DEPTH = 8
# How often one call may be handed on to another.
MAX_TAIL_CALLS = 8
UNSURVEYED_NOTE = (
    "The workspace has more files than are searched before a sandboxed command (`unsurveyed` names folders): secrets there could be read, and files "
    "that other programs run unasked are put aside there only before something runs on the host."
)
BYTES_TYPES = (bytes, bytearray, memoryview)
DENIAL_TYPES: Mapping[str, type[Denied]] = {"denied_by_user": DeniedByUser, "no_confirmer": NoConfirmer}


def run_call(
    session: CallSession, call: ToolCall, parent: Invocation | None = None, *, running: CallTask | None = None
) -> Coroutine[Any, Any, ToolResult]:
    """Run a call, within a tracing span if tracing is on.

    Never raises to the agent, except when its own task is cancelled. `running`: the entry that the scheduler has
    already made for the call.
    """
    if session.tracing is None:
        return process_call(session, call, parent, running)
    return session.tracing.call(lambda: process_call(session, call, parent, running), call, parent)


async def process_call(
    session: CallSession, call: ToolCall, parent: Invocation | None, running: CallTask | None
) -> ToolResult:
    """Bind, judge, confirm, run, record."""
    began = perf_counter()
    under_way = session.running
    if running is None:
        if call.call_id in under_way:
            return refuse_duplicate_id(session, call)
        running = under_way[call.call_id] = CallTask(call, parent is not None)
    try:
        try:
            result = await running.drive(_run_stages(session, call, parent, running, began))
        except HandrailError as exc:
            result = build_failure(running, exc)
        except asyncio.CancelledError as exc:
            if is_cancelled():
                cancelled = build_failure(running, Stopped("the host cancelled the call"))
                record_result(session, running, cancelled, began)
                raise
            result = build_failure(running, running.why or mask_exception(exc, call.name))
        # Handlers are plugin code, and none of them ends the program.
        except (Exception, SystemExit) as exc:  # noqa: BLE001
            result = build_failure(running, mask_exception(exc, call.name))
        if session.watch is None and not session.secrets.forms:
            return record_result(session, running, result, began)
        return await finalize_call(session, running, result, began)
    finally:
        _release_held_commands(session, running)
        del under_way[call.call_id]
        if running.claim is not None or running.waiters is not None:
            session.scheduler.leave(running)


async def _run_stages(
    session: CallSession, call: ToolCall, parent: Invocation | None, running: CallTask, began: float
) -> ToolResult:
    """Wait for the call's turn, run it through all stages, and return its result.

    The result is that of its own handler, or of the call to which the handler delegates.
    """
    if parent is None:
        if len(session.running) > 1:
            await session.scheduler.turn(running)
        if session.limits.watching:
            # By whatever name it is called, it is the same call.
            call = running.call = _with_tool_name(call, session.listing.known(call.name))
            session.limits.admit(call)
    if running.why is not None:
        raise running.why
    plain = parent is None and not call.by_hand and call.name.__class__ is str
    tool = session.listing.ready.get(call.name) if plain else None
    if tool is None:
        tool = await find_tool(session, call, nested=parent is not None)
    call = running.call = _with_tool_name(call, tool)
    invocation = running.invocation = bind_call(session, call, tool, parent)
    handed_on: list[str] = []
    while True:
        if session.watch is None:
            verdict = publish_verdict(session, invocation, await session.court.judge(invocation))
        else:
            invocation, verdict = await observe_and_evaluate(session, invocation, session.court.judge)
            running.invocation = invocation
        running.verdict = verdict
        if verdict.decision is Decision.CONFIRM:
            from handrail.pipeline.approval_stage import confirm_call

            invocation, verdict = await confirm_call(session, invocation, verdict)
            running.invocation, running.verdict = invocation, verdict
        if session.bus.listening and verdict.decision is Decision.ALLOW:
            session.bus.publish(Scheduled(invocation.call_id, invocation.tool.name))
        if len(session.running) > 1 and not running.nested:
            invocation, verdict = await _wait_for_resources(session, running, invocation, verdict)
        elif running.claim is not None:
            session.scheduler.anew(running)
        running.executing = True
        session.recorder.decided(invocation, verdict, asked_for=call.name)
        try:
            result = await run_handler(session, running, invocation, verdict)
        except NotUndoable as exc:
            result = await _confirm_not_undoable(session, running, call, exc, began)
        if isinstance(result, TailCall):
            invocation = await _bind_tail_call(session, running, result, handed_on)
            handed_on.append(invocation.tool.name)
            continue
        if "error" in result and result.error_code == SandboxDenied.code and session.court.judging.interactive:
            result = await _retry_after_denial(session, running, call, result, began)
        if handed_on:
            result.setdefault("tail_calls", handed_on)
        return result


def _with_tool_name(call: ToolCall, tool: Tool | None) -> ToolCall:
    """Return the call with the tool's canonical name if it was called by an alias."""
    return call if tool is None or tool.name == call.name else replace(call, name=tool.name)


async def _bind_tail_call(session: CallSession, running: CallTask, tail: TailCall, before: Sequence[str]) -> Invocation:
    """Bind and return the call to which a handler delegates, in place of its own.

    Raises `ToolUnavailable` after too many delegations.
    """
    if len(before) >= MAX_TAIL_CALLS:
        raise ToolUnavailable(
            f"{running.call.name} was handed on {MAX_TAIL_CALLS} times; {tail.name!r} is not run",
            details={"tail_calls": list(before)},
        )
    assert running.invocation is not None
    call = ToolCall(tail.name, tail.args, running.call.call_id)
    tool = await find_tool(session, call, nested=True)
    running.invocation = bind_call(session, call, tool, running.invocation.parent)
    return running.invocation


async def _retry_after_denial(
    session: CallSession, running: CallTask, call: ToolCall, denied: ToolResult, began: float
) -> ToolResult:
    """Run a call again after the sandbox blocked it, if the user approves.

    Returns the new result, else the original one.
    """
    assert running.invocation is not None
    first = running.verdict
    again = await ask_to_retry(session, running, running.invocation, denied)
    if again is None:
        return denied
    await finalize_call(session, running, denied, began, over=False)
    running.invocation, running.verdict = again
    session.recorder.decided(*again, asked_for=call.name)
    result = await run_handler(session, running, *again)
    # A tool that hands on does so before it runs anything in the sandbox.
    assert isinstance(result, ToolResult)
    result["sandbox_denied"] = _denial_message(denied)
    if _has_changed_files(first, denied):
        result.add_note(
            "It ran twice: what the first run may have changed before it failed was there when the second began."
        )
    return result


def _has_changed_files(verdict: Verdict | None, denied: ToolResult) -> bool:
    """Return True if a call that failed in the sandbox has changed files, as far as undo knows, or may have changed a repository."""
    return "undo" in denied or (verdict is not None and _is_repository_change(verdict))


def _release_held_commands(session: CallSession, running: CallTask) -> None:
    """Resume sandboxed commands that were held while the user was asked about the call."""
    if running.host_run is not None:
        session.end_host_run(running.host_run)
        running.host_run = None


def _is_repository_change(verdict: Verdict) -> bool:
    return any(each.changes_repositories for each in (verdict, *verdict.steps))


async def _confirm_not_undoable(
    session: CallSession, running: CallTask, call: ToolCall, why: NotUndoable, began: float
) -> ToolResult | TailCall:
    """Run a call that was allowed because of undo but cannot be undone, if the user approves.

    Raises `why` if nobody can be asked.
    """
    if not session.court.judging.interactive or running.invocation is None:
        raise why

    async def judge(invocation: Invocation) -> Verdict:
        verdict = publish_verdict(session, invocation, await session.court.judge(invocation))
        if verdict.decision is not Decision.ALLOW or not (verdict.relies_on_undo or is_unapproved(verdict)):
            return verdict
        reasons = (Reason("not_undoable", str(why)), *verdict.reasons)
        return replace(
            verdict,
            decision=Decision.CONFIRM,
            rule="undo:not_undoable",
            reasons=reasons,
            relies_on_undo=False,
            remember=None,
        )

    from handrail.pipeline.approval_stage import confirm_call
    from handrail.undo.call_changes import is_unapproved

    await finalize_call(session, running, build_failure(running, why), began, over=False)
    asked = await judge(running.invocation)
    if asked.decision is Decision.CONFIRM:
        running.invocation, asked = await confirm_call(session, running.invocation, asked, judge=judge)
    running.verdict = asked
    session.recorder.decided(running.invocation, asked, asked_for=call.name)
    return await run_handler(session, running, running.invocation, asked)


async def _wait_for_resources(
    session: CallSession, running: CallTask, invocation: Invocation, verdict: Verdict
) -> tuple[Invocation, Verdict]:
    """Wait until no other call conflicts, and return the call with its verdict.

    Judges the call again if others ran meanwhile, since they may have changed its meaning.
    """
    while verdict.decision is Decision.ALLOW and await session.scheduler.claim(running):
        now = publish_verdict(session, invocation, await session.court.judge(invocation))
        if now.decision is Decision.CONFIRM:
            if await _is_same_question(session, invocation, verdict, now):
                break
            from handrail.pipeline.approval_stage import confirm_call

            invocation, now = await confirm_call(session, invocation, now)
        verdict = now
        running.invocation, running.verdict = invocation, verdict
    return invocation, verdict


async def _is_same_question(session: CallSession, invocation: Invocation, answered: Verdict, now: Verdict) -> bool:
    """Return True if the user, having approved the call, would be asked nothing new."""
    from handrail.pipeline.command_details import build_full_confirmation

    return (
        answered.approved is not None
        and (answered.rule, answered.route, answered.parts) == (now.rule, now.route, now.parts)
        and set(now.reasons) <= set(answered.reasons)
        and answered.approved == await build_full_confirmation(session, invocation, now)
    )


async def find_tool(session: CallSession, call: ToolCall, *, nested: bool) -> Tool:
    """Return the tool that a call names, if it may be called. `nested`: a handler makes the call."""
    if session.closed:
        raise ToolUnavailable("the session is over; nothing is run in it any more")
    if not isinstance(call.name, str):  # pyright: ignore[reportUnnecessaryIsInstance] # hosts pass what a model wrote
        raise InvalidArguments(f"a tool's name is a text, not {type(call.name).__name__}")
    return await session.listing.find(call.name, nested=nested, by_hand=call.by_hand)


def bind_call(session: CallSession, call: ToolCall, tool: Tool, parent: Invocation | None) -> Invocation:
    """Return the call with its tool and validated parameters: the only place where arguments are validated."""
    if not isinstance(call.args, MAPPING_TYPES):
        raise InvalidArguments(f"{call.name}: arguments are an object, not {type(call.args).__name__}")
    if parent is not None and parent.depth + 1 >= MAX_DEPTH:
        raise ToolUnavailable(f"calls are nested {MAX_DEPTH} deep; {call.name!r} is not run")
    invocation = Invocation(tool, call.args, tool.validate(call.args), call.call_id, parent)
    if call.ask is not None:
        invocation = _require_confirmation(invocation, call.ask)
    if session.bus.listening:
        session.bus.publish(
            Proposed(call.call_id, tool.name, invocation.describe(), parent.call_id if parent else None)
        )
    return invocation


def _require_confirmation(invocation: Invocation, why: str) -> Invocation:
    """Require the user's approval of the call regardless of policy, as requested by its caller."""
    from handrail.api.observer import ObserverOpinions

    asks = Opinion("caller:asks", floor=Decision.CONFIRM, reasons=(Reason("asks", why),), trusted=False)
    return invocation.observed(ObserverOpinions((asks,)))


def _denial_message(denied: ToolResult) -> str:
    message: str = denied["error"]["message"]
    return message.removesuffix(f"; {SandboxDenied.INSTEAD}").removesuffix(f"; {SandboxDenied.ALLOWED_HOSTS}")


def _allowed_hosts(session: CallSession, verdict: Verdict) -> tuple[str, ...]:
    """Return the hosts that a call may connect to in the sandbox."""
    if verdict.reach is None:
        return verdict.hosts
    return tuple(dict.fromkeys((*verdict.hosts, *session.settings.sandbox.hosts)))


async def ask_to_retry(
    session: CallSession, running: CallTask, invocation: Invocation, denied: ToolResult
) -> tuple[Invocation, Verdict] | None:
    """Ask the user whether to retry a call that the sandbox blocked.

    If the denial names hosts, the retry is in the sandbox with access to these, otherwise on the host. Returns the call
    with an allowing verdict, or None if policy or the user denies it, or the question is cancelled.
    """
    hosts = await _find_missing_hosts(session, denied)
    view = running.verdict.view if running.verdict is not None else None
    refusal = _denial_message(denied)
    if _has_changed_files(running.verdict, denied):
        refusal = f"{refusal}; it may have changed files before it failed, and would begin anew"

    async def judge_again(invocation: Invocation) -> Verdict:
        verdict = publish_verdict(session, invocation, await session.court.judge(invocation))
        if verdict.decision is Decision.DENY:
            return verdict
        return _sandbox_retry_verdict(verdict, hosts, refusal, view) if hosts else _host_retry_verdict(verdict, refusal)

    asked = await judge_again(invocation)
    if asked.decision is Decision.DENY:
        return None
    from handrail.pipeline.approval_stage import confirm_call

    try:
        again, answered = await confirm_call(session, invocation, asked, judge=judge_again)
    except asyncio.CancelledError:
        if running.why is None:
            raise
        # Somebody stopped the question; what the sandboxed call gave is its result.
        return None
    return (again, answered) if answered.decision is Decision.ALLOW else None


async def _find_missing_hosts(session: CallSession, denied: ToolResult) -> tuple[str, ...]:
    """Return the hosts that the call was denied, if the sandbox is able to allow them."""
    hosts = denied["error"].get("details", {}).get("hosts", ())
    sandbox = (await session.runtime.sandbox()).sandbox
    return tuple(hosts) if sandbox is not None and sandbox.filters else ()


def _host_retry_verdict(verdict: Verdict, refusal: str) -> Verdict:
    """Return the verdict that asks the user to run a call again on the host."""
    return replace(
        verdict,
        decision=Decision.CONFIRM,
        route=Route.HOST,
        view=None,
        changes_repositories=(),
        steps=(),
        reach=None,
        hosts=(),
        rule="sandbox:denied",
        reasons=(Reason("sandbox_denied", f"a yes runs it again, on the host: {refusal}"), *verdict.reasons),
        remember=None,
        grantable=False,
        narrowed=(),
    )


def _sandbox_retry_verdict(verdict: Verdict, hosts: Sequence[str], refusal: str, view: View | None) -> Verdict:
    """Return the verdict that asks to run a call again in the sandbox with more hosts.

    These are the given hosts, those the call is likely to need, and those it already has.
    """
    likely = verdict.reach.hosts if verdict.reach is not None else ()
    wanted = tuple(dict.fromkeys((*hosts, *(host for host in likely if host not in verdict.hosts))))
    told = f"if approved, it runs again in the sandbox, with network to {', '.join(wanted)}: {refusal}"
    return replace(
        verdict,
        decision=Decision.CONFIRM,
        route=Route.SANDBOX,
        view=view or View.WORK,
        reach=Reach(wanted, needed=True),
        hosts=tuple(dict.fromkeys((*wanted, *verdict.hosts))),
        rule="sandbox:hosts",
        reasons=(Reason("sandbox_hosts", told), *verdict.reasons),
        remember=None,
        narrowed=(),
    )


async def _check_unchanged(session: CallSession, invocation: Invocation, verdict: Verdict) -> None:
    """Raise `Denied` if a call is no longer about what it was judged for: sandboxed commands may have moved that."""
    now = await session.court.judge(invocation)
    if [(part.argv, part.touches, part.folders) for part in now.parts] != [
        (part.argv, part.touches, part.folders) for part in verdict.parts
    ]:
        raise Denied(
            f"{invocation.tool.name} was not run: something has changed where its paths lead since it was judged",
            hint="call it again; end sandboxed commands that still run by stop_process first",
        )


async def _check_approved_files(invocation: Invocation, asked_files: Mapping[str, FileState]) -> None:
    """Raise `Denied` if a file has changed since the user was asked about the call."""
    from handrail.pipeline.approved_files import find_changed_file

    path = await anyio.to_thread.run_sync(find_changed_file, asked_files)
    if path is not None:
        raise Denied(
            f"{invocation.tool.name} was not run: {path!r} has changed since a person was asked about this call",
            hint="look at the file, then call it again; end what changes it by stop_process",
        )


def publish_verdict(session: CallSession, invocation: Invocation, verdict: Verdict) -> Verdict:
    """Publish the verdict to subscribers and return it."""
    if session.bus.listening:
        session.bus.publish(Judged(invocation.call_id, invocation.tool.name, verdict))
    return verdict


async def run_handler(
    session: CallSession, running: CallTask, invocation: Invocation, verdict: Verdict
) -> ToolResult | TailCall:
    """Run the handler under its lease and timeout. Anything but an allow is refused here."""
    if verdict.decision is not Decision.ALLOW:
        raise await _build_denial(session, invocation, verdict)
    tool = invocation.tool
    confined = verdict.route is Route.SANDBOX
    if confined:
        _release_held_commands(session, running)
    sandbox = (
        await session.confinement(tool, verdict.view, hosts=_allowed_hosts(session, verdict)) if confined else None
    )
    if sandbox is not None:
        sandbox = sandbox.keeping_repositories().changing_repository(verdict.changes_repositories)
    if not tool.read_only:
        session.check_stopped()
    if running.why is not None:
        raise running.why
    on_host = None
    written = None if tool.confinable or tool.read_only else session.written_outside(verdict)
    recorded = None if tool.read_only else await session.changes.begin(invocation, verdict)
    try:
        if sandbox is not None and _is_repository_change(verdict):
            on_host = running.host_run = await session.begin_repository_run(sandbox)
        elif sandbox is None and tool.confinable:
            on_host = await session.begin_host_run(verdict.view, running.host_run)
            running.host_run = on_host or running.host_run
            # While a person was asked, another session's command may have run and ended.
            if on_host is not None and (on_host.hold.held or verdict.approved is not None):
                await _check_unchanged(session, invocation, verdict)
            if on_host is not None and verdict.approved is not None and running.asked_files:
                await _check_approved_files(invocation, running.asked_files)
        if sandbox is not None and recorded is not None:
            sandbox = sandbox.protecting(recorded.protected)
        context = session.context_of(invocation, running, verdict=verdict, sandbox=sandbox)
        filled = invocation
        if tool.takes_text and has_secret_ref(invocation.args):
            filled = await session.secrets.filled(invocation)
            if running.why is not None:
                raise running.why
        if tool.exclusive is None:
            returned = await _start_handler(session, running, filled, context)
        else:
            async with session.lease(tool.exclusive, invocation), _mark_agent_input(session, tool):
                returned = await _start_handler(session, running, filled, context)
    except Exception as exc:
        # A handler that is stopped may fail on its way out, which is not why the call ended.
        if running.why is None or exc is running.why:
            raise
        log.debug("tool %s failed while it was stopped", tool.name, exc_info=True)
        raise running.why from exc
    finally:
        if tool.live:
            session.onlookers.ended(invocation.call_id)
        running.limit = None
        if running.watched:
            running.stop_clock()
        aside = sandbox.put_aside() if sandbox is not None else []
        if on_host is not None:
            session.end_host_run(on_host)
        _release_held_commands(session, running)
        if written is not None:
            written()
        if recorded is not None:
            recorded.over()
    if isinstance(returned, TailCall):
        if running.why is not None:
            raise running.why
        return returned
    keeps = tool.artifact is not None or isinstance(returned, BYTES_TYPES)
    result = await _store_as_artifact(session, invocation, returned) if keeps else convert_to_result(returned)
    if sandbox is not None:
        result |= {"sandbox": sandbox.name, "network": sandbox.network}
        _report_hosts(result, sandbox)
        _report_renamed(result, aside, changes_repository=_is_repository_change(verdict), title=tool.title)
        _report_not_renamed(result, sandbox.left)
        if sandbox.unsurveyed:
            result["unsurveyed"] = list(sandbox.unsurveyed)
            result.add_note(UNSURVEYED_NOTE)
    if on_host is not None:
        if on_host.aside:
            _report_renamed(result, on_host.aside)
        for note in on_host.notes():
            result.add_note(note)
    if recorded is not None:
        await recorded.tell(result)
    if result["status"] != "success" and "error" not in result:
        result = complete_failure(result, title=tool.title)
    return mark_stopped(result, running.why, tool.title) if running.why is not None else result


@asynccontextmanager
async def _mark_agent_input(session: CallSession, tool: Tool) -> AsyncGenerator[None]:
    """Mark the time of an agent's mouse or keyboard input on a desktop that the user may be using.

    Code that reads the user's answers can then tell such input from theirs.
    """
    if not tool.inputs or session.by_hand or (await session.desktop()).private:
        yield
        return
    with session.runtime.presses.made():
        yield


async def _build_denial(session: CallSession, invocation: Invocation, verdict: Verdict) -> Denied:
    """Build the error for a denied call: all reasons, how the user can allow it, and the last reason's code."""
    # Only what was denied needs it.
    from handrail.pipeline.remedies import find_remedy

    reason = verdict.reasons[-1] if verdict.reasons else Reason("denied", "policy refuses it")
    told = "; ".join(dict.fromkeys(each.text for each in verdict.reasons)) or reason.text
    error = DENIAL_TYPES.get(reason.code, Denied)
    remedy = await find_remedy(session.court, invocation, verdict)
    return error(f"{invocation.tool.name} was not run: {told}", hint=remedy, details={"rule": verdict.rule})


async def _store_as_artifact(session: CallSession, invocation: Invocation, returned: Any) -> ToolResult:
    """Store a tool's return value as an artifact and return the result, with secrets redacted in both."""
    from handrail.artifacts.result_spooling import build_result, convert_to_plain

    # What is kept as an artifact is not looked through later.
    hidden = session.secrets.hidden(convert_to_plain(returned))
    tool = invocation.tool
    artifacts = session.artifacts.of_call(invocation.call_id, tool.name, trusted=tool.trusted)
    return await build_result(hidden, tool, artifacts, limit=session.settings.output.max_bytes)


def _start_handler(
    session: CallSession, running: CallTask, invocation: Invocation, context: CallContext
) -> Coroutine[Any, Any, Any]:
    """Start the clock and return the handler's coroutine."""
    running.limit = invocation.tool.timeout_for(invocation.params)
    if running.watched:
        running.start_clock()
    if invocation.tool.live:
        session.onlookers.began(invocation.call_id)
    if session.bus.listening:
        session.bus.publish(Started(invocation.call_id, invocation.tool.name))
    return invocation.run(context)


def _report_hosts(result: ToolResult, sandbox: Confinement) -> None:
    """Name in the result the hosts that were allowed, and those that were refused."""
    if sandbox.hosts:
        result["hosts"] = list(sandbox.hosts)
    if refused := sandbox.traffic.places:
        result["refused_hosts"] = list(refused)
        if "error" not in result:
            result.add_note(f"The sandbox refused connections to {', '.join(refused)}.")
    for text in sandbox.traffic.unreachable[:MAX_UNREACHABLE_NOTES]:
        result.add_note(f"{text}.")


def _report_not_renamed(result: ToolResult, left: Sequence[str]) -> None:
    """Name in the result what should have been renamed and could not be."""
    if left:
        result["not_put_aside"] = list(left)
        result.add_note(
            f"Other programs run such files unasked, and they could not be renamed: {', '.join(left)}. "
            "Nothing runs on the host until they are gone."
        )


def _report_renamed(
    result: ToolResult, aside: Sequence[str], *, changes_repository: bool = False, title: str = ""
) -> None:
    """List in the result what was renamed in the workspace, now or during the call.

    A command that changes the repository then does not count as successful.
    """
    if not (aside := [*result.get("put_aside", ()), *aside]):
        return
    from handrail.sandbox.leftovers import ASIDE_SUFFIX

    result["put_aside"] = aside
    result.add_note(f"Renamed, since other programs run such files unasked (…{ASIDE_SUFFIX}): {', '.join(aside)}.")
    if changes_repository and result["status"] == "success":
        error = Downstream(
            "the command ended well, but files that it or another command brought were renamed, so the work tree is not as git left it",
            hint="look at `git status`; a person can approve `git checkout -f .`, which runs on the host, or give such files their names back",
        )
        result.update(ToolResult.failure(error, title=title))
