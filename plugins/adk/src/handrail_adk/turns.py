"""The turns of a run: its task, and what a person says each time they have stopped a step."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.commands._ask import ask_for_words
from handrail.commands._common import Stopping
from handrail_adk.budgets import Ending
from handrail_adk.running import Job, carry_out

if TYPE_CHECKING:
    from handrail import Session
    from handrail_adk.keeping import Runs


async def said_next() -> str:
    """What a person says at the terminal after they have stopped a step; empty for the end of the run."""
    return await ask_for_words("Stopped. What now? An empty line, or Ctrl-C, ends the run: ")


class Turns:
    """The first signal stops the step of the model. `asked` then says how to go on; where it is None, or says nothing, the run ends.

    A second signal ends the run at once.
    """

    def __init__(self, session: Session, asked: Callable[[], Awaitable[str]] | None) -> None:
        self._session = session
        self._asked = asked
        self._stopping = Stopping(session)

    @property
    def caught(self) -> int:
        """The number of the signal that stopped the last turn; 0 where none did."""
        return self._stopping.caught

    def stop(self, number: int) -> None:
        """A signal has come."""
        self._stopping.stop(number)

    async def carry_out(self, job: Job, runs: Runs) -> Ending:
        """Carry out the task, and go on for as long as a person says how."""
        job = replace(job, stopped=lambda: self.caught != 0)
        while True:
            ending, said = await self._turn(job)
            if not said or job.id is None:
                return ending
            self._stopping = Stopping(self._session)
            await runs.go_on(job.id, self._session, job.model.model)
            job = replace(job, task=said)

    async def _turn(self, job: Job) -> tuple[Ending, str]:
        ending, said = Ending.STOPPED, ""
        with self._stopping.scope:
            with self._stopping.step:
                ending = Ending((await carry_out(job, self._session)).ending)
            if self._asked is not None and self.caught == signal.SIGINT and ending is Ending.STOPPED:
                said = await self._asked()
        return ending, said
