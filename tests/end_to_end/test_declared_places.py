"""Every tool says which of its arguments are places, so that they are judged."""

from __future__ import annotations

import re

import handrail
from handrail import Delete, Read, Run, Send, Tool, Write

PLACE = re.compile(
    r"(.*_)?(path|paths|file|files|filename|glob|globs|folder|folders|dir|directory|cwd|root|url|urls|uri|href)"
)


# What a tool's model takes over into another argument, which is the one that is declared.
FOLDED = {
    "save_dialog": ({"filename": "zq", "directory": "/tmp"}, "directory", "filename"),
    "open_dialog": ({"filename": "zq", "directory": "/tmp"}, "directory", "filename"),
    "execute_browser": ({"action": "navigate", "url": "https://zq.example"}, "url", "goes_to"),
}
# Paths that lead through menus, and not to a file.
IN_MENUS = {"menu_path"}


def undeclared(tool: Tool) -> list[str]:
    """Parameters that are named like a place and that no effect names."""
    declared = {effect.arg for effect in tool.effects if isinstance(effect, Read | Write | Delete | Run | Send)}
    if tool.name in FOLDED:
        args, folded, into = FOLDED[tool.name]
        assert into in declared
        assert args[folded] in str(getattr(tool.validate(args), into))
        declared |= {folded}
    return [name for name in tool.fields if PLACE.fullmatch(name) and name not in declared | IN_MENUS]


async def test_every_parameter_that_is_named_like_a_place_is_declared_in_the_effects() -> None:
    async with handrail.open() as session:
        tools = [listed.tool for listed in await session.all_tools()]
    assert {tool.name for tool in tools} >= {"read_file", "execute_cli"}
    missing = {tool.name: names for tool in tools if (names := undeclared(tool))}
    assert not missing, (
        "If this fails, name the parameters in the tool's effects: Read, Write, Delete or Send with arg=…"
    )


def test_a_parameter_that_nobody_declared_is_found() -> None:
    async def save(params: object, context: object) -> None: ...

    from pydantic import create_model

    model = create_model("Params", output_path=(str, ...), text=(str, ...))
    assert undeclared(Tool(name="save", description="Save.", handler=save, params=model)) == ["output_path"]
