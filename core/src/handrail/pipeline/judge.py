"""Judging: the verdict on a bound call, the user's approval of it, and its turn to use what it shares with other calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail.api.call import Invocation
from handrail.api.events import Judged, Scheduled
from handrail.api.verdict import Decision, Verdict
from handrail.pipeline.call_task import CallTask
from handrail.pipeline.observers import observe_and_evaluate

if TYPE_CHECKING:
    from handrail.pipeline.call_session import CallSession


async def judge_call(session: CallSession, running: CallTask, invocation: Invocation) -> tuple[Invocation, Verdict]:
    """Return the call, as observers may have edited it, with the verdict on it."""
    if session.watch is None:
        verdict = publish_verdict(session, invocation, await session.court.judge(invocation))
    else:
        invocation, verdict = await observe_and_evaluate(session, invocation, session.court.judge)
        running.invocation = invocation
    running.verdict = verdict
    _announce_if_allowed(session, invocation, verdict)
    return invocation, verdict


async def approve_call(
    session: CallSession, running: CallTask, invocation: Invocation, verdict: Verdict
) -> tuple[Invocation, Verdict]:
    """Ask the user about a call, and return it, as they may have edited it, with the new verdict."""
    from handrail.pipeline.approval_stage import confirm_call

    invocation, verdict = await confirm_call(session, invocation, verdict)
    running.invocation, running.verdict = invocation, verdict
    _announce_if_allowed(session, invocation, verdict)
    return invocation, verdict


async def wait_for_resources(
    session: CallSession, running: CallTask, invocation: Invocation, verdict: Verdict
) -> tuple[Invocation, Verdict]:
    """Wait until no other call conflicts, and return the call with its verdict."""
    if len(session.running) > 1 and not running.nested:
        return await _claim_resources(session, running, invocation, verdict)
    if running.claim is not None:
        session.scheduler.anew(running)
    return invocation, verdict


async def _claim_resources(
    session: CallSession, running: CallTask, invocation: Invocation, verdict: Verdict
) -> tuple[Invocation, Verdict]:
    """Claim what the call uses, and wait for the calls that use it.

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


def publish_verdict(session: CallSession, invocation: Invocation, verdict: Verdict) -> Verdict:
    """Publish the verdict to subscribers and return it."""
    if session.bus.listening:
        session.bus.publish(Judged(invocation.call_id, invocation.tool.name, verdict))
    return verdict


def _announce_if_allowed(session: CallSession, invocation: Invocation, verdict: Verdict) -> None:
    """Publish that the call will run as soon as nothing it uses is in use."""
    if session.bus.listening and verdict.decision is Decision.ALLOW:
        session.bus.publish(Scheduled(invocation.call_id, invocation.tool.name))
