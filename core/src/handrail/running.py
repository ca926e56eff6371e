"""Running a handler so that it can be stopped: by its timeout, by a person, by the session.

A handler that finishes without ever waiting costs neither a timer nor a task: the first step is taken at once, and only when the coroutine
suspends is the call put under watch.
"""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Coroutine, Generator
from typing import Any

from handrail.errors import InvalidArguments, Stopped, TimedOut

# Seconds that a handler has for tidying up once it was told to stop; then it is left behind.
GRACE_S = 3.0

log = logging.getLogger(__name__)


class Running:
    """One call that is under way. `why` is set once somebody wants it to end.

    `timeout` (seconds) counts from the beginning when it is `ticking`, else from `start_clock`.
    """

    __slots__ = ("_delivered", "_task", "_ticking", "_timer", "call_id", "timeout", "why")

    def __init__(self, call_id: str, timeout: float | None, *, ticking: bool = False) -> None:
        self.call_id = call_id
        self.timeout = timeout
        self.why: Stopped | None = None
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ticking = ticking
        # How many cancellations of ours the task has taken: 1 asks the handler to stop, 2 leaves it behind.
        self._delivered = 0

    def stop(self, why: Stopped) -> None:
        """End it now; the first reason given is the one that counts."""
        if self.why is None:
            self.why = why
            if self._task is not None and self._task is asyncio.current_task():
                # A handler that stops itself: cancelling a running task would hit whatever its host awaits next.
                asyncio.get_running_loop().call_soon(self._deliver)
            else:
                self._deliver()

    def start_clock(self) -> None:
        """From now on the timeout counts; waiting for a lease or a person before does not."""
        self._ticking = True
        if self._task is not None and self.timeout is not None and self._timer is None:
            late = TimedOut(f"stopped after {self.timeout:g} s")
            self._timer = asyncio.get_running_loop().call_later(self.timeout, self.stop, late)

    @types.coroutine
    def drive(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The coroutine's result. Raises `why` when it was stopped, unless it still returned something: then that is given back."""
        try:
            waiting = coroutine.send(None)
        except StopIteration as done:
            return done.value
        return (yield from self._watched(coroutine, waiting))

    def _watched(self, coroutine: Coroutine[Any, Any, Any], waiting: Any) -> Generator[Any, Any, Any]:
        self._task = asyncio.current_task()
        assert self._task is not None
        before = self._task.cancelling()
        if self._ticking:
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
        log.error("the call %s did not stop within %g s and was left behind", self.call_id, GRACE_S)
        try:
            coroutine.close()
        except RuntimeError:
            # It still awaits something while it is closed, which nobody will ever give it.
            log.debug("the call %s cannot be closed", self.call_id, exc_info=True)

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            # These cancellations were ours and end here: what awaits this call goes on.
            for _ in range(self._delivered):
                self._task.uncancel()
        self._task = None


def begin(under_way: dict[str, Running], running: Running) -> Running:
    """Enter it among what runs. Of two calls with one id, nobody could say which is to be cancelled: the second is refused."""
    if running.call_id in under_way:
        raise InvalidArguments(f"a call with the id {running.call_id!r} is under way", hint="give each call its own id")
    under_way[running.call_id] = running
    return running
