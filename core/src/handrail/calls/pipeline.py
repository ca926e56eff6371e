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

from handrail.calls.context import ToolContext
from handrail.calls.ending import failed, finish, masked, record, refuse_second, stopped
from handrail.calls.invocation import Invocation, ToolCall
from handrail.calls.named_secrets import names_secret
from handrail.calls.running import Running, is_cancelled
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
from handrail.judging.verdicts import Decision, Opinion, Reach, Reason, Route, Verdict, View
from handrail.plain import MAPPINGS
from handrail.results.values import TailCall, ToolResult, as_result, completed
from handrail.watching.events import Judged, Proposed, Scheduled, Started
from handrail.watching.observing import considered

if TYPE_CHECKING:
    from handrail.calls.approved_files import FileState
    from handrail.sandboxing.confining import Confinement
    from handrail.session import Session
    from handrail.tools.contract import Tool

log = logging.getLogger(__name__)

# Hosts that a result says were not to be reached.
MOST_UNREACHABLE = 5
MAX_DEPTH = 8
# How often one call may be handed on to another.
MAX_TAILS = 8
UNSURVEYED = (
    "The workspace has more files than are searched before a sandboxed command (`unsurveyed` names folders): secrets there could be read, and files "
    "that other programs run unasked are put aside there only before something runs on the host."
)
BYTES = (bytes, bytearray, memoryview)
REFUSALS: Mapping[str, type[Denied]] = {"denied_by_user": DeniedByUser, "no_confirmer": NoConfirmer}


def run_call(
    session: Session, call: ToolCall, parent: Invocation | None = None, *, running: Running | None = None
) -> Coroutine[Any, Any, ToolResult]:
    """The call, made; within a span where somebody traces. Never raises to the agent, except the cancellation of its own task.

    `running`: what the scheduler has entered already for the call.
    """
    if session.tracing is None:
        return through(session, call, parent, running)
    return session.tracing.call(through, call, parent, running)


async def through(session: Session, call: ToolCall, parent: Invocation | None, running: Running | None) -> ToolResult:
    """Bind, judge, confirm, run, record."""
    began = perf_counter()
    under_way = session.running
    if running is None:
        if call.call_id in under_way:
            return refuse_second(session, call)
        running = under_way[call.call_id] = Running(call, parent is not None)
    try:
        try:
            result = await running.drive(_stages(session, call, parent, running, began))
        except HandrailError as exc:
            result = failed(running, exc)
        except asyncio.CancelledError as exc:
            if is_cancelled():
                cancelled = failed(running, Stopped("the host cancelled the call"))
                record(session, running, cancelled, began)
                raise
            result = failed(running, running.why or masked(exc, call.name))
        # Handlers are plugin code, and none of them ends the program.
        except (Exception, SystemExit) as exc:  # noqa: BLE001
            result = failed(running, masked(exc, call.name))
        if session.watch is None and not session.secrets.forms:
            return record(session, running, result, began)
        return await finish(session, running, result, began)
    finally:
        _end_hold(session, running)
        del under_way[call.call_id]
        if running.claim is not None or running.waiters is not None:
            session.scheduler.leave(running)


async def _stages(
    session: Session, call: ToolCall, parent: Invocation | None, running: Running, began: float
) -> ToolResult:
    """The call's result, when its turn has come: of its own handler, or of the call that this one hands on to."""
    if parent is None:
        if len(session.running) > 1:
            await session.scheduler.turn(running)
        if session.limits.watching:
            # By whatever name it is called, it is the same call.
            call = running.call = _by_name(call, session.listing.known(call.name))
            session.limits.admit(call)
    if running.why is not None:
        raise running.why
    plain = parent is None and not call.by_hand and call.name.__class__ is str
    tool = session.listing.ready.get(call.name) if plain else None
    if tool is None:
        tool = await find(session, call, nested=parent is not None)
    call = running.call = _by_name(call, tool)
    invocation = running.invocation = bind(session, call, tool, parent)
    handed_on: list[str] = []
    while True:
        if session.watch is None:
            verdict = judged(session, invocation, await session.court.judge(invocation))
        else:
            invocation, verdict = await considered(session, invocation, session.court.judge)
            running.invocation = invocation
        running.verdict = verdict
        if verdict.decision is Decision.CONFIRM:
            from handrail.asking.confirming import confirm

            invocation, verdict = await confirm(session, invocation, verdict)
            running.invocation, running.verdict = invocation, verdict
        if session.bus.listening and verdict.decision is Decision.ALLOW:
            session.bus.publish(Scheduled(invocation.call_id, invocation.tool.name))
        if len(session.running) > 1 and not running.nested:
            invocation, verdict = await _when_free(session, running, invocation, verdict)
        elif running.claim is not None:
            session.scheduler.anew(running)
        running.executing = True
        session.recorder.decided(invocation, verdict, asked_for=call.name)
        try:
            result = await run(session, running, invocation, verdict)
        except NotUndoable as exc:
            result = await _although_not_undoable(session, running, call, exc, began)
        if isinstance(result, TailCall):
            invocation = await _tail(session, running, result, handed_on)
            handed_on.append(invocation.tool.name)
            continue
        if "error" in result and result.error_code == SandboxDenied.code and session.court.judging.interactive:
            result = await _once_more(session, running, call, result, began)
        if handed_on:
            result.setdefault("tail_calls", handed_on)
        return result


