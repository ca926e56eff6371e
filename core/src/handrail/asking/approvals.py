"""The questions of one session that wait for an answer: the one place where they are held, listed and answered.

A question is put to the session's confirmer, and left at this machine beside it (`pending`). Whoever is first answers it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from handrail.asking.confirm import Answer, Approval, Confirmer
from handrail.errors import InvalidArguments, NoConfirmer, NotFound
from handrail.judging.verdicts import Decision, Verdict

if TYPE_CHECKING:
    from handrail.asking.pending import Left

log = logging.getLogger(__name__)

# Seconds that a confirmer has to take its question back.
TIDY_S = 1.0
# A confirmer that decides by itself has answered by then, and nothing is left for a person.
AT_ONCE_S = 0.1
# Who has taken a question away at this machine answers it at once, or has ended before.
TAKEN_S = 2.0


@dataclass(slots=True)
class Waiting:
    """An open question. `news` is set when there is an answer, or a reason to judge the call again."""

    approval: Approval
    answer: Answer | None = None
    left: Left | None = None
    stale: bool = False
    news: anyio.Event = field(default_factory=anyio.Event)

    def take(self) -> bool:
        """Take the question away from this machine, as it is answered; False when somebody was first there."""
        return self.left is None or self.left.take()

    def settle(self, answer: Answer) -> None:
        """Here is the answer."""
        self.answer = answer
        self.news.set()


class Approvals:
    """Open questions by their id, in the order they were asked. Each is answered once: by its confirmer, here by its id, or at this machine,
    where `leave` leaves them.
    """

    def __init__(self, leave: Callable[[Approval], Left] | None = None) -> None:
        self._leave = leave
        self._open: dict[str, Waiting] = {}
        self._asked = 0

    @property
    def waiting(self) -> tuple[Approval, ...]:
        """What waits for an answer."""
        return tuple(waiting.approval for waiting in self._open.values() if waiting.answer is None)

    def next_id(self) -> str:
        """A name for a new question: a1, a2 …"""
        self._asked += 1
        return f"a{self._asked}"

    def answer(self, ids: str | Iterable[str], answer: Answer) -> None:
        """Answer one question, or several together; all of them or, when one does not take this answer, none.

        Raises `NotFound` for a question that is not open, `InvalidArguments` for an answer that is none.
        """
        wanted = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        for id in wanted:
            self._check(id, answer)
        missed = [id for id in wanted if not self._open[id].take()]
        for id in wanted:
            if id not in missed:
                self._open[id].settle(answer)
        if missed:
            raise NotFound(f"no question {missed[0]!r} is open: somebody has just answered it")

    def given(self, id: str) -> Answer | None:
        """How an open question was answered elsewhere, for a confirmer that takes it back; None when it was not."""
        waiting = self._open.get(id)
        return waiting.answer if waiting is not None else None

    def _check(self, id: str, answer: Answer) -> None:
        waiting = self._open.get(id)
        if waiting is None or waiting.answer is not None:
            raise NotFound(f"no question {id!r} is open")
        if waiting.approval.phrase:
            raise InvalidArguments(f"only a person at a terminal answers the question {id!r}")
        if misfit := waiting.approval.misfit(answer):
            raise InvalidArguments(f"the question {id!r} does not take this answer: {misfit}")

    def reconsider(self) -> None:
        """Something was granted: the calls that wait are judged again, and those that need no yes any more go on."""
        for waiting in self._open.values():
            waiting.stale = True
            waiting.news.set()

    async def ask(
        self, approval: Approval, confirmer: Confirmer, judge: Callable[[], Awaitable[Verdict]]
    ) -> Answer | Verdict:
        """A person's answer, or the new verdict (by `judge`) when it turned out that nobody needs to be asked any more.

        Raises `NoConfirmer` when the question expired or was given up, and whatever the confirmer raises.
        """
        waiting = Waiting(approval)
        asking = asyncio.ensure_future(_asked(confirmer, approval))
        asking.add_done_callback(lambda task: _tell(task, waiting))
        beside = asyncio.ensure_future(self._beside(waiting))
        self._open[approval.id] = waiting
        try:
            with anyio.move_on_after(approval.expires):
                return await self._outcome(waiting, asking, judge)
            raise NoConfirmer(f"nobody answered within {approval.expires:g} s, and the question is no longer open")
        finally:
            beside.cancel()
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking}, timeout=TIDY_S)
            del self._open[approval.id]
            if waiting.left is not None:
                waiting.left.close()

    async def _beside(self, waiting: Waiting) -> None:
        """Leave the question at this machine, and take the answer that is given there."""
        # What is catastrophic is answered at the terminal of the session, or nowhere.
        if self._leave is None or waiting.approval.phrase:
            return
        await anyio.sleep(AT_ONCE_S)
        try:
            waiting.left = self._leave(waiting.approval)
        except OSError as exc:
            log.warning("the question %s could not be left at this machine: %s", waiting.approval.id, exc)
            return
        answer = await waiting.left.given()
        # Who wrote an answer without taking the question away is first all the same.
        waiting.left.take()
        waiting.settle(answer)

    async def _outcome(
        self, waiting: Waiting, asking: asyncio.Future[Answer], judge: Callable[[], Awaitable[Verdict]]
    ) -> Answer | Verdict:
        while True:
            await waiting.news.wait()
            waiting.news = anyio.Event()
            if waiting.answer is not None:
                return waiting.answer
            if asking.done():
                if not waiting.take() and (first := await _first(waiting)) is not None:
                    return first
                # A cancellation that nobody asked for is a confirmer's own way of failing.
                if asking.cancelled():
                    raise NoConfirmer("asking for a yes was given up, and nobody gave one")
                return asking.result()
            if waiting.stale:
                waiting.stale = False
                verdict = await judge()
                if verdict.decision is not Decision.CONFIRM:
                    return verdict


async def _first(waiting: Waiting) -> Answer | None:
    """The answer of whoever took the question away at this machine before the confirmer answered; None when they ended without one."""
    with anyio.move_on_after(TAKEN_S):
        while waiting.answer is None:
            await waiting.news.wait()
            waiting.news = anyio.Event()
    return waiting.answer


async def _asked(confirmer: Confirmer, approval: Approval) -> Answer:
    asked: object = confirmer(approval)
    answer = await asked if inspect.isawaitable(asked) else asked
    if not isinstance(answer, Answer):  # pyright: ignore[reportUnnecessaryIsInstance] # confirmers are hosts' code
        raise TypeError(
            f"a confirmer is an async function that gives an Answer, and this one gave {answer!r}; "
            "handrail.asking.confirm.callback makes one of an async function that gives True or False"
        )
    if misfit := approval.misfit(answer):
        raise ValueError(misfit)
    return answer


def _tell(asking: asyncio.Future[Answer], waiting: Waiting) -> None:
    if not asking.cancelled() and asking.exception() is not None:
        log.debug("a confirmer failed", exc_info=asking.exception())
    waiting.news.set()
