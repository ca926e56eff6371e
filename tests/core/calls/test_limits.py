"""What a session may use, and the guard against calls that go round in circles."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from handrail import Session, ToolCall, ToolContext, ToolError, Write, tool
from handrail.api.approval import yes
from handrail.testing import Always, open_test_session


@tool()
async def say(text: str) -> str:
    """Say something."""
    return text


@tool()
async def fail(text: str = "") -> None:
    """Fail."""
    raise ToolError("it is locked")


@tool(effects=[Write("settings")])
async def change() -> None:
    """Change something."""


@tool()
async def sleep() -> None:
    """Sleep for long."""
    await anyio.sleep(60)


@tool()
async def many(context: ToolContext) -> dict[str, Any]:
    """Make three calls."""
    return {"codes": [(await context.call("say", {"text": "x"})).error_code for _ in range(3)]}


def limited(**limits: Any) -> Any:
    return open_test_session(tools=[say, fail, change, sleep, many], settings={"limits": limits}, confirm=yes)


async def codes(session: Session, name: str, times: int, **args: Any) -> list[str | None]:
    return [(await session.call(name, args)).error_code for _ in range(times)]


async def test_calls_beyond_the_budget_are_refused_with_a_cure() -> None:
    async with limited(calls=2) as session:
        assert await codes(session, "say", 3, text="a") == [None, None, "limit_reached"]
        refused = await session.call("say", {"text": "b"})
    assert "limits.calls" in refused["error"]["message"]
    assert not refused["error"]["retryable"]


async def test_the_calls_that_tools_make_do_not_count() -> None:
    async with limited(calls=2) as session:
        assert (await session.call("many"))["codes"] == [None] * 3
        assert (await session.call("say", {"text": "a"})).ok


async def test_a_batch_takes_from_the_same_budget() -> None:
    async with limited(calls=2) as session:
        results = await session.batch([ToolCall("say", {"text": "a"}, f"{at}") for at in range(4)])
    assert [result.error_code for result in results] == [None, None, "limit_reached", "limit_reached"]


async def test_output_is_counted_in_tokens_of_four_characters() -> None:
    async with limited(output_tokens=100) as session:
        assert await codes(session, "say", 1, text="x" * 300) == [None]
        assert await codes(session, "say", 2, text="y" * 300) == [None, "limit_reached"]


async def test_when_the_time_is_over_what_runs_is_stopped_and_what_comes_is_refused() -> None:
    async with limited(seconds=0.2) as session:
        with anyio.fail_after(30):
            result = await session.call("sleep")
        assert (result.status, result.error_code) == ("timeout", "timeout")
        assert "limits.seconds" in result["error"]["message"]
        assert result["error"]["retryable"] is False
        assert (await session.call("say", {"text": "a"})).error_code == "limit_reached"


async def test_the_same_failure_again_and_again_is_a_loop() -> None:
    async with limited(failures=3) as session:
        assert await codes(session, "fail", 5) == ["tool_error"] * 3 + ["loop_detected"] * 2
        refused = await session.call("fail")
        assert "has failed 3 times" in refused["error"]["message"]
        assert refused["error"]["details"]["failed"] == 3
        assert await codes(session, "fail", 1, text="another way") == ["tool_error"]


async def test_the_guard_counts_equal_calls_whatever_the_order_of_their_keys() -> None:
    async with limited(failures=2) as session:
        for args in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2}):
            last = await session.call("fail", args)
    assert last.error_code == "loop_detected"


async def test_looking_in_between_does_not_hide_a_loop_and_a_change_ends_it() -> None:
    async with limited(failures=2) as session:
        found: list[str | None] = []
        for _ in range(3):
            found += await codes(session, "fail", 1)
            await session.call("say", {"text": "look"})
        assert found == ["tool_error", "tool_error", "loop_detected"]
        await session.call("change")
        assert await codes(session, "fail", 1) == ["tool_error"]


async def test_polling_is_no_loop_unless_repeats_are_limited() -> None:
    async with limited(failures=2) as session:
        assert await codes(session, "say", 30, text="still?") == [None] * 30
    async with limited(repeats=3) as session:
        assert await codes(session, "say", 4, text="still?") == [None] * 3 + ["loop_detected"]
        assert await codes(session, "say", 1, text="now?") == [None]


async def test_a_no_is_an_answer_and_no_loop() -> None:
    settings = {"limits": {"failures": 2}}
    async with open_test_session(tools=[say], evaluators=[Always("deny")], settings=settings) as session:
        assert await codes(session, "say", 5, text="please") == ["denied_by_policy"] * 5


async def test_nothing_is_counted_as_long_as_all_goes_well() -> None:
    async with open_test_session(tools=[say]) as session:
        await codes(session, "say", 3, text="a")
        assert not session.limits.watching


@pytest.mark.parametrize("key", ["seconds", "calls", "output_tokens"])
async def test_nothing_is_left_of_a_limited_session(key: str) -> None:
    before = asyncio.all_tasks()
    async with limited(**{key: 1000}) as session:
        await session.call("say", {"text": "a"})
    assert asyncio.all_tasks() <= before


async def test_a_call_by_another_name_of_its_tool_is_the_same_call() -> None:
    @tool(name="new_name", aliases=("old_name",))
    async def locked() -> None:
        """Fail."""
        raise ToolError("it is locked")

    async with open_test_session(tools=[locked], settings={"limits": {"failures": 2}}) as session:
        assert await codes(session, "old_name", 1) == ["tool_error"]
        assert await codes(session, "new_name", 1) == ["tool_error"]
        assert await codes(session, "old_name", 1) == ["loop_detected"]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        pytest.param({"a": 1, "b": "x"}, {"b": "x", "a": 1}, True, id="order"),
        pytest.param({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, True, id="order-within"),
        pytest.param({"a": "x" * 5_000}, {"a": "x" * 5_000}, True, id="long"),
        pytest.param({"a": 1}, {"a": True}, False, id="a-number-and-yes"),
        pytest.param({"a": 1}, {"a": "1"}, False, id="a-number-and-its-text"),
    ],
)
async def test_what_is_exactly_the_same_call(first: dict[str, Any], second: dict[str, Any], same: bool) -> None:
    @tool()
    async def locked(a: Any, b: str = "") -> None:
        """Fail."""
        raise ToolError("it is locked")

    async with open_test_session(tools=[locked], settings={"limits": {"failures": 1}}) as session:
        assert (await session.call("locked", first)).error_code == "tool_error"
        assert ((await session.call("locked", second)).error_code == "loop_detected") is same


async def test_an_integer_of_very_many_digits_breaks_no_call() -> None:
    """Python writes out no integer of more than 4,300 digits."""
    async with limited(repeats=3) as session:
        for _ in range(2):
            result = await session.call("say", {"text": "x", "number": 10**5000})
            assert result.error_code == "invalid_arguments"
