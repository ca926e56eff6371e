"""One call, from the host's words to a recorded result.

    ToolCall ─bind─▶ Invocation ─judge─▶ Verdict ─approve─▶ Verdict ─run─▶ ToolResult ─▶ history, audit, events

Each stage takes the value before it and returns a new one; this module is the only one that knows the order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import TYPE_CHECKING, Any

from handrail.api.call import Invocation, ToolCall
from handrail.api.result import TailCall, ToolResult
from handrail.api.verdict import Decision
from handrail.errors import HandrailError, Stopped
from handrail.pipeline.bind import bind_call, bind_tail_call, wait_for_turn
from handrail.pipeline.call_task import CallTask, is_cancelled
from handrail.pipeline.finalize import (
    build_failure,
    finalize_call,
    mask_exception,
    record_result,
    refuse_duplicate_id,
)
from handrail.pipeline.handler_run import release_held_commands
from handrail.pipeline.judge import approve_call, judge_call, wait_for_resources
from handrail.pipeline.retries import run_with_retries

if TYPE_CHECKING:
    from handrail.pipeline.call_session import CallSession


def run_call(
    session: CallSession, call: ToolCall, parent: Invocation | None = None, *, running: CallTask | None = None
) -> Coroutine[Any, Any, ToolResult]:
    """Run a call, within a tracing span if tracing is on.

    Never raises to the agent, except when its own task is cancelled. `running`: the entry that the scheduler has
    already made for the call.
    """
    if session.tracing is None:
        return _process_call(session, call, parent, running)
    return session.tracing.call(lambda: _process_call(session, call, parent, running), call, parent)


async def _process_call(
    session: CallSession, call: ToolCall, parent: Invocation | None, running: CallTask | None
) -> ToolResult:
    """Drive the call through its stages, and turn whatever it ends with into a recorded result."""
    began = perf_counter()
    under_way = session.running
    if running is None:
        if call.call_id in under_way:
            return refuse_duplicate_id(session, call)
        running = under_way[call.call_id] = CallTask(call, parent is not None)
    try:
        try:
            result = await running.drive(_run_stages(session, running, parent, began))
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
        release_held_commands(session, running)
        del under_way[call.call_id]
        if running.claim is not None or running.waiters is not None:
            session.scheduler.leave(running)


async def _run_stages(session: CallSession, running: CallTask, parent: Invocation | None, began: float) -> ToolResult:
    """Run the call through all stages, and again for each call to which a handler delegates. Returns the last result."""
    await wait_for_turn(session, running, parent)
    invocation = await bind_call(session, running, parent)
    delegated: list[str] = []
    while True:
        invocation, verdict = await judge_call(session, running, invocation)
        if verdict.decision is Decision.CONFIRM:
            invocation, verdict = await approve_call(session, running, invocation, verdict)
        if len(session.running) > 1 or running.claim is not None:
            invocation, verdict = await wait_for_resources(session, running, invocation, verdict)
        running.executing = True
        session.recorder.decided(invocation, verdict, asked_for=running.call.name)
        result = await run_with_retries(session, running, invocation, verdict, began)
        if not isinstance(result, TailCall):
            break
        invocation = await bind_tail_call(session, running, result, delegated)
        delegated.append(invocation.tool.name)
    if delegated:
        result.setdefault("tail_calls", delegated)
    return result
