"""The confirm stage: a question made of a call and its verdict, and a verdict made of the answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from handrail.api.approval import LASTING_CHOICES, Answer, Approval, ApprovalStep, Choice, Confirmer
from handrail.api.call import Invocation
from handrail.api.events import ApprovalAnswered, ApprovalAsked
from handrail.api.verdict import Decision, Reason, Route, SubCommand, Verdict
from handrail.errors import DeniedByUser, InvalidArguments, NoConfirmer
from handrail.pipeline.approved_files import read_file_states
from handrail.pipeline.command_details import build_full_confirmation
from handrail.pipeline.observers import EvaluateCall, observe_and_evaluate
from handrail.policy import grants
from handrail.redaction import REDACTED_TEXT, SECRET_VALUES, is_secret_name

if TYPE_CHECKING:
    from handrail.pipeline.call_session import CallSession
    from handrail.pipeline.call_task import CallTask

__all__ = ["confirm_call"]

log = logging.getLogger(__name__)

# How often one call may be changed before it is a no.
MAX_EDITS = 10
CONFIRM_PHRASE = "do it"
PERSON = "a person"
# Shorter values of variables are found in any text by chance.
MIN_SECRET_CHARS = 4


async def confirm_call(
    session: CallSession, invocation: Invocation, verdict: Verdict, *, judge: EvaluateCall | None = None
) -> tuple[Invocation, Verdict]:
    """Ask the user about a call; return the call, possibly edited, and the answer as a verdict.

    If nobody can answer, or the confirmer fails, the call is denied. `judge` returns the verdict when the call is
    judged again or was edited; default: the session's.
    """
    judge = judge or session.court.judge
    note = ""
    for _ in range(MAX_EDITS):
        if await _hold_commands(session, invocation, verdict):
            # What was judged may have changed before they were held.
            invocation, verdict = await observe_and_evaluate(session, invocation, judge)
            if verdict.decision is not Decision.CONFIRM:
                return invocation, verdict
        outcome = await _ask_person(session, invocation, verdict, note, judge)
        if isinstance(outcome, Verdict):
            return invocation, outcome
        try:
            # What a person wrote is looked at by observers anew, as if it had come so.
            invocation, note = invocation.edited(outcome.args or {}, by=PERSON).observed(None), ""
        except InvalidArguments as exc:
            note = f"the changed arguments do not fit: {exc}"
            continue
        invocation, verdict = await observe_and_evaluate(session, invocation, judge)
        if verdict.decision is not Decision.CONFIRM:
            return invocation, verdict
    return invocation, deny_verdict(verdict, "denied_by_user", f"it was changed {MAX_EDITS} times without a yes")


async def _hold_commands(session: CallSession, invocation: Invocation, verdict: Verdict) -> bool:
    """Hold the session's sandboxed commands until a call on the host is over; return True if any were held now.

    The call then runs what the user was shown.
    """
    running = session.running[invocation.call_id]
    if running.host_run is not None or session.confirmer is None or not _may_run_on_host(invocation, verdict):
        return False
    running.host_run = await session.begin_question()
    return running.host_run.hold.held


def _may_run_on_host(invocation: Invocation, verdict: Verdict) -> bool:
    return invocation.tool.confinable and verdict.route is Route.HOST


async def _ask_person(
    session: CallSession, invocation: Invocation, verdict: Verdict, note: str, judge: EvaluateCall
) -> Answer | Verdict:
    """Ask the user, and return the resulting verdict, or the answer itself if it edits the call.

    If nobody can be asked, returns a verdict that denies.
    """
    confirmer = session.confirmer
    if confirmer is None:
        return deny_verdict(verdict, "no_confirmer", "it needs a yes, and nobody is there to give it")
    if verdict.catastrophic and not session.court.judging.at_terminal:
        return deny_verdict(
            verdict, "needs_terminal", "it is catastrophic: only a person at a terminal may say yes to it"
        )
    approval = await build_approval(session, invocation, verdict, note)
    name = invocation.tool.name
    session.bus.publish(ApprovalAsked(invocation.call_id, name, approval.confirmation, approval.id))
    outcome = await _await_answer(session, confirmer, approval, lambda: judge(invocation))
    answered, by = (outcome.choice, outcome.by) if isinstance(outcome, Answer) else (str(outcome.decision), "")
    session.bus.publish(ApprovalAnswered(invocation.call_id, name, answered, approval.id, by))
    if isinstance(outcome, Verdict) or outcome.choice is Choice.EDIT:
        return outcome
    return _apply_answer(session, invocation, approval, outcome)


async def _await_answer(
    session: CallSession, confirmer: Confirmer, approval: Approval, again: Callable[[], Awaitable[Verdict]]
) -> Answer | Verdict:
    running = session.running[approval.call_id]
    running.asked = approval.confirmation
    running.asked_files = None
    if running.invocation is not None and _may_run_on_host(running.invocation, approval.verdict):
        running.asked_files = await anyio.to_thread.run_sync(read_file_states, approval.verdict, session.workspace)
    session.scheduler.look_again(running)
    try:
        with ExitStack() as clocks:
            for outer in _iter_outer_calls(session, running):
                clocks.enter_context(outer.resting())
            outcome = await session.approvals.ask(approval, confirmer, again)
    except (NoConfirmer, DeniedByUser) as exc:
        outcome = deny_verdict(approval.verdict, exc.code, str(exc))
    # Confirmers are hosts' code; one that fails has not said yes.
    except Exception:
        log.exception("the confirmer failed on %s", approval.tool)
        outcome = deny_verdict(approval.verdict, NoConfirmer.code, "asking for a yes failed, and nobody gave one")
    # A confirmer that still answers after the call was stopped answers a question that is gone.
    if running.why is not None:
        raise running.why
    running.asked = None
    return outcome


def _iter_outer_calls(session: CallSession, running: CallTask) -> Iterator[CallTask]:
    """Yield the running calls that enclose this one."""
    parent = running.invocation.parent if running.invocation is not None else None
    while parent is not None:
        if (outer := session.running.get(parent.call_id)) is not None:
            yield outer
        parent = parent.parent


async def build_approval(session: CallSession, invocation: Invocation, verdict: Verdict, note: str = "") -> Approval:
    """Build the approval request for a call."""
    return Approval(
        id=session.approvals.next_id(),
        call_id=invocation.call_id,
        call_hash=invocation.call_hash,
        tool=invocation.tool.name,
        args=invocation.args,
        confirmation=await build_full_confirmation(session, invocation, verdict),
        verdict=verdict,
        grants=grants.build_grant_options(invocation, verdict),
        steps=build_approval_steps(verdict.parts, invocation, session.court.judging.environment),
        note=note,
        phrase=CONFIRM_PHRASE if verdict.catastrophic else "",
        expires=session.settings.confirmation.expires,
        among=session.approvals,
    )


def _apply_answer(session: CallSession, invocation: Invocation, approval: Approval, answer: Answer) -> Verdict:
    """Return the verdict after an approval or a denial, and remember a lasting approval."""
    verdict = approval.verdict
    who = f"a person {answer.by}" if answer.by else "a person"
    if answer.choice is Choice.DENY:
        said = f"{who} said no: {answer.feedback}" if answer.feedback else f"{who} said no"
        return deny_verdict(verdict, "denied_by_user", said)
    if not verdict.catastrophic:
        _remember_answer(session, invocation, verdict, answer)
    reasons = (*verdict.reasons, Reason("approved", f"{who} said yes"))
    return replace(verdict, decision=Decision.ALLOW, reasons=reasons, approved=approval.confirmation)


def _remember_answer(session: CallSession, invocation: Invocation, verdict: Verdict, answer: Answer) -> None:
    options = grants.build_grant_options(invocation, verdict) if answer.choice in LASTING_CHOICES else ()
    session.court.approved(verdict, answer.grant or next(iter(options), None), always=answer.choice is Choice.ALWAYS)
    session.approvals.reconsider()


def deny_verdict(verdict: Verdict, code: str, text: str) -> Verdict:
    """Return the verdict changed to a denial with this reason."""
    return replace(verdict, decision=Decision.DENY, reasons=(*verdict.reasons, Reason(code, text)))


def build_approval_steps(
    parts: tuple[SubCommand, ...], invocation: Invocation, environment: Mapping[str, str]
) -> tuple[ApprovalStep, ...]:
    """Return what each part does, in its decoded words. Decoding brings in values of variables, and those that are secret stay out."""
    written = "\n".join(value for value in invocation.args.values() if isinstance(value, str))
    secrets = {
        value: f"[the value of ${name}]"
        for name, value in environment.items()
        if is_secret_name(name) and len(value) >= MIN_SECRET_CHARS and value not in written
    }
    return tuple(
        ApprovalStep(
            tuple(_mask_secrets(word, written, secrets) for word in part.argv),
            tuple(replace(touch, what=_mask_secrets(touch.what, written, secrets)) for touch in part.touches),
            part.span,
        )
        for part in parts
    )


def _mask_secrets(text: str, written: str, secrets: Mapping[str, str]) -> str:
    for value, shown in secrets.items():
        text = text.replace(value, shown)
    return SECRET_VALUES.sub(lambda match: match[0] if match[0] in written else REDACTED_TEXT, text)
