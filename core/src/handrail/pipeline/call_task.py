"""A running call, from its arrival to its result; it can be stopped at any time by timeout, user or session.

A call that ends without ever suspending costs neither a timer nor a task: its first step is executed at once, and only
when the coroutine suspends does monitoring begin.
"""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Coroutine, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from handrail.errors import Stopped, TimedOut

if TYPE_CHECKING:
    from handrail.api.call import Confirmation, Invocation, ToolCall
    from handrail.api.verdict import Verdict
    from handrail.pipeline.approved_files import FileState
    from handrail.pipeline.resources import ResourceClaim
    from handrail.sandbox.quarantine import HostRun

__all__ = ["CallTask"]

# Seconds that a call has for tidying up once it was told to stop; then it is left behind.
GRACE_S = 3.0

log = logging.getLogger(__name__)
T = TypeVar("T")


def is_cancelled() -> bool:
    """Return True if the current task is being cancelled.

    A `CancelledError` from a future that was cancelled is a failure like any other.
    """
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class CallTask:
    """State of a running call. `why` is set once it should stop; `asked` is what the user is being shown.

    `claim` is what it uses, once another call needs to know; `begun` is True once it may be judged, `executing` once
    its resources are assigned, `early` if it did not wait before it was judged. `behind` is the call that it waits for,
    `waiters` are the calls that wait for this one. `limit` is set while it is timed, in seconds; `watched` is True once
    it had to wait for something.
    """

    # Not in slots, so that what most calls never need costs them nothing.
    why: Stopped | None = None
    invocation: Invocation | None = None
    verdict: Verdict | None = None
    asked: Confirmation | None = None
    # What holds sandboxed commands since a person was asked, until the call is over.
    host_run: HostRun | None = None
    # The files that the question is about, as they were before it was asked.
    asked_files: Mapping[str, FileState] | None = None
    claim: ResourceClaim | None = None
    begun = False
    executing = False
    early = False
    behind: CallTask | None = None
    waiters: list[asyncio.Future[None]] | None = None
    limit: float | None = None
    watched = False
    _task: asyncio.Task[Any] | None = None
    _timer: asyncio.TimerHandle | None = None
    # How many hold its clock, and the seconds that it had left.
    _rests = 0
    _left: float | None = None
    # How many cancellations of ours the task has taken: 1 asks the call to stop, 2 leaves it behind.
    _delivered = 0

    def __init__(self, call: ToolCall, nested: bool = False) -> None:
        self.call = call
        self.nested = nested

    def stop(self, why: Stopped) -> None:
        """Stop the call now; the first reason given is kept."""
        if self.why is None:
            self.why = why
            if self._task is not None and self._task is asyncio.current_task():
                # A handler that stops itself: cancelling a running task would hit whatever its host awaits next.
                asyncio.get_running_loop().call_soon(self._deliver)
            else:
                self._deliver()

    def start_clock(self) -> None:
        """Start to count the time limit. For a call that is not monitored yet, monitoring will start the clock."""
        if self.limit is not None and self._timer is None and not self._rests:
            late = TimedOut(f"stopped after {self.limit:g} s")
            left = self.limit if self._left is None else self._left
            self._timer = asyncio.get_running_loop().call_later(left, self.stop, late)

    def stop_clock(self) -> None:
        """Stop the clock: all further work of the call is untimed."""
        self.limit = self._left = None
        if self._timer is not None and not self._delivered:
            self._timer.cancel()
            self._timer = None

    @contextmanager
    def resting(self) -> Generator[None]:
        """Pause the clock during the block."""
        self._rests += 1
        if self._timer is not None and self.why is None:
            self._left = self._timer.when() - asyncio.get_running_loop().time()
            self._timer.cancel()
            self._timer = None
        try:
            yield
        finally:
            self._rests -= 1
            if self.watched and self.why is None:
                self.start_clock()

    async def drive_on(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Drive follow-up work once the call itself is over, regardless of how it ended.

        Raises `why` if stopped meanwhile.
        """
        self.why, self._delivered, self._timer = None, 0, None
        result = await self.drive(coroutine)
        if self.why is not None:
            raise self.why
        return result

    @types.coroutine
    def drive(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Drive the coroutine and return its result. Raises `why` if it was stopped and did not return a value."""
        try:
            waiting = coroutine.send(None)
        except StopIteration as done:
            return done.value
        return (yield from self._watched(coroutine, waiting))

    def _watched(self, coroutine: Coroutine[Any, Any, Any], waiting: Any) -> Generator[Any, Any, Any]:
        self._task = asyncio.current_task()
        assert self._task is not None
        before = self._task.cancelling()
        self.watched = True
        self.start_clock()
        if self.why is not None:
            asyncio.get_running_loop().call_soon(self._deliver)
        try:
            while True:
                try:
                    sent = yield waiting
                # Whatever is thrown at this coroutine belongs to the one it drives.
                except BaseException as exc:
                    if self._delivered > 1:
                        self._leave_behind(coroutine)
                        raise
                    waiting = coroutine.throw(exc)
                else:
                    waiting = coroutine.send(sent)
        except StopIteration as done:
            return done.value
        except asyncio.CancelledError:
            if not self._delivered or self._task.cancelling() > before + self._delivered:
                raise
            assert self.why is not None
            raise self.why from None
        finally:
            self._settle()

    def _deliver(self) -> None:
        if self._task is None or self._delivered > 1:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(GRACE_S, self._deliver)
        self._delivered += 1
        self._task.cancel()

    def _leave_behind(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """End a handler that swallows its cancellation: nothing drives it any further."""
        log.error("the call %s did not stop within %g s and was left behind", self.call.call_id, GRACE_S)
        try:
            coroutine.close()
        except RuntimeError:
            # It still awaits something while it is closed, which nobody will ever give it.
            log.debug("the call %s cannot be closed", self.call.call_id, exc_info=True)

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            # These cancellations were ours and end here: what awaits this call goes on.
            for _ in range(self._delivered):
                self._task.uncancel()
        self._task = None
