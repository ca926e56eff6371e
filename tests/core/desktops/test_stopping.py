"""Timeouts and cancellation: prompt, truthful, and nothing happens afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

import anyio
import pytest

from handrail import Answer, Choice, Session, Stopped, Tool, ToolContext, ToolError, ToolResult, Write, tool
from handrail.api.events import ApprovalAsked, Event, Queued, Started
from handrail.audit.writer import verify_audit
from handrail.testing import Always, open_test_session

# What is stopped would take twice as long.
PROMPT_S = 30.0


def made(function: Callable[..., Any], **declared: Any) -> Tool:
    given: dict[str, Any] = {"name": "work", "description": "Work.", **declared}
    return tool(**given)(function)


async def sleeping() -> None:
    await anyio.sleep(60)


async def until(session: Session, kind: type[Event], count: int = 1) -> Callable[[], Awaitable[None]]:
    """Waits until so many events of that kind were published since now."""
    seen = 0
    enough = anyio.Event()

    def notice(event: Event) -> None:
        nonlocal seen
        seen += isinstance(event, kind)
        if seen >= count:
            enough.set()

    session.bus.subscribe(notice)

    async def wait() -> None:
        with anyio.fail_after(PROMPT_S):
            await enough.wait()

    return wait


async def stopped(function: Callable[..., Any], *, how: Callable[[Session], Any], **declared: Any) -> ToolResult:
    """The result of a call that is stopped once it has started; it must come promptly."""
    async with open_test_session(tools=[made(function, **declared)]) as session:
        started = await until(session, Started)
        task = asyncio.create_task(session.call("work", call_id="w"))
        await started()
        began = perf_counter()
        how(session)
        result = await task
        assert perf_counter() - began < PROMPT_S
        assert not session.running
        assert (await session.call("wait", {"seconds": 0.1})).ok
        return result


def one(session: Session) -> None:
    assert session.cancel("w") == 1


def everything(session: Session) -> None:
    assert session.cancel() == 1


@pytest.mark.parametrize("how", [one, everything])
async def test_a_cancelled_call_ends_at_once_and_says_so(how: Callable[[Session], None]) -> None:
    result = await stopped(sleeping, how=how)
    assert (result.status, result.error_code) == ("cancelled", "cancelled")


async def test_cancelling_what_does_not_run_changes_nothing() -> None:
    async with open_test_session() as session:
        assert session.cancel("nobody") == 0
        assert session.cancel() == 0
        assert (await session.call("wait", {"seconds": 0.1})).ok


async def test_one_call_of_several_is_cancelled() -> None:
    async def short() -> None:
        await anyio.sleep(0.2)

    async with open_test_session(tools=[made(short)]) as session:
        started = await until(session, Started, 2)
        tasks = [asyncio.create_task(session.call("work", call_id=id)) for id in ("a", "b")]
        await started()
        session.cancel("a")
        assert [(await task).status for task in tasks] == ["cancelled", "success"]


async def test_nothing_happens_after_a_cancellation() -> None:
    done: list[str] = []

    async def steps() -> None:
        await anyio.sleep(0.05)
        done.append("late")

    result = await stopped(steps, how=one)
    await anyio.sleep(0.1)
    assert result.status == "cancelled"
    assert not done


async def test_a_call_takes_as_long_as_its_timeout_allows() -> None:
    async with open_test_session(tools=[made(sleeping, timeout=0.1)]) as session:
        began = perf_counter()
        result = await session.call("work")
        assert 0.09 < perf_counter() - began < PROMPT_S
    assert (result.status, result.error_code) == ("timeout", "timeout")
    assert result["error"]["retryable"]
    assert "0.1 s" in result["error"]["message"]


async def test_a_timeout_may_depend_on_the_arguments() -> None:
    async def work(patience: float) -> None:
        await anyio.sleep(60)

    async with open_test_session(tools=[made(work, timeout=lambda params: params.patience)]) as session:
        assert (await session.call("work", {"patience": 0.05})).status == "timeout"


async def test_no_timeout_means_none() -> None:
    async def brief() -> str:
        await anyio.sleep(0.05)
        return "done"

    async with open_test_session(tools=[made(brief, timeout=None)]) as session:
        assert (await session.call("work"))["content"] == "done"


async def test_waiting_for_a_person_does_not_use_up_the_timeout() -> None:
    async def brief() -> str:
        await anyio.sleep(0.01)
        return "done"

    async def slow_person(approval: Any) -> Any:
        await anyio.sleep(0.2)
        return Answer(Choice.ONCE)

    async with open_test_session(
        tools=[made(brief, timeout=0.1, effects=[Write("settings")])], confirm=slow_person
    ) as session:
        assert (await session.call("work"))["content"] == "done"


async def test_waiting_for_a_lease_does_not_use_up_the_timeout() -> None:
    async def brief() -> str:
        await anyio.sleep(0.15)
        return "done"

    async with open_test_session(tools=[made(brief, timeout=0.25, exclusive="pen")]) as session:
        results: list[ToolResult] = []

        async def write() -> None:
            results.append(await session.call("work"))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(write)
    assert [result.status for result in results] == ["success"] * 3


async def test_a_call_that_waits_for_a_lease_can_be_cancelled() -> None:
    async with open_test_session(tools=[made(sleeping, exclusive="pen")]) as session:
        queued = await until(session, Queued)
        tasks = [asyncio.create_task(session.call("work", call_id=id)) for id in ("holds", "waits")]
        await queued()
        session.cancel("waits")
        assert (await tasks[1]).status == "cancelled"
        session.cancel("holds")
        assert (await tasks[0]).status == "cancelled"


async def test_what_a_handler_still_returns_is_kept_under_the_true_status() -> None:
    async def tidy() -> dict[str, Any]:
        try:
            await anyio.sleep(60)
        except asyncio.CancelledError:
            return {"written": 3}
        return {}

    result = await stopped(tidy, how=one)
    assert (result.status, result["written"]) == ("cancelled", 3)
    assert result["error"]["code"] == "cancelled"


async def broken_tidy() -> None:
    try:
        await anyio.sleep(60)
    except asyncio.CancelledError:
        raise ToolError("the connection was closed") from None


async def crashing_tidy() -> None:
    try:
        await anyio.sleep(60)
    finally:
        raise RuntimeError("while tidying up")


@pytest.mark.parametrize("function", [broken_tidy, crashing_tidy])
async def test_a_stopped_call_is_cancelled_whatever_its_handler_makes_of_it(function: Callable[..., Any]) -> None:
    assert (await stopped(function, how=one)).status == "cancelled"
    async with open_test_session(tools=[made(function, timeout=0.05)]) as session:
        assert (await session.call("work")).status == "timeout"


async def test_a_handler_may_tidy_up_before_it_goes() -> None:
    order: list[str] = []

    async def tidy() -> None:
        try:
            await anyio.sleep(60)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
            order.append("tidied")

    result = await stopped(tidy, how=one)
    order.append("result")
    assert result.status == "cancelled"
    assert order == ["tidied", "result"]


async def test_a_handler_that_will_not_stop_is_left_behind() -> None:
    turns: list[int] = []

    async def stubborn() -> None:
        while True:
            try:
                await anyio.sleep(0.02)
                turns.append(1)
            except asyncio.CancelledError:
                continue

    async with open_test_session(tools=[made(stubborn)]) as session:
        started = await until(session, Started)
        task = asyncio.create_task(session.call("work", call_id="w"))
        await started()
        session.cancel("w")
        with anyio.fail_after(PROMPT_S):
            result = await task
        assert result.status == "cancelled"
        before = len(turns)
        await anyio.sleep(0.1)
        assert len(turns) == before
        assert (await session.call("wait", {"seconds": 0.1})).ok


async def test_task_groups_in_a_handler_end_with_it() -> None:
    alive: list[str] = []

    async def child(name: str) -> None:
        try:
            await anyio.sleep(60)
        finally:
            alive.remove(name)

    async def grouped() -> None:
        async with anyio.create_task_group() as group:
            for name in ("a", "b"):
                alive.append(name)
                group.start_soon(child, name)

    result = await stopped(grouped, how=one)
    assert result.status == "cancelled"
    assert not alive


async def test_a_timeout_inside_the_handler_is_its_own_affair() -> None:
    async def patient() -> dict[str, Any]:
        with anyio.move_on_after(0.05) as scope:
            await anyio.sleep(60)
        try:
            async with asyncio.timeout(0.05):
                await asyncio.sleep(60)
        except TimeoutError:
            return {"gave_up": scope.cancelled_caught}
        return {}

    async with open_test_session(tools=[made(patient)]) as session:
        result = await session.call("work")
    assert result.ok
    assert result["gave_up"]


async def test_a_tool_error_from_a_task_group_reaches_the_model() -> None:
    async def fail() -> None:
        raise ToolError("the page is gone")

    async def grouped() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(fail)

    async with open_test_session(tools=[made(grouped)]) as session:
        assert (await session.call("work"))["error"]["message"] == "the page is gone"


async def test_a_handler_can_stop_itself() -> None:
    async def self_stopping(context: ToolContext) -> None:
        context.session.cancel(context.call_id)
        await anyio.sleep(60)

    async with open_test_session(tools=[made(self_stopping)]) as session:
        began = perf_counter()
        assert (await session.call("work")).status == "cancelled"
        assert perf_counter() - began < PROMPT_S
        await anyio.sleep(0.01)
        assert (await session.call("wait", {"seconds": 0.1})).ok


async def test_a_handler_that_stops_itself_and_never_waits_leaves_no_cancellation_behind() -> None:
    async def self_stopping(context: ToolContext) -> dict[str, Any]:
        context.session.cancel(context.call_id)
        return {"seen": True}

    async with open_test_session(tools=[made(self_stopping)]) as session:
        result = await session.call("work")
        assert (result.status, result["seen"]) == ("cancelled", True)
        await anyio.sleep(0.01)
        await anyio.lowlevel.checkpoint()
        assert (await session.call("wait", {"seconds": 0.1})).ok


async def test_a_checkpoint_raises_once_the_call_is_stopped() -> None:
    steps: list[int] = []

    async def pressing(context: ToolContext) -> None:
        for step in range(100):
            context.checkpoint()
            steps.append(step)
            if step == 3:
                context.session.cancel(context.call_id)

    async with open_test_session(tools=[made(pressing)]) as session:
        assert (await session.call("work")).status == "cancelled"
    assert steps == [0, 1, 2, 3]


async def test_a_cancellation_of_the_hosts_own_task_is_recorded_and_goes_on() -> None:
    async with open_test_session(tools=[made(sleeping)]) as session:
        started = await until(session, Started)
        task = asyncio.create_task(session.call("work"))
        await started()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert session.history.last()[0].result["status"] == "cancelled"
        audit = session.runtime.places.audit / f"{session.id}.jsonl"
        assert not verify_audit(audit).unfinished


async def test_an_anyio_scope_around_a_call_stops_it() -> None:
    async with open_test_session(tools=[made(sleeping)]) as session:
        with anyio.move_on_after(0.05) as scope:
            await session.call("work")
        assert scope.cancelled_caught
        assert session.history.last()[0].result["status"] == "cancelled"
        assert (await session.call("wait", {"seconds": 0.1})).ok


async def test_a_call_that_awaits_approval_can_be_cancelled() -> None:
    ran: list[int] = []

    async def act() -> None:
        ran.append(1)

    answered = anyio.Event()

    async def person(approval: Any) -> Any:
        await answered.wait()
        return Answer(Choice.ONCE)

    async with open_test_session(tools=[made(act, effects=[Write("settings")])], confirm=person) as session:
        asked = await until(session, ApprovalAsked)
        task = asyncio.create_task(session.call("work", call_id="w"))
        await asked()
        began = perf_counter()
        assert session.cancel("w") == 1
        result = await task
        assert perf_counter() - began < PROMPT_S
        answered.set()
        await anyio.sleep(0.05)
    assert result.status == "cancelled"
    assert not ran


async def test_closing_a_session_stops_what_runs() -> None:
    async with open_test_session(tools=[made(sleeping)]) as session:
        started = await until(session, Started)
        task = asyncio.create_task(session.call("work"))
        await started()
    with anyio.fail_after(PROMPT_S):
        result = await task
    assert result.status == "cancelled"
    assert "session is over" in result["error"]["message"]


async def test_a_closed_session_runs_nothing() -> None:
    ran: list[int] = []

    async def act() -> None:
        ran.append(1)

    async with open_test_session(tools=[made(act)]) as session:
        pass
    result = await session.call("work")
    assert not result.ok
    assert not ran


async def test_two_running_calls_of_one_id_do_not_get_mixed_up() -> None:
    ran: list[int] = []

    async def act() -> None:
        ran.append(1)
        await anyio.sleep(0.05)

    async with open_test_session(tools=[made(act)]) as session:
        results: list[ToolResult] = []

        async def run() -> None:
            results.append(await session.call("work", call_id="same"))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            group.start_soon(run)
        assert sorted(result.status for result in results) == ["error", "success"]
        assert len(ran) == 1
        assert (await session.call("work", call_id="same")).ok


async def test_a_call_can_be_stopped_while_it_is_judged_slowly() -> None:
    class Slow(Always):
        async def opinion(self, invocation: Any, judging: Any) -> Any:
            await anyio.sleep(0.2)
            return await super().opinion(invocation, judging)

    ran: list[int] = []

    async def act() -> None:
        ran.append(1)

    async with open_test_session(tools=[made(act)], evaluators=[Slow(None)]) as session:
        task = asyncio.create_task(session.call("work"))
        await anyio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not ran


def test_stopped_is_the_root_of_every_way_to_be_stopped() -> None:
    from handrail import Failsafe, TimedOut

    assert issubclass(TimedOut, Stopped)
    assert issubclass(Failsafe, Stopped)