def _by_name(call: ToolCall, tool: Tool | None) -> ToolCall:
    """The call with the tool's own name, when it was called by an alias."""
    return call if tool is None or tool.name == call.name else replace(call, name=tool.name)


async def _tail(session: Session, running: Running, tail: TailCall, before: Sequence[str]) -> Invocation:
    """The bound call that a handler hands on to, in the place of its own."""
    if len(before) >= MAX_TAILS:
        raise ToolUnavailable(
            f"{running.call.name} was handed on {MAX_TAILS} times; {tail.name!r} is not run",
            details={"tail_calls": list(before)},
        )
    assert running.invocation is not None
    call = ToolCall(tail.name, tail.args, running.call.call_id)
    tool = await find(session, call, nested=True)
    running.invocation = bind(session, call, tool, running.invocation.parent)
    return running.invocation


async def _once_more(
    session: Session, running: Running, call: ToolCall, denied: ToolResult, began: float
) -> ToolResult:
    """Run a call again that the sandbox has refused something, if a person says yes to that. Returns its result, else the one it had."""
    assert running.invocation is not None
    first = running.verdict
    again = await asked_again(session, running, running.invocation, denied)
    if again is None:
        return denied
    await finish(session, running, denied, began, over=False)
    running.invocation, running.verdict = again
    session.recorder.decided(*again, asked_for=call.name)
    result = await run(session, running, *again)
    # A tool that hands on does so before it runs anything in the sandbox.
    assert isinstance(result, ToolResult)
    result["sandbox_denied"] = _refusal(denied)
    if _has_changed(first, denied):
        result.add_note(
            "It ran twice: what the first run may have changed before it failed was there when the second began."
        )
    return result


def _has_changed(verdict: Verdict | None, denied: ToolResult) -> bool:
    """Return True if a call that failed in the sandbox has changed files, as far as undo knows, or may have changed a repository."""
    return "undo" in denied or (verdict is not None and _changes_repositories(verdict))


def _end_hold(session: Session, running: Running) -> None:
    """Let sandboxed commands run on that were held while a person was asked about the call."""
    if running.host_run is not None:
        session.end_host_run(running.host_run)
        running.host_run = None


def _changes_repositories(verdict: Verdict) -> bool:
    return any(each.changes_repositories for each in (verdict, *verdict.steps))


async def _although_not_undoable(
    session: Session, running: Running, call: ToolCall, why: NotUndoable, began: float
) -> ToolResult | TailCall:
    """Run a call that was allowed because it can be undone, and cannot be, if a person approves it. Raises `why` where nobody is asked."""
    if not session.court.judging.interactive or running.invocation is None:
        raise why

    async def judge(invocation: Invocation) -> Verdict:
        verdict = judged(session, invocation, await session.court.judge(invocation))
        if verdict.decision is not Decision.ALLOW or not (verdict.relies_on_undo or is_unasked(verdict)):
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

    from handrail.asking.confirming import confirm
    from handrail.undo.call_changes import is_unasked

    await finish(session, running, failed(running, why), began, over=False)
    asked = await judge(running.invocation)
    if asked.decision is Decision.CONFIRM:
        running.invocation, asked = await confirm(session, running.invocation, asked, judge=judge)
    running.verdict = asked
    session.recorder.decided(running.invocation, asked, asked_for=call.name)
    return await run(session, running, running.invocation, asked)


