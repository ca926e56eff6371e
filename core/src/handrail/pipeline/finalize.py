"""End of every call: secrets redacted, observers consulted, result cleaned for the model, recorded and published."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from handrail.api.call import Invocation, ToolCall
from handrail.api.events import Finished, Output
from handrail.api.observer import FIXED_KEYS
from handrail.api.result import ToolResult
from handrail.errors import Downstream, HandrailError, InvalidArguments, Stopped
from handrail.json_types import is_object
from handrail.pipeline.call_task import CallTask
from handrail.pipeline.result_sanitizer import sanitize_result

if TYPE_CHECKING:
    from handrail.pipeline.call_session import CallSession
    from handrail.pipeline.observers import ObservedResult

__all__ = ["refuse_duplicate_id"]

log = logging.getLogger(__name__)


async def finalize_call(
    session: CallSession, running: CallTask, result: ToolResult, began: float, *, over: bool = True
) -> ToolResult:
    """Redact secrets from the result of a call, let observers inspect it, and record it.

    `over`: this is the last work of the call, and cancelling the call ends it; otherwise cancelling the awaiting task
    does.
    """
    if session.secrets.forms:
        result = _remove_secrets(session, result)
    if session.watch is None or running.invocation is None:
        return record_result(session, running, result, began)
    try:
        looked = await session.watch.finish(running.invocation, running.verdict, result, running if over else None)
    except asyncio.CancelledError:
        # Nobody is given a result any more, and what happened is kept.
        record_result(session, running, result, began)
        raise
    if looked.original is not None and (gone := session.artifacts.withdraw(running.call.call_id)):
        # They hold what an observer has rewritten or withheld.
        kept = {key: value for key, value in looked.result.items() if not _is_artifact_handle(value, gone)}
        looked = replace(looked, result=ToolResult(kept))
    return record_result(session, running, looked.result, began, looked)


def _remove_secrets(session: CallSession, result: ToolResult) -> ToolResult:
    """Redact the secrets given to calls from a result, except in Handrail's own keys, its status and its error code.

    Those stay even if a secret has the same text.
    """
    hidden, shown = session.secrets.hidden, ToolResult()
    for key, value in result.items():
        if key == "status":
            shown[key] = value
        elif key == "error" and is_object(value):
            shown[key] = {name: each if name == "code" else hidden(each) for name, each in value.items()}
        else:
            shown[key if key in FIXED_KEYS else hidden(key)] = hidden(value)
    return shown


def _is_artifact_handle(value: Any, handles: Collection[str]) -> bool:
    """Return True if a part of a result is the handle of one of these artifacts."""
    return is_object(value) and value.get("id") in handles


def record_result(
    session: CallSession, running: CallTask, result: ToolResult, began: float, looked: ObservedResult | None = None
) -> ToolResult:
    """Clean, record and publish the result of a call, regardless of its status, and return it."""
    call, invocation, verdict = running.call, running.invocation, running.verdict
    if invocation is not None and not invocation.tool.trusted:
        try:
            result = sanitize_result(session, invocation, verdict, result)
        # Handlers return anything: texts and mappings of their own kinds, which may fail at a touch.
        except Exception as exc:
            log.exception("the result of %s cannot be shown", invocation.tool.name)
            result = ToolResult.failure(mask_exception(exc, invocation.tool.name), title=invocation.tool.title)
    elif invocation is not None and session.artifacts.unclaimed:
        session.artifacts.claim(invocation.call_id, None)
    if "error" in result and (own := session.temporary) is not None:
        result["error"] = _map_temporary_paths(result["error"], str(own))
    result.setdefault("duration_ms", round((perf_counter() - began) * 1000))
    if invocation is not None and invocation.before is not None:
        # What ran, or was refused, is not what the model asked for.
        result.setdefault("edited_args", dict(invocation.args))
        result.setdefault("edited_by", list(invocation.changes()))
    if invocation is None or invocation.parent is None:
        limits = session.limits
        if limits.watching or result["status"] != "success":
            limits.count(call, result, changed=invocation is not None and not invocation.tool.read_only)
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


def _map_temporary_paths(error: Any, temporary: str) -> Any:
    """Return the error with paths in the session's private folder shown as its commands see them, in /tmp."""
    if not is_object(error):
        return error
    return {key: each.replace(temporary, "/tmp") if isinstance(each, str) else each for key, each in error.items()}


def build_failure(running: CallTask, error: HandrailError) -> ToolResult:
    """Build the result of a failed call. If it was stopped while the user was asked, it keeps what they were shown."""
    result = ToolResult.failure(error, title=_find_title(running.invocation, running.call))
    if running.asked is not None:
        from handrail.api.call import confirmation_wire

        result["confirmation"] = confirmation_wire(running.asked)
    return result


def refuse_duplicate_id(session: CallSession, call: ToolCall) -> ToolResult:
    """Return the failure of a call whose id is already in use: cancelling by id would be ambiguous."""
    twice = InvalidArguments(f"a call with the id {call.call_id!r} is under way", hint="give each call its own id")
    running = CallTask(call)
    return record_result(session, running, build_failure(running, twice), perf_counter())


def record_unstarted(session: CallSession, running: CallTask) -> None:
    """Record a call that was cancelled before its task took a step."""
    cancelled = build_failure(running, Stopped("the host cancelled the call"))
    record_result(session, running, cancelled, perf_counter())
    del session.running[running.call.call_id]
    session.scheduler.leave(running)


def mark_stopped(result: ToolResult, why: Stopped, title: str) -> ToolResult:
    """Return what a handler returned after it was stopped, under the true status."""
    return ToolResult({**result, **ToolResult.failure(why, title=title)})


def mask_exception(exc: BaseException, name: str) -> HandrailError:
    """Return the error shown to the model: for a foreign exception only its type, with the details in the log.

    A Handrail error is returned as it is, even from within a task group's exception group.
    """
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:  # pyright: ignore[reportUnknownArgumentType,reportUnknownMemberType]
        exc = exc.exceptions[0]  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    if isinstance(exc, HandrailError):
        return exc
    log.error("tool %s crashed", name, exc_info=exc)  # pyright: ignore[reportUnknownArgumentType]
    return Downstream(f"{name} failed inside: {type(exc).__name__}")  # pyright: ignore[reportUnknownArgumentType]


def _find_title(invocation: Invocation | None, call: ToolCall) -> str:
    return invocation.tool.title if invocation is not None else str(call.name).replace("_", " ").capitalize()
