"""Skills that change while a session runs, and several that are loaded at once."""

from __future__ import annotations

import os
from pathlib import Path

from handrail import ToolCall
from handrail.api.events import Event, ToolsChanged

from .shelf import TOOL, enable, names, own, session_in, write

TIDY = {"skill_name": "tidy"}


def load(name: str, call_id: str, *, verb: str = "load_skill") -> ToolCall:
    return ToolCall(verb, {"skill_name": name}, call_id)


async def test_a_file_that_comes_beside_an_unchanged_skill_md_is_seen(tmp_path: Path) -> None:
    folder = write(own(tmp_path), tools__count_dot_py=TOOL)
    enable(tmp_path, "tidy")
    async with session_in(tmp_path) as session:
        assert "resources" not in await session.call("load_skill", TIDY)
        (folder / "notes.md").write_text("More.")
        refused = await session.call("load_skill", TIDY)
        assert "has changed since it was enabled" in refused["error"]["message"]
        enable(tmp_path, "tidy")
        assert (await session.call("load_skill", TIDY))["resources"] == ["notes.md"]
        wanted = {**TIDY, "file_path": "notes.md"}
        assert (await session.call("load_skill_resource", wanted))["content"] == "More."


async def test_a_skill_that_is_loaded_anew_is_as_it_is_now_and_keeps_nothing_of_before(tmp_path: Path) -> None:
    folder = write(own(tmp_path), head="metadata: {adk_additional_tools: pool_tool}\n", tools__count_dot_py=TOOL)
    enable(tmp_path, "tidy")
    heard: list[Event] = []
    async with session_in(tmp_path) as session:
        before = await names(session)
        await session.call("load_skill", TIDY)
        assert {"pool_tool", "count_letters"} <= set(await names(session))
        session.bus.subscribe(lambda event: heard.append(event) if isinstance(event, ToolsChanged) else None)
        write(own(tmp_path), body="Otherwise.")
        (folder / "tools" / "count.py").write_text(TOOL.replace("letters", "words"))
        # Nobody has looked at it: what is loaded stays as it was loaded.
        await session.call("load_skill", TIDY)
        assert {"pool_tool", "count_letters"} <= set(await names(session))
        assert not heard
        enable(tmp_path, "tidy")
        loaded = await session.call("load_skill", TIDY)
        assert (loaded["instructions"], loaded["tools"]) == ("Otherwise.\n", ["count_words"])
        assert heard
        assert await names(session) == [*before, "count_words"]


async def test_a_text_that_was_there_for_a_moment_only_is_not_what_the_fingerprint_lets_through(tmp_path: Path) -> None:
    file = write(own(tmp_path), body="Good.") / "SKILL.md"
    enable(tmp_path, "tidy")
    good, later = file.read_bytes(), file.stat().st_mtime_ns + 1_000_000
    async with session_in(tmp_path) as session:
        file.write_bytes(good.replace(b"Good", b"Evil"))
        os.utime(file, ns=(later, later))
        assert "has changed since" in (await session.call("load_skill", TIDY))["error"]["message"]
        # The same size and the same time: only its content tells it from the other.
        file.write_bytes(good)
        os.utime(file, ns=(later, later))
        assert (await session.call("load_skill", TIDY))["instructions"] == "Good.\n"


async def test_what_is_imported_is_what_was_enabled_whatever_is_written_meanwhile(tmp_path: Path) -> None:
    # The first module to be imported changes the second, as another program could.
    folder = own(tmp_path) / "tidy"
    first = f"from pathlib import Path\nPath({str(folder / 'tools' / 'b.py')!r}).write_text('raise SystemError')\n"
    write(own(tmp_path), tools__a_dot_py=first, tools__b_dot_py=TOOL)
    enable(tmp_path, "tidy")
    async with session_in(tmp_path) as session:
        assert (await session.call("load_skill", TIDY))["tools"] == ["count_letters"]
        assert "has changed" in (await session.call("load_skill", TIDY))["error"]["message"]


async def test_skills_that_are_loaded_in_one_batch_are_loaded_in_its_order(tmp_path: Path) -> None:
    skills = ["tidy-c", "tidy-a", "tidy-b", "tidy-d"]
    for name in skills:
        tools = TOOL.replace("letters", name[-1])
        write(own(tmp_path), name, head="metadata: {adk_additional_tools: pool_tool}\n", tools__count_dot_py=tools)
    enable(tmp_path, *skills)
    async with session_in(tmp_path) as session:
        before = await names(session)
        results = await session.batch([load(name, f"c{at}") for at, name in enumerate(skills)])
        assert [result["status"] for result in results] == ["success"] * 4
        assert set(await names(session)) == {*before, "pool_tool", *(f"count_{name[-1]}" for name in skills)}
        told = (await session.call("list_skills"))["skills"]
        assert [each["name"] for each in told if each["active"]] == sorted(skills)
        await session.batch([load(name, f"u{name}", verb="unload_skill") for name in skills])
        assert await names(session) == before


async def test_a_batch_that_loads_unloads_and_loads_leaves_the_skill_loaded(tmp_path: Path) -> None:
    write(own(tmp_path), tools__count_dot_py=TOOL)
    enable(tmp_path, "tidy")
    async with session_in(tmp_path) as session:
        calls = [load("tidy", "1"), load("tidy", "2", verb="unload_skill"), load("tidy", "3")]
        assert [result["status"] for result in await session.batch(calls)] == ["success"] * 3
        assert "count_letters" in await names(session)
