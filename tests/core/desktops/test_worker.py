"""A thread for calls that may never come back."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from handrail import Downstream
from handrail.desktop.thread_worker import ThreadWorker


@pytest.fixture
def stuck() -> Iterator[threading.Event]:
    """What a job waits for that hangs; the test's end sets it."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
async def worker() -> AsyncIterator[ThreadWorker[threading.Thread]]:
    found = ThreadWorker("the program", threading.current_thread)
    yield found
    await found.close()


async def test_all_jobs_are_done_in_the_thread_that_began(worker: ThreadWorker[threading.Thread]) -> None:
    threads = {await worker.run(lambda own: (own, threading.current_thread())) for _ in range(3)}
    ((own, ran),) = threads
    assert own is ran is not threading.main_thread()


async def test_a_jobs_error_is_its_callers(worker: ThreadWorker[threading.Thread]) -> None:
    with pytest.raises(KeyError):
        await worker.run(lambda _: {}["absent"])
    assert await worker.run(lambda _: "works on") == "works on"


async def test_a_job_that_hangs_ends_at_its_deadline_and_the_next_one_works(
    worker: ThreadWorker[threading.Thread], stuck: threading.Event
) -> None:
    with pytest.raises(Downstream, match=r"the program has not answered for 0\.05 seconds"):
        await worker.run(lambda _: stuck.wait(), timeout=0.05)
    assert await worker.run(lambda _: "works on") == "works on"


async def test_only_so_many_may_hang_and_it_works_again_once_they_come_back(
    worker: ThreadWorker[threading.Thread], stuck: threading.Event
) -> None:
    hanging: list[threading.Thread] = []

    def hang(own: threading.Thread) -> None:
        hanging.append(own)
        stuck.wait()

    for _ in range(3):
        with pytest.raises(Downstream, match="has not answered"):
            await worker.run(hang, timeout=0.05)
    with pytest.raises(Downstream, match="3 calls to it hang"):
        await worker.run(lambda _: "never done")
    stuck.set()
    for thread in hanging:
        thread.join(10)
    assert await worker.run(lambda _: "works on") == "works on"


async def test_a_thread_that_cannot_begin_says_so_to_everybody() -> None:
    def begin() -> None:
        raise Downstream("there is no such library")

    worker = ThreadWorker("the program", begin)
    for _ in range(2):
        with pytest.raises(Downstream, match="no such library"):
            await worker.run(lambda _: None)
    await worker.close()


async def test_what_it_began_with_is_given_back_in_its_thread() -> None:
    ended: list[tuple[threading.Thread, threading.Thread]] = []
    worker = ThreadWorker(
        "the program", threading.current_thread, lambda own: ended.append((own, threading.current_thread()))
    )
    await worker.run(lambda _: None)
    await worker.close()
    ((own, thread),) = ended
    assert own is thread
