"""One thread for what has to be called from the same one: COM, GDI, the accessibility of macOS.

A call into another program may never come back, and no thread can be ended from outside. So each job has a deadline; a thread that misses it
is given up, and the next job gets a new one. Only so many may hang at the same time.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Generic, TypeVar

from handrail.errors import Downstream

__all__ = ["ThreadWorker", "settle_future"]

S = TypeVar("S")
T = TypeVar("T")

WorkerJob = tuple[Callable[[Any], Any], "Future[Any]"]

JOB_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 2.0
MAX_HANGING_JOBS = 3


class ThreadWorker(Generic[S]):
    """Does jobs in order, each with the value that `begin` made in the thread; `end` gets it back, in the thread as well.

    `name` is what its errors call the other side.
    """

    def __init__(self, name: str, begin: Callable[[], S], end: Callable[[S], None] = lambda _: None) -> None:
        self.name = name
        self._begin = begin
        self._end = end
        self._jobs: queue.SimpleQueue[WorkerJob | None] | None = None
        self._thread: threading.Thread | None = None
        self._given_up: list[threading.Thread] = []

    async def run(self, job: Callable[[S], T], *, timeout: float = JOB_TIMEOUT_S) -> T:
        """Run the job in the thread and return its result.

        Raises `Downstream` if it takes longer than `timeout` seconds, or if too many earlier jobs still hang. A job
        that has begun is not stopped when its caller is cancelled; a queued one is dropped.
        """
        jobs = self._queue()
        future: Future[T] = Future()
        jobs.put((job, future))
        try:
            async with asyncio.timeout(timeout):
                return await asyncio.wrap_future(future)
        except TimeoutError as exc:
            if jobs is self._jobs:
                self._give_up()
            raise Downstream(
                f"{self.name} has not answered for {timeout:g} seconds", hint="wait for the program, or end it"
            ) from exc

    async def close(self) -> None:
        """End the thread; one that hangs is abandoned."""
        jobs, thread, self._jobs, self._thread = self._jobs, self._thread, None, None
        if jobs is not None and thread is not None:
            jobs.put(None)
            await asyncio.to_thread(thread.join, CLOSE_TIMEOUT_S)

    def _queue(self) -> queue.SimpleQueue[WorkerJob | None]:
        if self._jobs is None:
            self._given_up = [thread for thread in self._given_up if thread.is_alive()]
            if len(self._given_up) >= MAX_HANGING_JOBS:
                raise Downstream(
                    f"{self.name} does not answer: {len(self._given_up)} calls to it hang",
                    hint="end the program that hangs",
                )
            self._jobs = queue.SimpleQueue()
            self._thread = threading.Thread(target=self._work, args=(self._jobs,), name=self.name, daemon=True)
            self._thread.start()
        return self._jobs

    def _give_up(self) -> None:
        if self._jobs is not None and self._thread is not None:
            # It ends by itself if it ever comes back.
            self._jobs.put(None)
            self._given_up.append(self._thread)
        self._jobs = self._thread = None

    def _work(self, jobs: queue.SimpleQueue[WorkerJob | None]) -> None:
        try:
            state = self._begin()
        except Exception as exc:  # noqa: BLE001 - what makes a thread unfit is everybody's who asks something of it
            while (waiting := jobs.get()) is not None:
                settle_future(waiting[1], exception=exc)
            return
        try:
            while (waiting := jobs.get()) is not None:
                _run_job(waiting, state)
        finally:
            self._end(state)


def _run_job(waiting: WorkerJob, state: Any) -> None:
    job, future = waiting
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = job(state)
    except Exception as exc:  # noqa: BLE001 - a job's own failure is the caller's
        settle_future(future, exception=exc)
    else:
        settle_future(future, result=result)


def settle_future(future: Future[Any], *, result: Any = None, exception: BaseException | None = None) -> None:
    """Give a job's caller what came of it, if it still waits."""
    # The caller may have been cancelled meanwhile.
    with suppress(InvalidStateError):
        if exception is not None:
            future.set_exception(exception)
        else:
            future.set_result(result)
