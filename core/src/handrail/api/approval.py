"""Approval requests, answers, and the confirmers consulted when a verdict is confirm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from handrail.api.call import Confirmation, GrantOption
from handrail.api.verdict import Access, Verdict
from handrail.errors import DeniedByUser

__all__ = ["Answer", "Approval", "Choice", "Confirmer", "yes"]


class Choice(StrEnum):
    """Answer to an approval request: allow once, for the session or always, allow with edited arguments, or deny."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    EDIT = "edit"
    DENY = "deny"


LASTING_CHOICES = frozenset({Choice.SESSION, Choice.ALWAYS})


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of the user to an approval request.

    `grant`: the offered grant that a lasting approval applies to; None for the narrowest. `args`: with edit, the
    complete new arguments. `feedback`: with deny, the message for the model. `by`: where the user answered, if not
    where they were asked.
    """

    choice: Choice
    grant: GrantOption | None = None
    args: Mapping[str, Any] | None = None
    feedback: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalStep:
    """One part of what a call does: its words as the shell will see them, without values of secrets, and what it touches.

    `span` is its place in the command; None when it is not known.
    """

    words: tuple[str, ...]
    touches: tuple[Access, ...] = ()
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """Approval request for exactly the call with this `call_id` and `call_hash`; an answer is used once.

    `id` identifies it within its session. `grants` are the scopes offered for a lasting approval, narrowest first;
    empty if nothing may be remembered. `note` says why the user is asked again. A request with a `phrase` concerns a
    catastrophic call: only a user at a terminal may answer it, by typing the phrase. `expires`: seconds until it counts
    as denied. `among` holds all pending questions of the session.
    """

    id: str
    call_id: str
    call_hash: str
    tool: str
    args: Mapping[str, Any]
    confirmation: Confirmation
    verdict: Verdict
    grants: Sequence[GrantOption] = ()
    steps: tuple[ApprovalStep, ...] = ()
    note: str = ""
    phrase: str = ""
    expires: float
    among: ApprovalQueue = field(repr=False, compare=False)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Permitted answers."""
        if self.phrase:
            return (Choice.ONCE, Choice.DENY)
        return tuple(choice for choice in Choice if choice not in LASTING_CHOICES or self.grants)

    def misfit(self, answer: Answer) -> str | None:
        """Return why the answer does not fit the request, or None if it is valid.

        If nothing may be remembered, a lasting approval is valid, too, and applies once; for a catastrophic call it is
        rejected.
        """
        if answer.choice not in LASTING_CHOICES and answer.choice not in self.choices:
            return f"this question is not answered with {answer.choice!s}"
        if self.phrase and answer.choice in LASTING_CHOICES:
            return "a catastrophic call is never remembered"
        if answer.grant is not None and (answer.choice not in LASTING_CHOICES or answer.grant not in self.grants):
            return "this grant was not offered"
        if (answer.args is not None) is not (answer.choice is Choice.EDIT):
            return "arguments belong to the answer edit, and to no other"
        if answer.feedback and answer.choice is not Choice.DENY:
            return "feedback belongs to the answer deny, and to no other"
        return None


class ApprovalQueue(Protocol):
    """The questions of a session that wait for an answer."""

    @property
    def waiting(self) -> tuple[Approval, ...]:
        """Those about calls."""
        ...

    def answer(self, ids: str | Iterable[str], answer: Answer) -> None:
        """Answer one question about a call, or several together; all of them or none.

        Raises `NotFound` for a question that is not open, `InvalidArguments` for an invalid answer.
        """
        ...

    def given(self, id: str) -> object:
        """Return the answer that an open question got elsewhere, or None if it got none."""
        ...


class Confirmer(Protocol):
    """Callable that asks the user to approve a call.

    Any exception counts as a denial: `DeniedByUser` with its own message, `NoConfirmer` if nobody answered. The task is
    cancelled when the request no longer needs an answer. A confirmer whose attribute `at_terminal` is True represents a
    user at a terminal of this program; only such a confirmer is asked about catastrophic calls.
    """

    async def __call__(self, approval: Approval) -> Answer:
        """Return the user's answer."""
        ...


async def yes(approval: Approval) -> Answer:
    """Approve every ordinary request (`--yes`); it is never asked about a catastrophic call."""
    return Answer(Choice.ONCE)


async def no(approval: Approval) -> Answer:
    """Deny every request (`--deny`)."""
    raise DeniedByUser("a person started this with --deny: everything that needs a yes is denied")


def callback(ask: Callable[[Approval], Awaitable[bool]]) -> Confirmer:
    """Return a confirmer that wraps an async function returning True or False."""

    async def confirm(approval: Approval) -> Answer:
        return Answer(Choice.ONCE if await ask(approval) else Choice.DENY)

    return confirm
