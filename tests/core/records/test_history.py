"""The ring of a session's last calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handrail import Media, Write, tool
from handrail.testing import open_test_session


@tool()
async def echo(text: str = "") -> dict[str, Any]:
    """Return the text."""
    return {"text": text}


@tool(effects=[Write("settings")])
async def change() -> None:
    """Change."""


@tool()
async def photograph() -> dict[str, Any]:
    """Return a picture."""
    return {"image_b64": "A" * 100_000, "media": [Media("image", "image/png", data=b"x" * 1000)], "note": "kept"}


async def test_it_keeps_the_last_fifty_oldest_first() -> None:
    async with open_test_session(tools=[echo]) as session:
        for number in range(60):
            await session.call("echo", {"text": str(number)})
        shown = await session.call("get_action_history")
    assert shown["total_count"] == 60
    assert [action["command"] for action in shown["actions"]] == [f"Echo: text={n}" for n in range(10, 60)]


@pytest.mark.parametrize(("wanted", "got"), [(1, ["c"]), (2, ["b", "c"]), (50, ["a", "b", "c"])])
async def test_the_newest_n_are_given_oldest_first(wanted: int, got: list[str]) -> None:
    async with open_test_session(tools=[echo]) as session:
        for text in "abc":
            await session.call("echo", {"text": text}, call_id=text)
        shown = await session.call("get_action_history", {"last_n": wanted})
    assert [action["call_id"] for action in shown["actions"]] == got


async def test_each_action_says_what_was_decided_and_what_came_of_it() -> None:
    async with open_test_session(tools=[echo, change]) as session:
        await session.call("echo", {"text": "hi"})
        await session.call("change")
        await session.call("nobody", {"x": 1})
        actions = (await session.call("get_action_history"))["actions"]
    assert [(a["tool"], a["decision"], a["status"]) for a in actions] == [
        ("echo", "allow", "success"),
        ("change", "deny", "denied"),
        ("nobody", None, "error"),
    ]
    assert actions[0]["result"].startswith('{"status": "success", "text": "hi"')
    assert actions[2]["command"] == 'nobody {"x": 1}'
    assert all(action["timestamp"].endswith("+00:00") for action in actions)


async def test_long_results_are_summed_up_and_pictures_left_out() -> None:
    async with open_test_session(tools=[echo, photograph]) as session:
        await session.call("echo", {"text": "x" * 10_000})
        await session.call("photograph")
        long, picture = (await session.call("get_action_history"))["actions"]
    assert len(long["result"]) == 500
    assert len(long["command"]) < 300
    assert "AAAA" not in picture["result"]
    assert "kept" in picture["result"]


@pytest.mark.parametrize("key", ["image_b64", "raw_image_b64", "media", "ui_elements"])
async def test_what_is_large_is_not_kept_whichever_it_is(key: str) -> None:
    @tool()
    async def show() -> dict[str, Any]:
        """Return something large."""
        return {key: [], "note": "kept"}

    async with open_test_session(tools=[show]) as session:
        assert key in await session.call("show")
        (record,) = session.history.last()
    assert record.result.keys() == {"status", "note", "duration_ms"}


async def test_an_empty_history_is_empty() -> None:
    async with open_test_session() as session:
        shown = await session.call("get_action_history")
    assert (shown["actions"], shown["total_count"]) == ([], 0)
    assert session.history.last(0) == []


async def test_an_action_says_how_it_is_undone_where_its_tool_does() -> None:
    def told(params: Any, result: Mapping[str, Any]) -> str:
        return {"a": f"take {result['content']} away", "b": ""}[params.word]

    @tool(effects=[Write("session")], undo=told)
    async def put(word: str) -> str:
        """Put a word."""
        return word

    async with open_test_session(tools=[put]) as session:
        for word in ("a", "b", "c"):
            await session.call("put", {"word": word})
        await session.call("put", {})
        actions = (await session.call("get_action_history"))["actions"]
    assert [action.get("undo") for action in actions] == ["take a away", None, None, None]
