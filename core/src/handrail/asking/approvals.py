"""The questions of one session that wait for an answer: the one place where they are held, listed and answered."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

import anyio

from handrail.asking.confirm import Answer, Approval, Confirmer
from handrail.errors import InvalidArguments, NoConfirmer, NotFound
from handrail.judging.verdicts import Decision, Verdict

log = logging.getLogger(__name__)

# Seconds that a confirmer has to take its question back.
TIDY_S = 1.0


@dataclass(slots=True)
class Waiting:
    """An open question. `news` is set when there is an answer, or a reason to judge the call again."""

    approval: Approval
    answer: Answer | None = None
    stale: bool = False
    news: anyio.Event = field(default_factory=anyio.Event)


class Approvals:
    """Open questions by their id, in the order they were asked. Each is answered once: by its confirmer, or here by its id."""

    def __init__(self) -> None:
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
        for id in wanted:
            waiting = self._open[id]
            waiting.answer = answer
            waiting.news.set()

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
        self._open[approval.id] = waiting
        try:
            with anyio.move_on_after(approval.expires):
                return await self._outcome(waiting, asking, judge)
            raise NoConfirmer(f"nobody answered within {approval.expires:g} s, and the question is no longer open")
        finally:
            del self._open[approval.id]
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking}, timeout=TIDY_S)

    async def _outcome(
        self, waiting: Waiting, asking: asyncio.Future[Answer], judge: Callable[[], Awaitable[Verdict]]
    ) -> Answer | Verdict:
        while True:
            await waiting.news.wait()
            waiting.news = anyio.Event()
            if waiting.answer is not None:
                return waiting.answer
            if asking.done():
                # A cancellation that nobody asked for is a confirmer's own way of failing.
                if asking.cancelled():
                    raise NoConfirmer("asking for a yes was given up, and nobody gave one")
                return asking.result()
            if waiting.stale:
                waiting.stale = False
                verdict = await judge()
                if verdict.decision is not Decision.CONFIRM:
                    return verdict


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
