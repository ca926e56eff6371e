"""Turns of a run: its task, and the user's message each time they have stopped a step."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.cli import SignalStopper
from handrail.terminal.approval_prompt import read_typed_line
from handrail_adk.agent_run import RunJob, run_job
from handrail_adk.budgets import RunEnding

if TYPE_CHECKING:
    from handrail import Session
    from handrail_adk.run_store import RunStore


async def ask_next_message() -> str:
    """Read the user's next message at the terminal after they have stopped a step; empty to end the run."""
    return await read_typed_line("Stopped. What now? An empty line, or Ctrl-C, ends the run: ")


class RunTurns:
    """Turns of a run. The first signal stops the model's step; `asked` then returns the next message.

    The run ends if `asked` is None or returns an empty message. A second signal ends the run at once.
    """

    def __init__(self, session: Session, asked: Callable[[], Awaitable[str]] | None) -> None:
        self._session = session
        self._asked = asked
        self._stopping = SignalStopper(session)

    @property
    def caught(self) -> int:
        """The number of the signal that stopped the last turn; 0 where none did."""
        return self._stopping.caught

    def stop(self, number: int) -> None:
        """Handle a signal."""
        self._stopping.stop(number)

    async def carry_out(self, job: RunJob, runs: RunStore) -> RunEnding:
        """Carry out the task, and continue for as long as the user sends another message."""
        job = replace(job, stopped=lambda: self.caught != 0)
        while True:
            ending, said = await self._turn(job)
            if not said or job.id is None:
                return ending
            self._stopping = SignalStopper(self._session)
            await runs.go_on(job.id, self._session, job.model.model)
            job = replace(job, task=said)

    async def _turn(self, job: RunJob) -> tuple[RunEnding, str]:
        ending, said = RunEnding.STOPPED, ""
        with self._stopping.scope:
            with self._stopping.step:
                ending = RunEnding((await run_job(job, self._session)).ending)
            if self._asked is not None and self.caught == signal.SIGINT and ending is RunEnding.STOPPED:
                said = await self._asked()
        return ending, said
