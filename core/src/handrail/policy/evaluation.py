"""How opinions become a verdict: every evaluator is asked, then the policy and the mode decide."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from handrail.api.call import Invocation
from handrail.api.verdict import (
    Decision,
    EvaluationContext,
    Evaluator,
    Opinion,
    Reason,
    RegisteredEvaluator,
    Verdict,
)
from handrail.policy.engine import PolicyEngine

log = logging.getLogger(__name__)


async def evaluate_call(
    invocation: Invocation, *, seats: Sequence[RegisteredEvaluator], policy: PolicyEngine, judging: EvaluationContext
) -> Verdict:
    """The verdict on a call, from every evaluator's opinion, the policy and the mode."""
    return decide_verdict(
        invocation, await collect_opinions(invocation, seats=seats, judging=judging), policy=policy, judging=judging
    )


def decide_verdict(
    invocation: Invocation, heard: Sequence[Opinion] | Verdict, *, policy: PolicyEngine, judging: EvaluationContext
) -> Verdict:
    """What policy and mode make of what `collect_opinions` gave."""
    if isinstance(heard, Verdict):
        return heard
    verdict = policy.decide(invocation, heard, judging)
    if judging.untrusted is not None:
        verdict = _add_reasons([o for o in heard if o.rule == "taint"], verdict)
    return verdict if invocation.seen is None else _add_reasons(invocation.seen.opinions, verdict)


def _add_reasons(opinions: Sequence[Opinion], verdict: Verdict) -> Verdict:
    """The verdict, so that whoever is asked for another reason is told of a third party's text and what observers ask about, too."""
    reasons = [reason for opinion in opinions for reason in opinion.reasons]
    more = tuple(reason for reason in reasons if reason not in verdict.reasons)
    return (
        replace(verdict, reasons=(*verdict.reasons, *more))
        if more and verdict.decision is Decision.CONFIRM
        else verdict
    )


async def collect_opinions(
    invocation: Invocation, *, seats: Sequence[RegisteredEvaluator], judging: EvaluationContext
) -> list[Opinion] | Verdict:
    """What every evaluator thinks of a call, as far as it may be heard; the verdict when one of them crashed."""
    opinions: list[Opinion] = []
    for seat in seats:
        try:
            opinion = await seat.evaluator.opinion(invocation, judging)
        # An evaluator is plugin code, and a judge that crashes must not let anything through.
        except Exception as exc:
            log.exception("evaluator %s crashed on %s", seat.evaluator.name, invocation.tool.name)
            return _crash_verdict(seat.evaluator, exc)
        if opinion is not None:
            opinions.append(opinion if seat.trusted else _restrict_opinion(opinion))
    if (
        judging.untrusted is not None
        and (tainted := judging.untrusted.opinion(invocation, opinions, judging)) is not None
    ):
        opinions.append(tainted)
    if invocation.seen is not None:
        opinions.extend(invocation.seen.opinions)
    return opinions


def _crash_verdict(evaluator: Evaluator, exc: Exception) -> Verdict:
    text = f"the evaluator {evaluator.name} failed ({type(exc).__name__})"
    return Verdict(
        Decision.DENY, rule=f"{evaluator.name}:crash", reasons=(Reason("evaluator_crashed", text),), grantable=False
    )


def _restrict_opinion(opinion: Opinion) -> Opinion:
    """What counts of an opinion that may not allow: neither an allow, nor the commands and words that a rule, a grant or a yes could fit."""
    return Opinion(
        opinion.rule,
        suggestion=None if opinion.suggestion is Decision.ALLOW else opinion.suggestion,
        floor=None if opinion.floor is Decision.ALLOW else opinion.floor,
        catastrophic=opinion.catastrophic,
        route=opinion.route,
        reasons=opinion.reasons,
        trusted=False,
        unknown_effects=opinion.unknown_effects,
    )
