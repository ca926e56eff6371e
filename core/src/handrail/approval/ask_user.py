"""What an agent asks a person in words, and the person's answers. Nothing is allowed by them: that is what `confirm` is for.

A session's confirmer who can put such questions has a method `ask` (`Respondent`). Where there is none, or nobody answers, the question fails.
While it waits, whoever else is at this machine may answer it (`pending`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast, runtime_checkable

from handrail.api.events import InquiryAnswered, InquiryAsked
from handrail.errors import DeniedByUser, NoConfirmer
from handrail.json_types import is_list

if TYPE_CHECKING:
    from handrail.api.approval import Confirmer
    from handrail.api.call import Invocation
    from handrail.api.events import EventBus
    from handrail.approval.broker import ApprovalBroker
    from handrail.config.settings import Settings
    from handrail.policy.session_policy import SessionPolicy

log = logging.getLogger(__name__)

# Characters of one answer.
MAX_REPLY_CHARS = 10_000


class AnswerKind(StrEnum):
    """What kind of answer a question wants."""

    CHOICE = "choice"
    TEXT = "text"
    YES_NO = "yes_no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question. `options` belong to a choice, and `several` of them may be taken; a person may always answer a choice in own words."""

    question: str
    kind: AnswerKind = AnswerKind.TEXT
    options: tuple[str, ...] = ()
    several: bool = False

    def misfit(self, reply: Reply) -> str | None:
        """Why this is no answer to the question; None when it is one. None as an answer means that it was left open."""
        if reply is None:
            return None
        if self.kind is AnswerKind.YES_NO:
            return None if isinstance(reply, bool) else "it is answered with true or false"
        if self.kind is AnswerKind.CHOICE and self.several:
            fits = isinstance(reply, tuple) and reply and all(_is_valid_text(each) for each in reply)
            return None if fits else "it is answered with a list of texts, each an option or own words"
        return None if _is_valid_text(reply) else f"it is answered with a text of 1 to {MAX_REPLY_CHARS:,} characters"


# A text, yes or no, several texts; None for a question that was left open.
Reply: TypeAlias = str | bool | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class InquiryReplies:
    """A person's answers, in order. `by`: where the person is, when it is not where they were asked."""

    replies: tuple[Reply, ...]
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """Questions that a person answers together. `id` names it in its session, `expires` is seconds until nobody has answered. `among` holds
    all questions of the session that wait.
    """

    id: str
    call_id: str
    call_hash: str
    questions: tuple[Question, ...]
    expires: float
    among: ApprovalBroker = field(repr=False, compare=False)

    def misfit(self, replies: Sequence[Reply]) -> str | None:
        """Why these are no answers to the questions; None when they are."""
        return find_misfit(self.questions, replies)


def find_misfit(questions: Sequence[Question], replies: Sequence[Reply]) -> str | None:
    """Why these are no answers to the questions, one for each in order; None when they are."""
    if len(replies) != len(questions):
        return f"there are {len(questions)} questions and {len(replies)} answers"
    pairs = zip(questions, replies, strict=True)
    told = (f"question {number}: {why}" for number, (q, r) in enumerate(pairs, 1) if (why := q.misfit(r)))
    return next(told, None)


@runtime_checkable
class Respondent(Protocol):
    """A confirmer that also puts questions in words.

    It gives an answer for each question, in order. It raises `DeniedByUser` when the person would not answer, `NoConfirmer` where there is
    nobody, and is cancelled when no answer is needed any more.
    """

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        """What the person says to each question."""
        ...


class AskingSession(Protocol):
    """A session, as far as questions to its person need it."""

    @property
    def confirmer(self) -> Confirmer | None: ...
    @property
    def court(self) -> SessionPolicy: ...
    @property
    def approvals(self) -> ApprovalBroker: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def bus(self) -> EventBus: ...


async def ask_questions(
    session: AskingSession, invocation: Invocation, questions: Sequence[Question]
) -> tuple[Reply, ...]:
    """A person's answers to the questions of a call, in order. Raises `NoConfirmer` or `DeniedByUser` when there is none at all."""
    respondent = session.confirmer
    if not session.court.judging.interactive or not isinstance(respondent, Respondent):
        raise NoConfirmer("nobody is there to answer", hint="go on without an answer, or say what is not known")
    inquiry = Inquiry(
        id=session.approvals.next_id(),
        call_id=invocation.call_id,
        call_hash=invocation.call_hash,
        questions=tuple(questions),
        expires=session.settings.confirmation.expires,
        among=session.approvals,
    )
    session.bus.publish(InquiryAsked(inquiry.call_id, inquiry.questions, inquiry.id))
    answered, by = False, ""
    try:
        replies = await _collect_replies(session, inquiry, respondent)
        answered, by = True, replies.by
    finally:
        session.bus.publish(InquiryAnswered(inquiry.call_id, answered, inquiry.id, by))
    return replies.replies


async def _collect_replies(session: AskingSession, inquiry: Inquiry, respondent: Respondent) -> InquiryReplies:
    try:
        replies = await session.approvals.inquire(inquiry, respondent)
    except (NoConfirmer, DeniedByUser):
        raise
    # Confirmers are hosts' code; from one that fails there is no answer.
    except Exception as exc:
        log.exception("the confirmer failed on the questions of %s", inquiry.call_id)
        raise NoConfirmer(f"the questions could not be put ({type(exc).__name__})") from exc
    if all(reply is None for reply in replies.replies):
        raise DeniedByUser("a person was asked and answered nothing")
    return replies


def inquiry_wire(inquiry: Inquiry) -> dict[str, Any]:
    """The questions as plain data for a host."""
    return {
        "inquiry": inquiry.id,
        "questions": [question_wire(question) for question in inquiry.questions],
        "call_hash": inquiry.call_hash,
        "expires_s": inquiry.expires,
    }


def question_wire(question: Question) -> dict[str, Any]:
    """A question as plain data."""
    wire: dict[str, Any] = {"question": question.question, "kind": question.kind.value}
    if question.kind is AnswerKind.CHOICE:
        wire |= {"options": list(question.options), "several": question.several}
    return wire


def parse_reply(value: object) -> Reply:
    """An answer as JSON gives it; whether it fits is told by `find_misfit`."""
    if is_list(value):
        return tuple(value)
    return cast("Reply", value)


def _is_valid_text(value: object) -> bool:
    return isinstance(value, str) and len(value.strip()) > 0 and len(value) <= MAX_REPLY_CHARS
