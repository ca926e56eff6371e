"""Questions of an agent to the user in free form, and the answers. They allow nothing: that is what `confirm` is for.

A session's confirmer that supports such questions has a method `ask` (`Respondent`). Without one, or if nobody answers,
the question fails. While it is open, another user of this machine may answer it (`inbox`).
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

__all__ = ["parse_reply", "question_wire"]

log = logging.getLogger(__name__)

# Characters of one answer.
MAX_REPLY_CHARS = 10_000


class AnswerKind(StrEnum):
    """Kind of answer that a question expects."""

    CHOICE = "choice"
    TEXT = "text"
    YES_NO = "yes_no"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Question of an agent. `options` are for a choice, of which `several` may be selected.

    A choice may always be answered in free text, too.
    """

    question: str
    kind: AnswerKind = AnswerKind.TEXT
    options: tuple[str, ...] = ()
    several: bool = False

    def misfit(self, reply: Reply) -> str | None:
        """Return why the reply does not fit the question, or None if it fits.

        None as a reply leaves the question open.
        """
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
    """Answers of the user, in order. `by`: where the user answered, if not where they were asked."""

    replies: tuple[Reply, ...]
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """Questions that the user answers together.

    `id` identifies them within their session, `expires` is the number of seconds until they count as unanswered.
    `among` holds all pending questions of the session.
    """

    id: str
    call_id: str
    call_hash: str
    questions: tuple[Question, ...]
    expires: float
    among: ApprovalBroker = field(repr=False, compare=False)

    def misfit(self, replies: Sequence[Reply]) -> str | None:
        """Return why the replies do not fit the questions, or None if they fit."""
        return find_misfit(self.questions, replies)


def find_misfit(questions: Sequence[Question], replies: Sequence[Reply]) -> str | None:
    """Return why the replies, one for each question in order, do not fit, or None if they fit."""
    if len(replies) != len(questions):
        return f"there are {len(questions)} questions and {len(replies)} answers"
    pairs = zip(questions, replies, strict=True)
    told = (f"question {number}: {why}" for number, (q, r) in enumerate(pairs, 1) if (why := q.misfit(r)))
    return next(told, None)


@runtime_checkable
class Respondent(Protocol):
    """Confirmer that also asks questions in free form.

    It returns an answer for each question, in order. It raises `DeniedByUser` if the user declines to answer,
    `NoConfirmer` if nobody can be asked, and is cancelled when an answer is no longer needed.
    """

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        """Return the user's answer to each question."""
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
    """Return the user's answers to the questions of a call, in order.

    Raises `NoConfirmer` or `DeniedByUser` if there is no answer at all.
    """
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
    """Return the questions as plain data for a host."""
    return {
        "inquiry": inquiry.id,
        "questions": [question_wire(question) for question in inquiry.questions],
        "call_hash": inquiry.call_hash,
        "expires_s": inquiry.expires,
    }


def question_wire(question: Question) -> dict[str, Any]:
    """Return a question as plain data."""
    wire: dict[str, Any] = {"question": question.question, "kind": question.kind.value}
    if question.kind is AnswerKind.CHOICE:
        wire |= {"options": list(question.options), "several": question.several}
    return wire


def parse_reply(value: object) -> Reply:
    """Return an answer from JSON as a reply; `find_misfit` checks if it fits."""
    if is_list(value):
        return tuple(value)
    return cast("Reply", value)


def _is_valid_text(value: object) -> bool:
    return isinstance(value, str) and len(value.strip()) > 0 and len(value) <= MAX_REPLY_CHARS
