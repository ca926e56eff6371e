"""The calls that ADK makes at once, as one batch of the scheduler."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from handrail.errors import Stopped

if TYPE_CHECKING:
    from handrail import Session, ToolCall, ToolResult


@dataclass(eq=False, slots=True)
class BatchEntry:
    """One call, and its result when it has ended."""

    call: ToolCall
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    result: ToolResult | None = None
    error: BaseException | None = None


class StepBatcher:
    """Batches of the calls of a model step.

    ADK starts the calls of a step one after another, each in its own task. Calls that arrive in the same iteration of
    the event loop form one batch, in order; a call that a callback delays comes later.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: list[BatchEntry] = []
        self._batches: set[asyncio.Task[None]] = set()

    async def call(self, call: ToolCall) -> ToolResult:
        """Make the call. A caller that is cancelled takes it along, and goes when it has ended."""
        entry = BatchEntry(call)
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._begin)
        self._waiting.append(entry)
        try:
            await entry.ended.wait()
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
            else:
                self._session.cancel(call.call_id, why=Stopped("the agent's run was cancelled"))
                await entry.ended.wait()
            raise
        if entry.error is not None:
            raise entry.error
        assert entry.result is not None
        return entry.result

    def _begin(self) -> None:
        entries, self._waiting = self._waiting, []
        if entries:
            task = asyncio.create_task(self._run(entries))
            self._batches.add(task)
            task.add_done_callback(self._batches.discard)

    async def _run(self, entries: list[BatchEntry]) -> None:
        try:
            await self._session.batch([entry.call for entry in entries], told=partial(_set_result, entries))
        # Whoever waits is told of whatever becomes of the batch.
        except BaseException as exc:  # noqa: BLE001
            for entry in entries:
                if not entry.ended.is_set():
                    entry.error = exc if isinstance(exc, Exception) else Stopped("the session is over")
                    entry.ended.set()


def _set_result(entries: list[BatchEntry], index: int, result: ToolResult) -> None:
    entries[index].result = result
    entries[index].ended.set()