async def _when_free(
    session: Session, running: Running, invocation: Invocation, verdict: Verdict
) -> tuple[Invocation, Verdict]:
    """The call and the verdict on it, when nothing is in its way any more. Whatever ran meanwhile may have changed what it means."""
    while verdict.decision is Decision.ALLOW and await session.scheduler.claim(running):
        now = judged(session, invocation, await session.court.judge(invocation))
        if now.decision is Decision.CONFIRM:
            if await _same_question(session, invocation, verdict, now):
                break
            from handrail.asking.confirming import confirm

            invocation, now = await confirm(session, invocation, now)
        verdict = now
        running.invocation, running.verdict = invocation, verdict
    return invocation, verdict


async def _same_question(session: Session, invocation: Invocation, answered: Verdict, now: Verdict) -> bool:
    """Whether a person who said yes would be asked nothing new."""
    from handrail.calls.command_questions import full_confirmation

    return (
        answered.approved is not None
        and (answered.rule, answered.route, answered.parts) == (now.rule, now.route, now.parts)
        and set(now.reasons) <= set(answered.reasons)
        and answered.approved == await full_confirmation(session, invocation, now)
    )


async def find(session: Session, call: ToolCall, *, nested: bool) -> Tool:
    """The tool that a call names, if it may be called. `nested`: a handler asks for it."""
    if session.closed:
        raise ToolUnavailable("the session is over; nothing is run in it any more")
    if not isinstance(call.name, str):  # pyright: ignore[reportUnnecessaryIsInstance] # hosts pass what a model wrote
        raise InvalidArguments(f"a tool's name is a text, not {type(call.name).__name__}")
    return await session.listing.find(call.name, nested=nested, by_hand=call.by_hand)


def bind(session: Session, call: ToolCall, tool: Tool, parent: Invocation | None) -> Invocation:
    """The call with its tool and validated parameters: the only place where arguments are checked."""
    if not isinstance(call.args, MAPPINGS):
        raise InvalidArguments(f"{call.name}: arguments are an object, not {type(call.args).__name__}")
    if parent is not None and parent.depth + 1 >= MAX_DEPTH:
        raise ToolUnavailable(f"calls are nested {MAX_DEPTH} deep; {call.name!r} is not run")
    invocation = Invocation(tool, call.args, tool.validate(call.args), call.call_id, parent)
    if call.ask is not None:
        invocation = _asking(invocation, call.ask)
    if session.bus.listening:
        session.bus.publish(
            Proposed(call.call_id, tool.name, invocation.describe(), parent.call_id if parent else None)
        )
    return invocation


def _asking(invocation: Invocation, why: str) -> Invocation:
    """The call, which a person is asked about whatever policy says: whoever nests it wants that."""
    from handrail.watching.observers import Seen

    asks = Opinion("caller:asks", floor=Decision.CONFIRM, reasons=(Reason("asks", why),), trusted=False)
    return invocation.observed(Seen((asks,)))


def _refusal(denied: ToolResult) -> str:
    message: str = denied["error"]["message"]
    return message.removesuffix(f"; {SandboxDenied.INSTEAD}").removesuffix(f"; {SandboxDenied.ALLOWED_HOSTS}")


def _hosts(session: Session, verdict: Verdict) -> tuple[str, ...]:
    """The hosts that a call may connect to in the sandbox."""
    if verdict.reach is None:
        return verdict.hosts
    return tuple(dict.fromkeys((*verdict.hosts, *session.settings.sandbox.hosts)))


async def asked_again(
    session: Session, running: Running, invocation: Invocation, denied: ToolResult
) -> tuple[Invocation, Verdict] | None:
    """Ask whether a call that the sandbox has refused something is run again. Returns it allowed, or None when policy or a person forbids it.

    Where the refusal names hosts, that is in the sandbox with these, else on the host.
    """
    hosts = await _missing_hosts(session, denied)
    view = running.verdict.view if running.verdict is not None else None
    refusal = _refusal(denied)
    if _has_changed(running.verdict, denied):
        refusal = f"{refusal}; it may have changed files before it failed, and would begin anew"

    async def judge_again(invocation: Invocation) -> Verdict:
        verdict = judged(session, invocation, await session.court.judge(invocation))
        if verdict.decision is Decision.DENY:
            return verdict
        return _with_hosts(verdict, hosts, refusal, view) if hosts else _for_host(verdict, refusal)

    asked = await judge_again(invocation)
    if asked.decision is Decision.DENY:
        return None
    from handrail.asking.confirming import confirm

    try:
        again, answered = await confirm(session, invocation, asked, judge=judge_again)
    except asyncio.CancelledError:
        if running.why is None:
            raise
        # Somebody stopped the question; what the sandboxed call gave is its result.
        return None
    return (again, answered) if answered.decision is Decision.ALLOW else None


