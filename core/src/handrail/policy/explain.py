"""Explanation of a verdict: everything that was considered, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handrail.api.call import Invocation
from handrail.api.verdict import EvaluationContext, Opinion, RegisteredEvaluator, Verdict
from handrail.policy.engine import PolicyEngine, RuleMatch, collect_opinions, decide_verdict


@dataclass(frozen=True, slots=True)
class VerdictExplanation:
    """A verdict and what led to it: opinions, and how each rule and grant fits each part, the highest rank first.

    `hidden`: why the tool is not even listed in this mode. With `opinions` empty and a verdict of deny, an evaluator may have crashed.
    """

    invocation: Invocation
    judging: EvaluationContext
    opinions: Sequence[Opinion]
    steps: Sequence[RuleMatch]
    hidden: str | None
    verdict: Verdict


async def explain_verdict(
    invocation: Invocation, *, seats: Sequence[RegisteredEvaluator], policy: PolicyEngine, judging: EvaluationContext
) -> VerdictExplanation:
    """Return the verdict that `evaluate_call` would give, with the explanation."""
    hidden = policy.hides(invocation.tool, judging)
    heard = await collect_opinions(invocation, seats=seats, judging=judging)
    if isinstance(heard, Verdict):
        return VerdictExplanation(invocation, judging, (), (), hidden, heard)
    steps = policy.trail(invocation, heard, judging)
    return VerdictExplanation(
        invocation, judging, heard, steps, hidden, decide_verdict(invocation, heard, policy=policy, judging=judging)
    )
