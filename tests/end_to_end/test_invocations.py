"""What a person is told of a call, for every tool of every plugin that is here: by the effects that it declares, never by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from handrail import (
    Input,
    InvalidArguments,
    Invocation,
    NotFound,
    Read,
    Run,
    Send,
    Tool,
    ToolError,
    Write,
    open as open_session,
)
from handrail.api.call import PATH_KINDS, WILDCARD_CHARS, list_argument_paths
from handrail.config.settings import Settings
from handrail.plugins.loader import load_plugins
from handrail.plugins.registration import register_plugins
from handrail.policy.grants import build_grant_options

TOOLS = [entry.tool for entry in register_plugins(load_plugins(), Settings()).registry]
MARK = "zq"
every_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def sample(schema: dict[str, Any], name: str, defs: dict[str, Any]) -> Any:
    """A value that fits a parameter: texts name the parameter, numbers are the least there may be."""
    if "$ref" in schema:
        schema = {**defs[schema["$ref"].rpartition("/")[2]], **schema}
    if "const" in schema or "enum" in schema or "default" in schema:
        return schema.get("const", schema.get("enum", [schema.get("default")])[0])
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return sample(schema[choice][0], name, defs)
    match schema.get("type"):
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case "array":
            return [sample(schema.get("items", {}), name, defs)] * max(1, schema.get("minItems", 1))
        case "object":
            wanted = schema.get("required", ())
            given = {key: prop for key, prop in schema.get("properties", {}).items() if key in wanted}
            return {key: sample(prop, key, defs) for key, prop in given.items()}
        case _:
            text = f"https://example.org/{MARK}-{name}" if "url" in name else f"{MARK}-{name}"
            return text if re.search(schema.get("pattern", ""), text) else text.replace("-", "_")


def called(tool: Tool) -> Invocation:
    """A call of the tool with what it must be given; where that is one of several, with the first that will do."""
    schema = tool.input_schema
    defs = schema.get("$defs", {})
    least = sample(schema, "", defs)
    more = {key: {k: v for k, v in prop.items() if k != "default"} for key, prop in schema["properties"].items()}
    for args in (least, *({**least, key: sample(prop, key, defs)} for key, prop in more.items())):
        with suppress(InvalidArguments):
            return Invocation(tool, args, tool.validate(args), "c1")
    raise AssertionError(f"no arguments of {tool.name} were made")


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


@every_tool
def test_it_says_on_one_line_what_it_will_do(tool: Tool) -> None:
    told = called(tool).describe()
    assert told.strip()
    assert told.isprintable(), "If this fails, describe gives more than one line, or control characters."
    assert len(told) <= 1_001


@every_tool
def test_it_names_the_places_addresses_and_commands_it_is_about(tool: Tool) -> None:
    call = called(tool)
    told = call.describe()
    for effect in tool.effects:
        for named in list_argument_paths(call.argument(effect)):
            if MARK in named and effect.arg in call.args:
                assert named in told, f"If this fails, describe leaves out {effect.arg}."


@every_tool
def test_its_locations_are_the_files_and_folders_of_its_effects(tool: Tool) -> None:
    call = called(tool)
    named = {
        path
        for effect in tool.effects
        if effect.what in PATH_KINDS
        for path in list_argument_paths(call.argument(effect))
        if WILDCARD_CHARS.isdisjoint(path)
    }
    located = [location.path for location in call.locations()]
    assert set(located) == named
    assert len(located) == len(set(located))


@every_tool
async def test_its_question_is_of_the_kind_that_its_weightiest_effect_asks_for(tool: Tool, tmp_path: Path) -> None:
    async with session_in(tmp_path) as session:
        call = called(tool)
        for path in {session.cwd / location.path for location in call.locations()}:
            # What an edit would change has to be there.
            if not path.exists():
                path.write_text("\n".join(texts(dict(call.args))), encoding="utf-8")
        try:
            asked = call.confirmation(await session.court.judge(call))
        except ToolError:
            # There is nothing to ask about: the call ends before, with its own error.
            return
    assert asked.title.strip()
    kinds = {"exec"} if commands(call) else {"mcp"} if tool.server else wanted(tool)
    assert asked.kind in kinds


def commands(call: Invocation) -> bool:
    return any(isinstance(effect, Run) and call.argument(effect) is not None for effect in call.tool.effects)


def wanted(tool: Tool) -> set[str]:
    for effect in tool.effects:
        if isinstance(effect, Input) and effect.what == "desktop":
            return {"gui"}
        if isinstance(effect, Write) and effect.what in ("windows", "clipboard"):
            return {"gui"}
    if any(isinstance(effect, Send) and effect.arg for effect in tool.effects):
        return {"url"}
    if tool.kind == "edit" and any(
        effect.what in ("file", "skill") and isinstance(effect, Write) for effect in tool.effects
    ):
        # Of what is no text there is no diff.
        return {"edit", "info"}
    return {"info"}


@every_tool
async def test_no_yes_for_later_covers_every_call_of_what_changes_something(tool: Tool, tmp_path: Path) -> None:
    async with session_in(tmp_path) as session:
        call = called(tool)
        try:
            verdict = await session.court.judge(call)
        except NotFound:
            # What writes to something looks it up first; nobody is asked about what is not there.
            assert not tool.read_only
            return
        offered = build_grant_options(call, verdict)
    narrow = [o for o in offered if o.commands or o.paths or o.hosts or o.call_hash]
    assert len(narrow) == len(offered) or tool.read_only or verdict.decision == "allow"
    assert not offered or offered[0].call_hash == call.call_hash


@every_tool
def test_a_change_of_arguments_is_built_and_validated_anew(tool: Tool) -> None:
    call = called(tool)
    with pytest.raises(InvalidArguments):
        call.edited({**call.args, "no_such_argument": 1}, by="a person")
    again = call.edited(dict(reversed(list(call.args.items()))), by="a person")
    assert (again.call_hash, again.before, again.params) == (call.call_hash, call, call.params)
    assert again.params is not call.params


def session_in(folder: Path) -> Any:
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "HANDRAIL_HOME": str(folder / "state")}
    work = folder / "work"
    work.mkdir()
    return open_session(environment=environment, cwd=work)


def test_there_are_tools_of_every_kind() -> None:
    assert {tool.kind for tool in TOOLS} >= {"execute", "input", "edit", "read"}
    assert any(isinstance(effect, Read) for tool in TOOLS for effect in tool.effects)
