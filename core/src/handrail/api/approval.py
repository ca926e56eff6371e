"""Who says yes: questions, answers, and the confirmers that are asked when a verdict is confirm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from handrail.api.call import Confirmation, GrantOption
from handrail.api.verdict import Access, Verdict
from handrail.errors import DeniedByUser


class Choice(StrEnum):
    """What a person makes of a question: yes for this once, for the session or for always, other arguments, or no."""

    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    EDIT = "edit"
    DENY = "deny"


LASTING_CHOICES = frozenset({Choice.SESSION, Choice.ALWAYS})


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer.

    `grant`: which of the question's grants a lasting yes means; None for the narrowest. `args`: with edit, all arguments as they shall be.
    `feedback`: with deny, what the model is told. `by`: where the person is, when it is not where they were asked.
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
    """The question. It is about exactly the call with this `call_id` and `call_hash`, and an answer is used once.

    `id` names it in its session. `grants` is what a lasting yes may be narrowed to, narrowest first; empty when nothing may be remembered.
    `note` says why it is asked again. A question with a `phrase` is about a catastrophe: only a person at a terminal may answer it, by
    typing the phrase. `expires`: seconds until it is a no. `among` holds all questions of the session that wait.
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
        """What may be answered."""
        if self.phrase:
            return (Choice.ONCE, Choice.DENY)
        return tuple(choice for choice in Choice if choice not in LASTING_CHOICES or self.grants)

    def misfit(self, answer: Answer) -> str | None:
        """Why this is no answer to the question; None when it is one. A lasting yes where nothing is remembered is one for this once."""
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

        Raises `NotFound` for a question that is not open, `InvalidArguments` for an answer that is none.
        """
        ...

    def given(self, id: str) -> object:
        """How an open question was answered elsewhere; None when it was not."""
        ...


class Confirmer(Protocol):
    """Asks somebody. Whatever it raises counts as no: `DeniedByUser` with its own words, `NoConfirmer` where nobody answered.

    It is cancelled when the question needs no answer any more. A confirmer whose attribute `at_terminal` is True is a person at a terminal of
    this program, the only one who is asked about what is catastrophic.
    """

    async def __call__(self, approval: Approval) -> Answer:
        """What the person says."""
        ...


async def yes(approval: Approval) -> Answer:
    """Says yes to every ordinary question (`--yes`). It is never asked about a catastrophic call."""
    return Answer(Choice.ONCE)


async def no(approval: Approval) -> Answer:
    """Says no to everything (`--deny`)."""
    raise DeniedByUser("a person started this with --deny: everything that needs a yes is denied")


def callback(ask: Callable[[Approval], Awaitable[bool]]) -> Confirmer:
    """A confirmer from an async function that answers True or False."""

    async def confirm(approval: Approval) -> Answer:
        return Answer(Choice.ONCE if await ask(approval) else Choice.DENY)

    return confirm
