"""Call scheduling: calls that only read run concurrently, calls that change the same thing in order of arrival.

A call's claim (`resources`) lists what it uses. Before it is judged, a call waits for every earlier one whose claim
conflicts with its own, so that it is judged in the circumstances in which it runs. It waits once more before it runs,
since the user may have changed it. It does not wait for the user's answer about a call that may change anything: all
such calls are presented together, and judged again when their turn comes. Nested calls do not wait: they run under the
claim of the enclosing call.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from handrail.api.call import Invocation, ToolCall
from handrail.api.events import Queued
from handrail.api.result import ResultStatus, ToolResult
from handrail.errors import InvalidArguments, Stopped
from handrail.json_types import MAPPING_TYPES
from handrail.pipeline import finalize
from handrail.pipeline.call_task import CallTask
from handrail.pipeline.resources import FULL_CLAIM, NO_CLAIM, ResourceClaim, build_claim
from handrail.pipeline.run import run_call

if TYPE_CHECKING:
    from handrail.pipeline.call_session import CallSession

__all__ = ["add_wait_argument", "is_waiting_for_person"]

WAIT_FOR_PREVIOUS = "wait_for_previous"
WAIT_SCHEMA: dict[str, Any] = {
    "type": "boolean",
    "description": "True: start only when all earlier calls of this step have ended.",
}


class CallScheduler:
    """The calls of one session that have arrived and not ended, in the order they came."""

    def __init__(self, session: CallSession) -> None:
        self.under_way: dict[str, CallTask] = {}
        self._session = session
        # Those that any other may have to wait for: as long as there are none, readers need not look at each other.
        self._holding: set[CallTask] = set()

    def leave(self, running: CallTask) -> None:
        """Remove a call that has ended and is recorded, and wake the calls that wait for it."""
        self._holding.discard(running)
        self.look_again(running)

    def look_again(self, running: CallTask) -> None:
        """Something about it is new to those that wait for it."""
        if running.waiters is not None:
            waiters, running.waiters = running.waiters, None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    async def turn(self, running: CallTask) -> None:
        """Wait until a call that has just arrived may be judged."""
        await self._wait(running, early=not running.call.wait_for_previous)
        running.begun = True
        self.look_again(running)

    async def claim(self, running: CallTask) -> bool:
        """Wait until a call, as it is now bound, may run; whether other calls have run since it was judged."""
        running.executing = False
        self.anew(running)
        # Of two that hand on while both execute, the earlier may wait for this one, which does not execute any more.
        self.look_again(running)
        waited = await self._wait(running, early=False) or running.early
        running.executing = True
        running.early = False
        return waited

    def anew(self, running: CallTask) -> None:
        """Discard the call's claim, to be computed again: the call was changed, or has become another one."""
        running.claim = None
        self._holding.discard(running)

    async def batch(
        self, calls: Sequence[ToolCall], told: Callable[[int, ToolResult], None], stop_on: Collection[ResultStatus]
    ) -> list[ToolResult]:
        """Run the calls of one model step; see `Session.batch`."""
        session = self._session
        results: dict[int, ToolResult] = {}
        entered: dict[int, CallTask] = {}

        async def run(index: int) -> None:
            # A batch that is cancelled already takes no step.
            await anyio.lowlevel.checkpoint_if_cancelled()
            if index in entered:
                try:
                    result = await run_call(session, calls[index], running=entered[index])
                except asyncio.CancelledError:
                    if _is_batch_cancelled():
                        raise
                    # Its handler has cancelled the task that it ran in, which ends no other call.
                    result = finalize.build_failure(entered[index], Stopped("the call has cancelled itself"))
                del entered[index]
            else:
                result = finalize.refuse_duplicate_id(session, calls[index])
            results[index] = result
            told(index, result)
            if result["status"] in stop_on:
                why = Stopped(f"an earlier call of the batch ended as {result['status']}")
                for other in entered.values():
                    other.stop(why)

        calls = [split_wait_argument(call, session) for call in calls]
        for index, call in enumerate(calls):
            # The second of two with one id is refused, also when the first is over by then.
            if call.call_id not in self.under_way:
                entered[index] = self.under_way[call.call_id] = CallTask(call)
        if len(self.under_way) > 1:
            for running in entered.values():
                self._claim(running)
        try:
            async with anyio.create_task_group() as group:
                for index in range(len(calls)):
                    group.start_soon(run, index)
        finally:
            # Left over when the batch itself was cancelled before they took their first step.
            for running in entered.values():
                if self.under_way.get(running.call.call_id) is running:
                    finalize.record_unstarted(session, running)
        return [results[index] for index in range(len(calls))]

    def cancel(self, call_id: str | Collection[str] | None, why: Stopped) -> int:
        """Stop one call, several, or all; how many there were."""
        if call_id is None:
            # What is nested ends with the call around it.
            hit = [running for running in self.under_way.values() if not running.nested]
        else:
            ids = (call_id,) if isinstance(call_id, str) else call_id
            hit = [self.under_way[id] for id in ids if id in self.under_way]
        for running in hit:
            running.stop(why)
        return len(hit)

    async def _wait(self, running: CallTask, *, early: bool) -> bool:
        """Wait until no other call is in the way; return True if the call had to wait.

        `early`: do not wait for a call that itself waits for the user if either of the two may change anything.
        """
        bus, waited = self._session.bus, False
        try:
            while (other := self._in_the_way(running)) is not None:
                asked = is_waiting_for_person(other)
                if early and asked and (self._claim(running).vague or self._claim(other).vague):
                    running.early = True
                    return waited
                if not waited and bus.listening:
                    bus.publish(Queued(running.call.call_id, running.call.name, other.call.call_id))
                waited = True
                running.behind = other
                if asked:
                    self.look_again(running)
                waiter = asyncio.get_running_loop().create_future()
                if other.waiters is None:
                    other.waiters = []
                other.waiters.append(waiter)
                if running.host_run is not None:
                    # What it waits for may wait for commands that are held for this one; the call is judged again before it runs.
                    self._session.end_host_run(running.host_run)
                    running.host_run = None
                await waiter
        finally:
            running.behind = None
        return waited

    def _in_the_way(self, running: CallTask) -> CallTask | None:
        """Return the nearest call that this one must wait for, or None.

        Candidates are earlier calls, and any call that is executing.
        """
        # Only the oldest can have come when there was nobody who wanted to know what it uses.
        self._claim(next(iter(self.under_way.values())))
        if not self._claim(running).writes and not self._holding:
            return None
        later = True
        for other in reversed(self.under_way.values()):
            if other is running:
                later = False
                continue
            if other.nested or (later and not other.executing):
                continue
            # Nothing overtakes a call that waits for all before it.
            barred = running.call.wait_for_previous or (other.call.wait_for_previous and not other.begun)
            if (barred and not later) or self._claim(running).conflicts(self._claim(other)):
                return other
        return None

    def _claim(self, running: CallTask) -> ResourceClaim:
        if running.claim is None:
            running.claim = self._claim_of(running)
            if running.claim.writes or running.call.wait_for_previous:
                self._holding.add(running)
        return running.claim

    def _claim_of(self, running: CallTask) -> ResourceClaim:
        """Return the claim of a call as far as it is known; a call that cannot be bound yet may claim everything."""
        session, call = self._session, running.call
        if running.invocation is not None:
            return build_claim(running.invocation, session.court.judging)
        tool = session.listing.known(call.name)
        if tool is None or not isinstance(call.args, MAPPING_TYPES):
            return FULL_CLAIM
        if session.listing.unseeing(tool) is not None:
            # It will be refused: no call chooses another backend, so none has to end first.
            return NO_CLAIM
        try:
            return build_claim(
                Invocation(tool, call.args, tool.validate(call.args), call.call_id), session.court.judging
            )
        except InvalidArguments:
            # It will be refused, and has nothing to wait for.
            return NO_CLAIM
        # Validators and what they make of arguments are plugin code; the call itself will tell.
        except Exception:  # noqa: BLE001
            return FULL_CLAIM


