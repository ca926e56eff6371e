"""Skills in real runs of ADK: their tools at the next step, and what the ADK session remembers of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from tests.plugins.adk.agents import Call, Chat, Scripted, results
from tests.plugins.skills.shelf import PLUGINS, TOOL, enable, own, write

from handrail import Tool, ToolContext, tool
from handrail.session.runtime import Runtime
from handrail.testing import open_test_runtime
from handrail_adk import HandrailToolset

pytestmark = pytest.mark.usefixtures("without_undo")

POOL = "metadata: {adk_additional_tools: pool_tool}\n"


@tool(loadable=True, trusted=True)
async def pool_tool() -> str:
    """Waits in the pool."""
    return "from the pool"


@asynccontextmanager
async def runtime_in(folder: Path, *tools: Tool, enabled: tuple[str, ...] = ()) -> AsyncGenerator[Runtime]:
    settings = {"skills": {"enabled": list(enabled)}, "policy": {"rules": [{"tool": "count_*", "decision": "allow"}]}}
    async with open_test_runtime(plugins=PLUGINS, folder=folder, tools=tools, settings=settings) as runtime:
        yield runtime


def load(name: str) -> Call:
    return ("load_skill", {"skill_name": name})


def unload(name: str) -> Call:
    return ("unload_skill", {"skill_name": name})


def marks(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key.startswith("_handrail_skill_")}


async def test_tools_of_a_loaded_skill_are_there_at_the_next_step_of_the_same_run_after_all_others(
    tmp_path: Path,
) -> None:
    write(own(tmp_path), head=POOL, tools__count_dot_py=TOOL)
    enable(tmp_path, "tidy")
    async with runtime_in(tmp_path) as runtime:
        model = Scripted.of([load("tidy")], [("count_letters", {"text": "abc"}), ("pool_tool", {})], [unload("tidy")])
        chat = Chat(HandrailToolset(runtime=runtime, additional_tools=[pool_tool]), model)
        events = await chat.say()
        await chat.runner.close()
    loaded, counted, pooled, _ = results(events)
    assert loaded["tools"] == ["count_letters", "pool_tool"]
    before, after, _, last = chat.model.shown
    assert len(after) == len(before) + 2
    assert after[: len(before)] == before
    assert set(after[len(before) :]) == {"count_letters", "pool_tool"}
    assert (counted["letters"], pooled["content"]) == (3, "from the pool")
    assert last == before


async def test_a_skill_that_names_a_tool_outside_the_pool_is_not_loaded_and_the_run_goes_on(tmp_path: Path) -> None:
    write(own(tmp_path), head=POOL)
    async with runtime_in(tmp_path, enabled=("tidy",)) as runtime:
        chat = Chat(HandrailToolset(runtime=runtime), Scripted.of([load("tidy")]))
        (refused,) = results(await chat.say())
        assert "there is no tool 'pool_tool' to load" in refused["error"]["message"]
        assert marks(await chat.state()) == {}
        assert chat.model.shown[0] == chat.model.shown[1]
        await chat.runner.close()


async def test_skills_loaded_in_one_step_are_all_there_and_all_remembered_in_their_order(tmp_path: Path) -> None:
    names = ["tidy-c", "tidy-a", "tidy-b"]
    for name in names:
        write(own(tmp_path), name, tools__count_dot_py=TOOL.replace("count_letters", f"count_{name[-1]}"))
    enable(tmp_path, *names)
    async with runtime_in(tmp_path) as runtime:
        model = Scripted.of([load(name) for name in names], [unload("tidy-a"), load("tidy-b")])
        chat = Chat(HandrailToolset(runtime=runtime), model)
        await chat.say()
        first, second, third = chat.model.shown
        assert second == [*first, "count_c", "count_a", "count_b"]
        assert [name for name in third if name.startswith("count_")] == ["count_c", "count_b"]
        assert marks(await chat.state()) == {
            "_handrail_skill_hands_tidy-c": 1,
            "_handrail_skill_hands_tidy-a": 0,
            "_handrail_skill_hands_tidy-b": 2,
        }
        await chat.runner.close()


async def test_a_run_goes_on_with_its_skills_after_a_restart(tmp_path: Path) -> None:
    names = ["tidy-b", "tidy-a"]
    for name in names:
        write(own(tmp_path), name, head=POOL, tools__count_dot_py=TOOL.replace("letters", name[-1]))
    enable(tmp_path, *names)
    steps = ([load(name) for name in names], [("count_a", {"text": "abc"})], [unload("tidy-a")])
    shown: list[list[str]] = []
    for step in steps:
        async with runtime_in(tmp_path) as runtime:
            toolset = HandrailToolset(runtime=runtime, additional_tools=[pool_tool])
            sessions = SqliteSessionService(str(tmp_path / "adk.db"))
            chat = Chat(toolset, Scripted.of(step), session_service=sessions)
            assert {result["status"] for result in results(await chat.say())} == {"success"}
            shown.append(chat.model.shown[-1])
            await chat.runner.close()
            await sessions.close()
    assert [name for name in shown[1] if name in ("pool_tool", "count_a", "count_b")] == [
        name for name in shown[0] if name in ("pool_tool", "count_a", "count_b")
    ]
    assert shown[1].index("count_b") < shown[1].index("count_a")
    assert {"pool_tool", "count_b"} <= set(shown[2])
    assert "count_a" not in shown[2]


async def test_a_skill_that_was_changed_while_the_program_was_off_is_not_loaded_again(tmp_path: Path) -> None:
    folder, sessions = write(own(tmp_path), tools__count_dot_py=TOOL), InMemorySessionService()
    enable(tmp_path, "tidy")
    async with runtime_in(tmp_path) as runtime:
        chat = Chat(HandrailToolset(runtime=runtime), Scripted.of([load("tidy")]), session_service=sessions)
        await chat.say()
        await chat.runner.close()
    (folder / "tools" / "more.py").write_text("open('trace', 'w').close()\n")
    async with runtime_in(tmp_path) as runtime:
        model = Scripted.of([("list_skills", {})])
        chat = Chat(HandrailToolset(runtime=runtime), model, session_service=sessions)
        (listed,) = results(await chat.say())
        assert "has changed since it was enabled" in str(listed)
        assert "count_letters" not in chat.model.shown[0]
        assert marks(await chat.state()) == {"_handrail_skill_hands_tidy": 0}
        await chat.runner.close()


async def test_agents_of_one_adk_session_do_not_share_their_skills(tmp_path: Path) -> None:
    write(own(tmp_path), "tidy", tools__count_dot_py=TOOL)
    enable(tmp_path, "tidy")
    sessions = InMemorySessionService()
    async with runtime_in(tmp_path) as runtime:
        toolset = HandrailToolset(runtime=runtime)
        # The name of one is the beginning of the other's.
        models = {"a": Scripted.of(), "a_b": Scripted.of([load("tidy")]), "a_c": Scripted.of()}
        chats = [Chat(toolset, model, name=name, session_service=sessions) for name, model in models.items()]
        for chat in (*chats, *chats):
            await chat.say()
        state = await chats[0].state()
        await toolset.close()
    assert {name: "count_letters" in model.shown[-1] for name, model in models.items()} == {
        "a": False,
        "a_b": True,
        "a_c": False,
    }
    assert marks(state) == {"_handrail_skill_a_b_tidy": 1}


async def test_what_the_slowest_call_of_a_step_left_is_what_is_remembered() -> None:
    fast_ended = asyncio.Event()

    @tool(trusted=True)
    async def slow(context: ToolContext) -> None:
        """Ends last, though it is first."""
        await fast_ended.wait()
        await asyncio.sleep(0)
        context.stash.set("slow", 1)

    @tool(trusted=True)
    async def fast(context: ToolContext) -> None:
        """Ends first."""
        context.stash.set("fast", 1)

    async with open_test_runtime(tools=[slow, fast]) as runtime:
        toolset = HandrailToolset(runtime=runtime)
        chat = Chat(toolset, Scripted.of([("slow", {}), ("fast", {})]))
        run = asyncio.create_task(chat.say())
        while not runtime.sessions or not runtime.sessions[0].stash.get("fast"):
            await asyncio.sleep(0)
        while not runtime.sessions[0].history.last(1):
            await asyncio.sleep(0)
        fast_ended.set()
        await run
        state = await chat.state()
        await chat.runner.close()
    assert '"stash": {"fast": 1, "slow": 1}' in state["_handrail_hands"]