async def _missing_hosts(session: Session, denied: ToolResult) -> tuple[str, ...]:
    """The hosts that the call was refused, where the sandbox can be told to allow them."""
    hosts = denied["error"].get("details", {}).get("hosts", ())
    sandbox = (await session.runtime.sandbox()).sandbox
    return tuple(hosts) if sandbox is not None and sandbox.filters else ()


def _for_host(verdict: Verdict, refusal: str) -> Verdict:
    """The question whether a call runs again on the host."""
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


def _with_hosts(verdict: Verdict, hosts: Sequence[str], refusal: str, view: View | None) -> Verdict:
    """The question whether a call runs again in the sandbox, with these hosts beside those that it has or is likely to need."""
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


async def _check_still(session: Session, invocation: Invocation, verdict: Verdict) -> None:
    """Raise `Denied` if a call is no longer about what it was judged for: sandboxed commands, which are paused now, may have moved that."""
    now = await session.court.judge(invocation)
    if [(part.argv, part.touches, part.folders) for part in now.parts] != [
        (part.argv, part.touches, part.folders) for part in verdict.parts
    ]:
        raise Denied(
            f"{invocation.tool.name} was not run: a sandboxed command that still runs has changed where its paths lead since it was judged",
            hint="call it again, or end that command first by stop_process",
        )


async def _check_files(invocation: Invocation, asked_files: Mapping[str, FileState]) -> None:
    """Raise `Denied` if a file that a person was asked about is another one now."""
    from handrail.calls.approved_files import changed_file

    path = await anyio.to_thread.run_sync(changed_file, asked_files)
    if path is not None:
        raise Denied(
            f"{invocation.tool.name} was not run: {path!r} has changed since a person was asked about this call",
            hint="look at the file, then call it again; end what changes it by stop_process",
        )


def judged(session: Session, invocation: Invocation, verdict: Verdict) -> Verdict:
    """The verdict, when those who listen have been told."""
    if session.bus.listening:
        session.bus.publish(Judged(invocation.call_id, invocation.tool.name, verdict))
    return verdict


async def run(session: Session, running: Running, invocation: Invocation, verdict: Verdict) -> ToolResult | TailCall:
    """Run the handler under its lease and timeout. Anything but an allow is refused here."""
    if verdict.decision is not Decision.ALLOW:
        raise await _denied(session, invocation, verdict)
    tool = invocation.tool
    confined = verdict.route is Route.SANDBOX
    if confined:
        _end_hold(session, running)
    sandbox = await session.confinement(tool, verdict.view, hosts=_hosts(session, verdict)) if confined else None
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
        if sandbox is not None and _changes_repositories(verdict):
            on_host = running.host_run = await session.begin_repository_run(sandbox)
        elif sandbox is None and tool.confinable:
            on_host = await session.begin_host_run(verdict.view, running.host_run)
            running.host_run = on_host or running.host_run
            if on_host is not None and on_host.hold.held:
                await _check_still(session, invocation, verdict)
            if on_host is not None and verdict.approved is not None and running.asked_files:
                await _check_files(invocation, running.asked_files)
        if sandbox is not None and recorded is not None:
            sandbox = sandbox.protecting(recorded.protected)
        context = ToolContext(session, invocation, running, verdict=verdict, sandbox=sandbox)
        filled = invocation
        if tool.takes_text and names_secret(invocation.args):
            filled = await session.secrets.filled(invocation)
            if running.why is not None:
                raise running.why
        if tool.exclusive is None:
            returned = await _start(session, running, filled, context)
        else:
            async with session.lease(tool.exclusive, invocation), _as_hands(session, tool):
                returned = await _start(session, running, filled, context)
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
        _end_hold(session, running)
        if written is not None:
            written()
        if recorded is not None:
            recorded.over()
    if isinstance(returned, TailCall):
        if running.why is not None:
            raise running.why
        return returned
    keeps = tool.artifact is not None or isinstance(returned, BYTES)
    result = await _kept(session, tool, context, returned) if keeps else as_result(returned)
    if sandbox is not None:
        result |= {"sandbox": sandbox.name, "network": sandbox.network}
        _tell_hosts(result, sandbox)
        _tell_aside(result, aside, changes_repository=_changes_repositories(verdict), title=tool.title)
        _tell_left(result, sandbox.left)
        if sandbox.unsurveyed:
            result["unsurveyed"] = list(sandbox.unsurveyed)
            result.add_note(UNSURVEYED)
    if on_host is not None:
        if on_host.aside:
            _tell_aside(result, on_host.aside)
        for note in on_host.notes():
            result.add_note(note)
    if recorded is not None:
        await recorded.tell(result)
    if result["status"] != "success" and "error" not in result:
        result = completed(result, title=tool.title)
    return stopped(result, running.why, tool.title) if running.why is not None else result


