"""The rail around the tools of files, documents and system: all that holds comes from the effects that they declare."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import Delete, Read, Session, Tool, Write
from handrail.api.approval import yes

WITHOUT_UNDO: dict[str, Any] = {"undo.enabled": False}
LAYERS = ("file", "document", "system")
# What a call needs beside its paths.
FILLED: Mapping[str, Any] = {
    "content": "x",
    "old_string": "",
    "new_string": "x",
    "data": [[1]],
    "url": "https://example.com/a",
    "output_format": "html",
    "pattern": "*",
}
SUFFIX = {"write_excel": ".xlsx", "convert_document": ".csv"}


async def tools_of(session: Session) -> dict[str, Tool]:
    return {listed.tool.name: listed.tool for listed in await session.all_tools() if listed.tool.layer in LAYERS}


def arguments(tool: Tool, path: str, *, kind: type[Read | Write], other: str = "a.csv") -> dict[str, Any] | None:
    """Arguments with the path where the tool reads or writes; None where it does not by a name."""
    named = {effect.arg for effect in tool.effects if isinstance(effect, kind) and effect.arg and effect.what != "url"}
    paths = {effect.arg for effect in tool.effects if isinstance(effect, Read | Write | Delete) and effect.arg}
    if not named:
        return None
    needed = {name for name in tool.input_schema["properties"] if name in FILLED}
    args = {name: FILLED[name] for name in needed}
    args |= {name: path if name in named else other for name in paths}
    lists = {name for name in paths if tool.input_schema["properties"][name].get("type") == "array"}
    return args | {name: [args[name]] for name in lists}


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    (tmp_path / "work").mkdir()
    async with handrail.open(cwd=tmp_path / "work", confirm=yes) as opened:
        await opened.load_tools(["convert_document"], source="test")
        yield opened


READ = (
    *("read_file", "read_many_files", "edit_file", "find_files", "list_directory"),
    *("read_pdf", "read_image", "read_excel", "convert_document"),
)
WRITTEN = ("write_file", "edit_file", "write_excel", "convert_document", "download_file")
OTHERS = ("process_info", "system_info")


async def test_these_are_all_there_are(session: Session) -> None:
    assert set(await tools_of(session)) == {*READ, *WRITTEN, *OTHERS}


@pytest.mark.parametrize("name", READ)
async def test_a_secret_is_not_read_and_the_way_to_allow_it_is_told(session: Session, name: str) -> None:
    tool = (await tools_of(session))[name]
    args = arguments(tool, f"~/.ssh/id_rsa{SUFFIX.get(name, '')}", kind=Read, other="a.html")
    result = await session.call(name, args or {})
    if name == "read_many_files":
        # Every file is judged by itself, and the others are read.
        assert "private keys" in str(result)
        return
    assert result.status == "denied"
    told = str(result["error"])
    assert ("private keys" in told, 'lifts = ["effects:secret"]' in told) == (True, True)
    assert result["error"]["details"] == {"rule": "effects:secret"}


@pytest.mark.parametrize("name", WRITTEN)
async def test_what_is_obeyed_unasked_is_not_written_and_the_way_to_allow_it_is_told(
    session: Session, name: str
) -> None:
    tool = (await tools_of(session))[name]
    suffix = {"convert_document": ".html", "write_excel": ".xlsx"}.get(name, "")
    result = await session.call(name, arguments(tool, f"/etc/cron.d/new{suffix}", kind=Write) or {})
    assert result.status == "denied"
    assert 'lifts = ["effects:startup"]' in str(result["error"])


@pytest.mark.parametrize("name", WRITTEN)
async def test_nothing_is_written_where_nobody_can_say_yes(tmp_path: Path, name: str) -> None:
    (tmp_path / "work").mkdir()
    for place in ("new", str(tmp_path / "outside")):
        # What undo keeps may be changed without approval.
        async with handrail.open(cwd=tmp_path / "work", **WITHOUT_UNDO) as session:
            await session.load_tools(["convert_document"], source="test")
            tool = (await tools_of(session))[name]
            suffix = {"convert_document": ".html", "write_excel": ".xlsx"}.get(name, "")
            result = await session.call(name, arguments(tool, f"{place}{suffix}", kind=Write) or {})
        assert result.status == "denied", (place, result)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_plan_mode_leaves_what_only_reads(tmp_path: Path) -> None:
    async with handrail.open(cwd=tmp_path, confirm=yes, mode="plan") as session:
        await session.load_tools(["convert_document"], source="test")
        shown = {tool.name for tool in await session.tools() if tool.layer in LAYERS}
        assert shown == {*READ, *OTHERS} - {*WRITTEN}
        tools = await tools_of(session)
        for name in WRITTEN:
            result = await session.call(name, arguments(tools[name], "new.html", kind=Write) or {})
            assert result.error_code == "tool_unavailable", name


@pytest.mark.parametrize("name", [*READ, *WRITTEN])
async def test_a_rule_by_path_holds_for_every_tool(tmp_path: Path, name: str) -> None:
    rule = {"tool": "*", "paths": str(tmp_path / "kept/**"), "decision": "deny", "name": "kept"}
    (tmp_path / "kept").mkdir()
    async with handrail.open(cwd=tmp_path, confirm=yes, policy={"rules": [rule]}) as session:
        await session.load_tools(["convert_document"], source="test")
        tool = (await tools_of(session))[name]
        kind = Read if name in READ else Write
        suffix = SUFFIX.get(name, "")
        args = arguments(tool, f"{tmp_path}/kept/a{suffix}", kind=kind, other="a.html") or {}
        result = await session.call(name, args)
    assert "kept" in str(result)
    assert name == "read_many_files" or result["error"]["details"] == {"rule": "policy:kept"}