def is_waiting_for_person(running: CallTask | None) -> bool:
    """Return True if the user is being asked about the call, or about one that it waits for."""
    while running is not None:
        if running.asked is not None:
            return True
        running = running.behind
    return False


def split_wait_argument(call: ToolCall, session: CallSession) -> ToolCall:
    """Move the argument `wait_for_previous`, which is for the scheduler, from the arguments to the call.

    A tool that has a parameter of that name keeps it.
    """
    if not isinstance(call.args, MAPPING_TYPES) or WAIT_FOR_PREVIOUS not in call.args:
        return call
    tool = session.listing.known(call.name)
    if tool is not None and WAIT_FOR_PREVIOUS in tool.fields:
        return call
    args = {key: value for key, value in call.args.items() if key != WAIT_FOR_PREVIOUS}
    return replace(call, args=args, wait_for_previous=call.args[WAIT_FOR_PREVIOUS] is True)


def add_wait_argument(schema: dict[str, Any]) -> dict[str, Any]:
    """Add `wait_for_previous` to a tool's input schema, for hosts that send batches; others save its tokens."""
    properties: dict[str, Any] = schema.get("properties", {})
    if WAIT_FOR_PREVIOUS in properties:
        return schema
    return {**schema, "properties": {**properties, WAIT_FOR_PREVIOUS: WAIT_SCHEMA}}


def _is_batch_cancelled() -> bool:
    """Return True if the enclosing task group is cancelled, not only this task."""
    return anyio.current_effective_deadline() == -math.inf
