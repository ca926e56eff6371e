"""Who says yes: confirmers, asked when a verdict is confirm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from handrail.errors import DeniedByUser
from handrail.invocation import Confirmation, GrantOption
from handrail.judging import Verdict


class Answer(StrEnum):
    """A person's answer: this once, for the rest of the session, or no."""

    ONCE = "once"
    SESSION = "session"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Approval:
    """The question. It is about exactly the call with this `call_id` and `call_hash`, and an answer is used once.

    `grants` is what a "session" answer would allow from then on, narrowest first; empty when it may not be remembered.
    """

    call_id: str
    call_hash: str
    tool: str
    confirmation: Confirmation
    verdict: Verdict
    grants: Sequence[GrantOption]


class Confirmer(Protocol):
    """Asks somebody. Whatever it raises counts as no: `DeniedByUser` with its own words, `NoConfirmer` where nobody answered."""

    async def __call__(self, approval: Approval) -> Answer: ...


async def yes(approval: Approval) -> Answer:
    """Says yes to every ordinary question (`--yes`). A catastrophic call is never asked about: it is refused before."""
    return Answer.ONCE


async def no(approval: Approval) -> Answer:
    """Says no to everything (`--deny`)."""
    raise DeniedByUser("a person started this with --deny: everything that needs a yes is denied")


def callback(ask: Callable[[Approval], Awaitable[bool]]) -> Confirmer:
    """A confirmer from a function that answers True or False."""

    async def confirm(approval: Approval) -> Answer:
        return Answer.ONCE if await ask(approval) else Answer.DENY

    return confirm
