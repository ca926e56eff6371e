"""A skill that is loaded midway, as the hosts in other processes see it: its tools at the next step, after all that was there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client
from tests.plugins.mcp.place import ERAS, MODERN, Place, accept, result_fields
from tests.plugins.skills.shelf import HANDRAIL, TOOL, enable, own, write

pytestmark = pytest.mark.anyio

HEAD = "metadata: {adk_additional_tools: convert_document}\n"
# Own tools of the skill, and one that a plugin keeps in the pool.
BROUGHT = {"count_letters", "convert_document"}
MAX_LINE = 10_000_000


@pytest.fixture
def place(tmp_path: Path) -> Place:
    write(own(tmp_path), head=HEAD, tools__count_dot_py=TOOL)
    assert enable(tmp_path, "tidy").returncode == 0
    around = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "HANDRAIL_HOME": str(tmp_path / "state"),
        "HANDRAIL_PLUGINS": "mcp,cli,skills,documents",
    }
    return Place(tmp_path / "work", around)


async def listed(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


def is_appended(after: list[str], before: list[str]) -> bool:
    return after[: len(before)] == before and set(after[len(before) :]) == BROUGHT


@pytest.mark.parametrize("era", ERAS)
async def test_over_mcp_the_client_is_told_and_finds_the_tools_of_the_skill(place: Place, era: str) -> None:
    async with place.client(era, lambda _: accept("once")) as client:
        before = await listed(client)
        if era == MODERN:
            async with client.listen(tools_list_changed=True) as changes:
                loaded = await client.call_tool("load_skill", {"skill_name": "tidy"})
                await anext(aiter(changes))
        else:
            loaded = await client.call_tool("load_skill", {"skill_name": "tidy"})
            await place.changes.wait()
        assert set(result_fields(loaded)["tools"]) == BROUGHT
        assert is_appended(await listed(client), before)
        counted = await client.call_tool("count_letters", {"text": "abc"})
        assert (counted.is_error, len(place.asked)) == (False, 1)
        await client.call_tool("unload_skill", {"skill_name": "tidy"})
        assert await listed(client) == before


async def test_over_mcp_a_skill_that_is_loaded_anew_with_other_tools_is_told_of(place: Place, tmp_path: Path) -> None:
    async with place.client(ERAS[0]) as client:
        await listed(client)
        await client.call_tool("load_skill", {"skill_name": "tidy"})
        await place.changes.wait()
        before = await listed(client)
        place.changes = anyio.Event()
        write(own(tmp_path), head=HEAD, tools__more_dot_py=TOOL.replace("letters", "words"))
        enable(tmp_path, "tidy")
        await client.call_tool("load_skill", {"skill_name": "tidy"})
        await place.changes.wait()
        assert await listed(client) == [*before, "count_words"]


async def test_in_jsonl_the_list_has_them_at_the_next_step(place: Place) -> None:
    argv = [str(HANDRAIL), "session", "--jsonl", "--yes"]
    load, unload = ({"tool": name, "args": {"skill_name": "tidy"}} for name in ("load_skill", "unload_skill"))
    with anyio.fail_after(60):
        async with await anyio.open_process(argv, env=place.environment, cwd=place.folder, stderr=None) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            told = BufferedByteReceiveStream(process.stdout)

            async def say(line: Any, answers: int = 1) -> list[Any]:
                await process.stdin.send(f"{json.dumps(line)}\n".encode())  # pyright: ignore[reportOptionalMemberAccess]
                return [json.loads(await told.receive_until(b"\n", MAX_LINE)) for _ in range(answers)]

            async def names() -> list[str]:
                (answer,) = await say({"control": "tools"})
                return [tool["name"] for tool in answer["tools"]]

            before = await names()
            await say({"id": 2, **load})
            assert is_appended(await names(), before)
            (counted,) = await say({"id": 4, "tool": "count_letters", "args": {"text": "abc"}})
            assert counted["result"]["letters"] == 3
            await say({"id": 5, **unload})
            assert await names() == before
            batch = await say([{"id": 7, **load}, {"id": 8, **unload}, {"id": 9, **load}], answers=3)
            assert [each["result"]["status"] for each in batch] == ["success"] * 3
            assert is_appended(await names(), before)
            await process.stdin.aclose()
