"""The questions of one session that wait for an answer: the one place where they are held, listed and answered.

A question is put to the session's confirmer, and left at this machine beside it (`pending`). Whoever is first answers it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from handrail.api.approval import Answer, Approval, Confirmer
from handrail.api.verdict import Decision, Verdict
from handrail.approval.ask_user import Inquiry, InquiryReplies, Respondent
from handrail.approval.open_question import OpenQuestion
from handrail.errors import InvalidArguments, NotFound

if TYPE_CHECKING:
    from handrail.approval.inbox import PostedQuestion

QuestionPoster = Callable[["Approval | Inquiry"], "PostedQuestion[Any]"]


@dataclass(slots=True)
class OpenApproval:
    """An open question about a call."""

    approval: Approval
    waiting: OpenQuestion[Answer]


class ApprovalBroker:
    """Open questions by their id, in the order they were asked. Each is answered once: by its confirmer, here by its id, or at this machine,
    where `leave` leaves them.
    """

    def __init__(self, leave: QuestionPoster | None = None) -> None:
        self._leave = leave
        self._open: dict[str, OpenApproval] = {}
        self._inquiries: dict[str, OpenQuestion[InquiryReplies]] = {}
        self._asked = 0

    @property
    def waiting(self) -> tuple[Approval, ...]:
        """The questions about calls that wait for an answer."""
        return tuple(each.approval for each in self._open.values() if each.waiting.answer is None)

    def next_id(self) -> str:
        """Return an id for a new question: a1, a2 …"""
        self._asked += 1
        return f"a{self._asked}"

    def answer(self, ids: str | Iterable[str], answer: Answer) -> None:
        """Answer one question about a call, or several together.

        If one of them does not accept the answer, none is answered. Raises `NotFound` for a question that is not open,
        `InvalidArguments` for an invalid answer.
        """
        wanted = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        for id in wanted:
            self._check(id, answer)
        missed = [id for id in wanted if not self._open[id].waiting.take()]
        for id in wanted:
            if id not in missed:
                self._open[id].waiting.settle(answer)
        if missed:
            raise NotFound(f"no question {missed[0]!r} is open: somebody has just answered it")

    def given(self, id: str) -> Answer | InquiryReplies | None:
        """Return the answer given elsewhere to an open question, for a confirmer that withdraws it, or None."""
        if (asked := self._open.get(id)) is not None:
            return asked.waiting.answer
        inquiry = self._inquiries.get(id)
        return inquiry.answer if inquiry is not None else None

    def _check(self, id: str, answer: Answer) -> None:
        asked = self._open.get(id)
        if asked is None or asked.waiting.answer is not None:
            raise NotFound(f"no question {id!r} is open")
        if asked.approval.phrase:
            raise InvalidArguments(f"only a person at a terminal answers the question {id!r}")
        if misfit := asked.approval.misfit(answer):
            raise InvalidArguments(f"the question {id!r} does not take this answer: {misfit}")

    def reconsider(self) -> None:
        """Something was granted: the calls that wait are judged again, and those that need no yes any more go on."""
        for each in self._open.values():
            each.waiting.reconsider()

    async def ask(
        self, approval: Approval, confirmer: Confirmer, judge: Callable[[], Awaitable[Verdict]]
    ) -> Answer | Verdict:
        """Return the user's answer, or the new verdict (by `judge`) if approval is no longer required.

        Raises `NoConfirmer` if the question expired or was abandoned, and any exception of the confirmer.
        """

        async def needless() -> Verdict | None:
            verdict = await judge()
            return verdict if verdict.decision is not Decision.CONFIRM else None

        waiting = OpenQuestion[Answer](approval.id, approval.expires)
        self._open[approval.id] = OpenApproval(approval, waiting)
        try:
            # What is catastrophic is answered at the terminal of the session, or nowhere.
            leave = self._leaving(approval) if not approval.phrase else None
            return await waiting.outcome(_ask_confirmer(confirmer, approval), leave, needless)
        finally:
            del self._open[approval.id]

    async def inquire(self, inquiry: Inquiry, respondent: Respondent) -> InquiryReplies:
        """Return the user's answers to free-form questions. Raises the same errors as `ask`."""

        async def needless() -> None:
            """They are needed until they are there."""

        waiting = self._inquiries[inquiry.id] = OpenQuestion[InquiryReplies](inquiry.id, inquiry.expires)
        try:
            return await waiting.outcome(_ask_respondent(respondent, inquiry), self._leaving(inquiry), needless)
        finally:
            del self._inquiries[inquiry.id]

    def _leaving(self, question: Approval | Inquiry) -> Callable[[], PostedQuestion[Any]] | None:
        leave = self._leave
        return (lambda: leave(question)) if leave is not None else None


async def _ask_confirmer(confirmer: Confirmer, approval: Approval) -> Answer:
    asked: object = confirmer(approval)
    answer = await asked if inspect.isawaitable(asked) else asked
    if not isinstance(answer, Answer):  # pyright: ignore[reportUnnecessaryIsInstance] # confirmers are hosts' code
        raise TypeError(
            f"a confirmer is an async function that gives an Answer, and this one gave {answer!r}; "
            "handrail.api.approval.callback makes one of an async function that gives True or False"
        )
    if misfit := approval.misfit(answer):
        raise ValueError(misfit)
    return answer


async def _ask_respondent(respondent: Respondent, inquiry: Inquiry) -> InquiryReplies:
    replies = tuple(await respondent.ask(inquiry))
    if misfit := inquiry.misfit(replies):
        raise ValueError(f"these are no answers: {misfit}")
    return InquiryReplies(replies)
