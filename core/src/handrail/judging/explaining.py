"""Why a call is judged as it is: everything that was weighed, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handrail.calls.invocation import Invocation
from handrail.judging.policy import Policy, Step
from handrail.judging.verdicts import Judging, Opinion, Seat, Verdict, decided, hear


@dataclass(frozen=True, slots=True)
class Explained:
    """A verdict and what led to it: opinions, and how each rule and grant fits each part, the highest rank first.

    `hidden`: why the tool is not even listed in this mode. With `opinions` empty and a verdict of deny, an evaluator may have crashed.
    """

    invocation: Invocation
    judging: Judging
    opinions: Sequence[Opinion]
    steps: Sequence[Step]
    hidden: str | None
    verdict: Verdict


async def explain(invocation: Invocation, *, seats: Sequence[Seat], policy: Policy, judging: Judging) -> Explained:
    """What `judge` would decide, and why."""
    hidden = policy.hides(invocation.tool, judging)
    heard = await hear(invocation, seats=seats, judging=judging)
    if isinstance(heard, Verdict):
        return Explained(invocation, judging, (), (), hidden, heard)
    steps = policy.trail(invocation, heard, judging)
    return Explained(
        invocation, judging, heard, steps, hidden, decided(invocation, heard, policy=policy, judging=judging)
    )
