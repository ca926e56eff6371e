"""One open question that waits for whoever answers it first: who is asked where the session asks, or somebody else at this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from handrail.errors import NoConfirmer

if TYPE_CHECKING:
    from handrail.approval.inbox import PostedQuestion

log = logging.getLogger(__name__)

T = TypeVar("T")
Needless = TypeVar("Needless")

# Seconds that a confirmer has to take its question back.
WITHDRAW_TIMEOUT_S = 1.0
# A confirmer that decides by itself has answered by then, and nothing is left for a person.
AUTO_ANSWER_S = 0.1
# Who has taken a question away at this machine answers it at once, or has ended before.
TAKEN_ANSWER_S = 2.0


@dataclass(slots=True)
class OpenQuestion(Generic[T]):
    """An open question. `news` is set when there is an answer, or a reason to look again at whether it is needed."""

    id: str
    expires: float
    answer: T | None = None
    left: PostedQuestion[T] | None = None
    stale: bool = False
    news: anyio.Event = field(default_factory=anyio.Event)

    def take(self) -> bool:
        """Take the question away from this machine, as it is answered; False when somebody was first there."""
        return self.left is None or self.left.take()

    def settle(self, answer: T) -> None:
        """Here is the answer."""
        self.answer = answer
        self.news.set()

    def reconsider(self) -> None:
        """Request a check of whether the question is still needed."""
        self.stale = True
        self.news.set()

    async def outcome(
        self,
        asked: Coroutine[Any, Any, T],
        leave: Callable[[], PostedQuestion[T]] | None,
        needless: Callable[[], Awaitable[Needless | None]],
    ) -> T | Needless:
        """Return the first answer, of the confirmer (`asked`) or from the inbox, where `leave` posts the question.

        Returns the value of `needless` instead once no answer is needed any more. Raises `NoConfirmer` if the question
        expired or was abandoned, and any exception of `asked`.
        """
        asking = asyncio.ensure_future(asked)
        asking.add_done_callback(self._tell)
        beside = asyncio.ensure_future(self._beside(leave)) if leave is not None else None
        try:
            with anyio.move_on_after(self.expires):
                return await self._first(asking, needless)
            raise NoConfirmer(f"nobody answered within {self.expires:g} s, and the question is no longer open")
        finally:
            if beside is not None:
                beside.cancel()
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking}, timeout=WITHDRAW_TIMEOUT_S)
            if self.left is not None:
                self.left.close()

    def _tell(self, asking: asyncio.Future[T]) -> None:
        if not asking.cancelled() and asking.exception() is not None:
            log.debug("a confirmer failed", exc_info=asking.exception())
        self.news.set()

    async def _beside(self, leave: Callable[[], PostedQuestion[T]]) -> None:
        """Leave the question at this machine, and take the answer that is given there."""
        await anyio.sleep(AUTO_ANSWER_S)
        try:
            self.left = leave()
        except OSError as exc:
            log.warning("the question %s could not be left at this machine: %s", self.id, exc)
            return
        answer = await self.left.given()
        # Who wrote an answer without taking the question away is first all the same.
        self.left.take()
        self.settle(answer)

    async def _first(
        self, asking: asyncio.Future[T], needless: Callable[[], Awaitable[Needless | None]]
    ) -> T | Needless:
        while True:
            await self.news.wait()
            self.news = anyio.Event()
            if self.answer is not None:
                return self.answer
            if asking.done():
                if not self.take() and (first := await self._taken()) is not None:
                    return first
                # A cancellation that nobody asked for is a confirmer's own way of failing.
                if asking.cancelled():
                    raise NoConfirmer("asking a person was given up, and nobody answered")
                return asking.result()
            if self.stale:
                self.stale = False
                if (instead := await needless()) is not None:
                    return instead

    async def _taken(self) -> T | None:
        """Return the answer of whoever took the question from the inbox first, or None if they ended without one."""
        with anyio.move_on_after(TAKEN_ANSWER_S):
            while self.answer is None:
                await self.news.wait()
                self.news = anyio.Event()
        return self.answer