@asynccontextmanager
async def _as_hands(session: Session, tool: Tool) -> AsyncGenerator[None]:
    """It is known to whoever takes a person's answers while an agent works with mouse or keys where the person may be."""
    if not tool.inputs or session.by_hand or (await session.desktop()).private:
        yield
        return
    with session.runtime.presses.made():
        yield


async def _denied(session: Session, invocation: Invocation, verdict: Verdict) -> Denied:
    """What is told of a call that is not run: every reason, how a person can allow it, and the code of the last reason."""
    # Only what was denied needs it.
    from handrail.calls.remedies import find_remedy

    reason = verdict.reasons[-1] if verdict.reasons else Reason("denied", "policy refuses it")
    told = "; ".join(dict.fromkeys(each.text for each in verdict.reasons)) or reason.text
    error = REFUSALS.get(reason.code, Denied)
    remedy = await find_remedy(session.court, invocation, verdict)
    return error(f"{invocation.tool.name} was not run: {told}", hint=remedy, details={"rule": verdict.rule})


async def _kept(session: Session, tool: Tool, context: ToolContext, returned: Any) -> ToolResult:
    """The result of a tool whose text becomes an artifact."""
    from handrail.artifacts.spooling import plain, spooled

    # What is kept as an artifact is not looked through later.
    hidden = session.secrets.hidden(plain(returned))
    return await spooled(hidden, tool, context.artifacts, limit=session.settings.output.max_bytes)


def _start(
    session: Session, running: Running, invocation: Invocation, context: ToolContext
) -> Coroutine[Any, Any, Any]:
    """The handler's coroutine, with its clock running."""
    running.limit = invocation.tool.timeout_for(invocation.params)
    if running.watched:
        running.start_clock()
    if invocation.tool.live:
        session.onlookers.began(invocation.call_id)
    if session.bus.listening:
        session.bus.publish(Started(invocation.call_id, invocation.tool.name))
    return invocation.run(context)


def _tell_hosts(result: ToolResult, sandbox: Confinement) -> None:
    """Name in the result the hosts that were allowed, and those that were refused."""
    if sandbox.hosts:
        result["hosts"] = list(sandbox.hosts)
    if refused := sandbox.traffic.places:
        result["refused_hosts"] = list(refused)
        if "error" not in result:
            result.add_note(f"The sandbox refused connections to {', '.join(refused)}.")
    for text in sandbox.traffic.unreachable[:MOST_UNREACHABLE]:
        result.add_note(f"{text}.")


def _tell_left(result: ToolResult, left: Sequence[str]) -> None:
    """Name in the result what should have been renamed and could not be."""
    if left:
        result["not_put_aside"] = list(left)
        result.add_note(
            f"Other programs run such files unasked, and they could not be renamed: {', '.join(left)}. "
            "Nothing runs on the host until they are gone."
        )


def _tell_aside(result: ToolResult, aside: Sequence[str], *, changes_repository: bool = False, title: str = "") -> None:
    """Name in the result what was renamed in the workspace, now or while the call ran; then git's own changes are no success."""
    if not (aside := [*result.get("put_aside", ()), *aside]):
        return
    from handrail.sandboxing.aside import ASIDE

    result["put_aside"] = aside
    result.add_note(f"Renamed, since other programs run such files unasked (…{ASIDE}): {', '.join(aside)}.")
    if changes_repository and result["status"] == "success":
        error = Downstream(
            "the command ended well, but files that it or another command brought were renamed, so the work tree is not as git left it",
            hint="look at `git status`; a person can approve `git checkout -f .`, which runs on the host, or give such files their names back",
        )
        result.update(ToolResult.failure(error, title=title))
