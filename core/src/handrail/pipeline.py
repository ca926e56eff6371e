"""One call, from the host's words to a recorded result.

    ToolCall ─bind─▶ Invocation ─judge─▶ Verdict ─confirm─▶ Verdict ─run─▶ ToolResult ─▶ history, audit, events

Each stage takes the value before it and gives a new one; `run_call` is the only place that knows the order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from handrail.context import ToolContext
from handrail.errors import (
    Denied,
    DeniedByUser,
    Downstream,
    HandrailError,
    InvalidArguments,
    NoConfirmer,
    SandboxDenied,
    Stopped,
    ToolUnavailable,
)
from handrail.events import Finished, Judged, Output, Proposed, Started
from handrail.invocation import Invocation, ToolCall
from handrail.judging import Decision, Reason, Route, Verdict
from handrail.named_secrets import names_secret
from handrail.observing import considered
from handrail.results import MAPPINGS, ToolResult, as_result, completed
from handrail.running import Running, begin

if TYPE_CHECKING:
    from handrail.confining import Confinement
    from handrail.observing import Outcome
    from handrail.session import Session

log = logging.getLogger(__name__)

MAX_DEPTH = 8
BYTES = (bytes, bytearray, memoryview)
REFUSALS: Mapping[str, type[Denied]] = {"denied_by_user": DeniedByUser, "no_confirmer": NoConfirmer}


async def run_call(session: Session, call: ToolCall, parent: Invocation | None = None) -> ToolResult:
    """Bind, judge, confirm, run, record. Never raises to the agent, except the cancellation of its own task."""
    began = perf_counter()
    invocation: Invocation | None = None
    verdict: Verdict | None = None
    try:
        invocation = await bind(session, call, parent)
        if session.watch is None:
            verdict = judged(session, invocation, await session.judge(invocation))
        else:
            invocation, verdict = await considered(session, invocation, session.judge)
        if verdict.decision is Decision.CONFIRM:
            from handrail.confirming import confirm

            invocation, verdict = await confirm(session, invocation, verdict)
        session.recorder.decided(invocation, verdict)
        result = await run(session, invocation, verdict)
        if "error" in result and result.error_code == SandboxDenied.code and session.confirmer is not None:
            again = await on_host(session, invocation, result)
            if again is not None:
                await finish(session, call, invocation, verdict, result, began)
                invocation, verdict = again
                began, refusal = perf_counter(), _refusal(result)
                session.recorder.decided(invocation, verdict)
                result = await run(session, invocation, verdict)
                result["sandbox_denied"] = refusal
    except HandrailError as exc:
        result = ToolResult.failure(exc, title=_title(invocation, call))
    except asyncio.CancelledError:
        cancelled = ToolResult.failure(Stopped("the host cancelled the call"), title=_title(invocation, call))
        record(session, call, invocation, verdict, cancelled, began)
        raise
    # Handlers are plugin code, and none of them ends the program.
    except (Exception, SystemExit) as exc:  # noqa: BLE001
        result = ToolResult.failure(_masked(exc, call.name), title=_title(invocation, call))
    if session.watch is None and not session.secrets.forms:
        return record(session, call, invocation, verdict, result, began)
    return await finish(session, call, invocation, verdict, result, began)


async def finish(
    session: Session,
    call: ToolCall,
    invocation: Invocation | None,
    verdict: Verdict | None,
    result: ToolResult,
    began: float,
) -> ToolResult:
    """Take secrets out of what came of a call, let observers look at it, and record it."""
    if session.secrets.forms:
        hidden = session.secrets.hidden(result)
        result = hidden if hidden is result else ToolResult(hidden)
    if session.watch is None or invocation is None:
        return record(session, call, invocation, verdict, result, began)
    try:
        looked = await session.watch.finish(invocation, verdict, result)
    except asyncio.CancelledError:
        # Nobody is given a result any more, and what happened is kept.
        record(session, call, invocation, verdict, result, began)
        raise
    return record(session, call, invocation, verdict, looked.result, began, looked)


def not_begun(session: Session, call: ToolCall, why: Stopped) -> ToolResult:
    """The recorded result of a call that was stopped before its turn came."""
    return record(session, call, None, None, ToolResult.failure(why, title=_title(None, call)), perf_counter())


async def bind(session: Session, call: ToolCall, parent: Invocation | None) -> Invocation:
    """The call with its tool and validated parameters: the only place where arguments are checked."""
    if session.closed:
        raise ToolUnavailable("the session is over; nothing is run in it any more")
    if not isinstance(call.name, str):  # pyright: ignore[reportUnnecessaryIsInstance] # hosts pass what a model wrote
        raise InvalidArguments(f"a tool's name is a text, not {type(call.name).__name__}")
    tool = session.ready.get(call.name) if parent is None else None
    if tool is None:
        tool = await session.callable_tool(call.name, nested=parent is not None)
    if not isinstance(call.args, MAPPINGS):
        raise InvalidArguments(f"{call.name}: arguments are an object, not {type(call.args).__name__}")
    if parent is not None and parent.depth + 1 >= MAX_DEPTH:
        raise ToolUnavailable(f"calls are nested {MAX_DEPTH} deep; {call.name!r} is not run")
    invocation = Invocation(tool, call.args, tool.validate(call.args), call.call_id, parent)
    if session.bus.listening:
        session.bus.publish(
            Proposed(call.call_id, tool.name, invocation.describe(), parent.call_id if parent else None)
        )
    return invocation


def _refusal(denied: ToolResult) -> str:
    return denied["error"]["message"].removesuffix(f"; {SandboxDenied.INSTEAD}")


async def on_host(session: Session, invocation: Invocation, denied: ToolResult) -> tuple[Invocation, Verdict] | None:
    """The call, allowed on the host, that the sandbox has refused something: when policy does not forbid it and a person says yes; else None."""
    reason = Reason("sandbox_denied", f"a yes runs it again, on the host: {_refusal(denied)}")

    async def for_host(invocation: Invocation) -> Verdict:
        verdict = judged(session, invocation, await session.judge(invocation))
        if verdict.decision is Decision.DENY:
            return verdict
        return replace(
            verdict,
            decision=Decision.CONFIRM,
            route=Route.HOST,
            rule="sandbox:denied",
            reasons=(reason, *verdict.reasons),
            remember=None,
            grantable=False,
            narrowed=(),
        )

    asked = await for_host(invocation)
    if asked.decision is Decision.DENY:
        return None
    from handrail.confirming import confirm

    try:
        again, answered = await confirm(session, invocation, asked, judge=for_host)
    # Somebody stopped the question; what the sandboxed call gave is its result.
    except Stopped:
        return None
    return (again, answered) if answered.decision is Decision.ALLOW else None


def judged(session: Session, invocation: Invocation, verdict: Verdict) -> Verdict:
    """The verdict, when those who listen have been told."""
    if session.bus.listening:
        session.bus.publish(Judged(invocation.call_id, invocation.tool.name, verdict))
    return verdict


async def run(session: Session, invocation: Invocation, verdict: Verdict) -> ToolResult:
    """Run the handler under its lease and timeout. Anything but an allow is refused here."""
    if verdict.decision is not Decision.ALLOW:
        reason = verdict.reasons[-1] if verdict.reasons else Reason("denied", "policy refuses it")
        told = "; ".join(dict.fromkeys(r.text for r in verdict.reasons)) or reason.text
        error = REFUSALS.get(reason.code, Denied)
        raise error(f"{invocation.tool.name} was not run: {told}", details={"rule": verdict.rule})
    tool = invocation.tool
    sandbox = await session.confinement(tool) if verdict.route is Route.SANDBOX else None
    if not tool.read_only:
        session.check_stopped()
    timeout = tool.timeout_for(invocation.params)
    running = begin(session.running, Running(invocation.call_id, timeout, ticking=tool.exclusive is None))
    if session.bus.listening:
        session.bus.publish(Started(invocation.call_id, tool.name))
    try:
        context = ToolContext(session, invocation, running, verdict=verdict, sandbox=sandbox)
        filled = invocation
        if tool.takes_text and names_secret(invocation.args):
            filled = await session.secrets.filled(invocation)
            if running.why is not None:
                raise running.why
        handler = filled.run(context) if tool.exclusive is None else _leased(session, filled, running, context)
        returned = await running.drive(handler)
    except Exception as exc:
        # A handler that is stopped may fail on its way out, which is not why the call ended.
        if running.why is None or exc is running.why:
            raise
        log.debug("tool %s failed while it was stopped", tool.name, exc_info=True)
        raise running.why from exc
    finally:
        del session.running[invocation.call_id]
        aside = sandbox.put_aside() if sandbox is not None else []
    if session.secrets.forms and isinstance(returned, str):
        # What is kept as an artifact is not looked through later.
        returned = session.secrets.hidden(returned)
    if tool.artifact is not None or isinstance(returned, BYTES):
        from handrail.spooling import spooled

        result = await spooled(returned, tool, context.artifacts, limit=session.settings.output.max_bytes)
    else:
        result = as_result(returned)
    if sandbox is not None:
        _tell(result, sandbox, aside)
    if result["status"] != "success" and "error" not in result:
        result = completed(result, title=tool.title)
    return _stopped(result, running.why, tool.title) if running.why is not None else result


def _tell(result: ToolResult, sandbox: Confinement, aside: Sequence[str]) -> None:
    """Say in the result where it ran, and what was undone afterwards."""
    result |= {"sandbox": sandbox.name, "network": sandbox.network}
    if aside:
        from handrail.confining import ASIDE

        result["put_aside"] = list(aside)
        note = f"Renamed, since other programs run such files unasked (…{ASIDE}): {', '.join(aside)}."
        result["note"] = f"{result['note']} {note}" if result.get("note") else note


async def _leased(session: Session, invocation: Invocation, running: Running, context: ToolContext) -> Any:
    tool = invocation.tool
    assert tool.exclusive is not None
    async with session.lease(tool.exclusive, invocation):
        running.start_clock()
        return await invocation.run(context)


def record(
    session: Session,
    call: ToolCall,
    invocation: Invocation | None,
    verdict: Verdict | None,
    result: ToolResult,
    began: float,
    looked: Outcome | None = None,
) -> ToolResult:
    """Keep what happened, whatever it was, and give the result back."""
    if invocation is not None and not invocation.tool.trusted:
        try:
            result = session.present(invocation, verdict, result)
        # Handlers return anything: texts and mappings of their own kinds, which may fail at a touch.
        except Exception as exc:
            log.exception("the result of %s cannot be shown", invocation.tool.name)
            result = ToolResult.failure(_masked(exc, invocation.tool.name), title=invocation.tool.title)
    result.setdefault("duration_ms", round((perf_counter() - began) * 1000))
    if invocation is not None and invocation.before is not None:
        # What ran, or was refused, is not what the model asked for.
        result.setdefault("edited_args", dict(invocation.args))
        result.setdefault("edited_by", list(invocation.changes()))
    if invocation is not None and invocation.tool.name != call.name:
        # It was called by an alias.
        call = replace(call, name=invocation.tool.name)
    session.recorder.finished(call, invocation, verdict, result, looked)
    if session.bus.listening:
        for stream, text in session.secrets.rest(call.call_id):
            session.bus.publish(Output(call.call_id, stream, text))
        session.bus.publish(
            Finished(
                call.call_id,
                call.name,
                result["status"],
                result["duration_ms"],
                result.error_code,
                result.get("effect"),
            )
        )
    return result


def _stopped(result: ToolResult, why: Stopped, title: str) -> ToolResult:
    """What a handler still returned after it was stopped, under the true status."""
    return ToolResult({**result, **ToolResult.failure(why, title=title)})


def _masked(exc: BaseException, name: str) -> HandrailError:
    """What the model is told of a foreign error: its type only, with the whole in the log. An error of ours may come out of a task group."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:  # pyright: ignore[reportUnknownArgumentType,reportUnknownMemberType]
        exc = exc.exceptions[0]  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    if isinstance(exc, HandrailError):
        return exc
    log.error("tool %s crashed", name, exc_info=exc)  # pyright: ignore[reportUnknownArgumentType]
    return Downstream(f"{name} failed inside: {type(exc).__name__}")  # pyright: ignore[reportUnknownArgumentType]


def _title(invocation: Invocation | None, call: ToolCall) -> str:
    return invocation.tool.title if invocation is not None else str(call.name).replace("_", " ").capitalize()
