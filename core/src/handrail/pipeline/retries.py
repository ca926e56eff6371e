"""Running a call, and running it again with the user's approval where the sandbox blocked it or undo could not keep what it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.api.call import Invocation
from handrail.api.result import TailCall, ToolResult
from handrail.api.verdict import Decision, Reach, Reason, Route, Verdict, View
from handrail.errors import NotUndoable, SandboxDenied
from handrail.pipeline.call_task import CallTask
from handrail.pipeline.finalize import build_failure, finalize_call
from handrail.pipeline.handler_run import is_repository_change, run_handler
from handrail.pipeline.judge import publish_verdict

if TYPE_CHECKING:
    from handrail.pipeline.call_session import CallSession


async def run_with_retries(
    session: CallSession, running: CallTask, invocation: Invocation, verdict: Verdict, began: float
) -> ToolResult | TailCall:
    """Run the handler, and ask the user about another run if the first one was refused by undo or blocked by the sandbox."""
    try:
        result = await run_handler(session, running, invocation, verdict)
    except NotUndoable as exc:
        result = await _confirm_not_undoable(session, running, exc, began)
    if isinstance(result, TailCall):
        return result
    if "error" in result and result.error_code == SandboxDenied.code and session.court.judging.interactive:
        return await _retry_after_denial(session, running, result, began)
    return result


async def _confirm_not_undoable(
    session: CallSession, running: CallTask, why: NotUndoable, began: float
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
    session.recorder.decided(running.invocation, asked, asked_for=running.call.name)
    return await run_handler(session, running, running.invocation, asked)


async def _retry_after_denial(session: CallSession, running: CallTask, denied: ToolResult, began: float) -> ToolResult:
    """Run a call again after the sandbox blocked it, if the user approves.

    Returns the new result, else the original one.
    """
    assert running.invocation is not None
    first = running.verdict
    again = await _ask_to_retry(session, running, running.invocation, denied)
    if again is None:
        return denied
    await finalize_call(session, running, denied, began, over=False)
    running.invocation, running.verdict = again
    session.recorder.decided(*again, asked_for=running.call.name)
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
    return "undo" in denied or (verdict is not None and is_repository_change(verdict))


def _denial_message(denied: ToolResult) -> str:
    message: str = denied["error"]["message"]
    return message.removesuffix(f"; {SandboxDenied.INSTEAD}").removesuffix(f"; {SandboxDenied.ALLOWED_HOSTS}")


async def _ask_to_retry(
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
        reasons=(Reason("sandbox_denied", f"if approved, it runs again, on the host: {refusal}"), *verdict.reasons),
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
