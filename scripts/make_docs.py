"""Write the pages that are made from the code; with --check, say what is not up to date and change nothing."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.core_modules import load_page as core_modules_page
from scripts.names import names_page
from scripts.reference import errors_page, events_page, hooks_page, keys_page

from handrail.api.model_families import DEFAULT_FAMILY, MODEL_FAMILIES
from handrail.cli._cli_reference import render_reference_page as commands_page
from handrail.cli._plugin_commands import find_plugin_commands
from handrail.config.loader import load_config
from handrail.config.settings import Settings
from handrail.fs.app_dirs import AppDirs
from handrail.plugins.known_plugins import DATA_FILE as SUPPLIED
from handrail.plugins.loader import PluginRecord, load_plugins as load_plugins
from handrail.plugins.registration import register_plugins
from handrail.session.installed_plugins import build_installed_schema
from handrail.session.runtime import open_runtime
from handrail.tools.declarations import DialectName, declare
from handrail.tools.registry import OwnedTool

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DECLARATIONS = DOCS / "declarations"

# The API that models of a family are mostly called by; other families are shown as MCP clients are told.
NATIVE: dict[str, DialectName] = {"gemini-3": "gemini", "gemini": "gemini", "claude": "anthropic", "gpt": "openai"}

HEAD = """# Tools

Made from the code by `make docs`; `handrail tools` shows the same for what is installed here.

Every result has `status` (success, error, denied, cancelled or timeout) and `duration_ms`; a failure has `error` {code, message, retryable,
details} and `voice_message`, one sentence for a listener. Times are seconds unless their name ends in `_ms`. Coordinates are pixels of the picture
of an observation (default: the latest). Element ids (`e12`) are never used twice in a session. Relative paths start at the session's working
directory.

Tools that look into an artifact are there while the session holds one that fits ([results.md](results.md#querying-artifacts)), those that use skills
while one is enabled or loaded ([skills.md](skills.md)).
"""


async def owned_tools() -> list[OwnedTool]:
    environment = {**os.environ, "HANDRAIL_HOME": str(ROOT / "build" / "nobody")}
    config = load_config(places=AppDirs.of(environment), folder=ROOT / "docs", environment={})
    async with open_runtime(config, environment=environment) as runtime:
        return list(runtime.registry)


async def passing_tools() -> list[OwnedTool]:
    """Return the tools that are offered only while a session has a use for them.

    This session holds artifacts, and has the skills that are enabled by default.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HANDRAIL_HOME": folder}
        config = load_config(places=AppDirs.of(environment), folder=Path(folder), environment={})
        async with (
            open_runtime(config, environment=environment) as runtime,
            runtime.session(cwd=Path(folder), workspace=[Path(folder)]) as session,
        ):
            session.artifacts.keep("{}", "json")
            session.artifacts.keep("# A", "markdown")
            fixed = {owned.tool.name for owned in runtime.registry}
            listed = await session.all_tools()
            return [OwnedTool(each.tool, each.plugin) for each in listed if each.tool.name not in fixed]


def tools_page(tools: list[OwnedTool], passing: list[OwnedTool]) -> str:
    layers: dict[str, list[OwnedTool]] = {}
    for owned in (*tools, *passing):
        layers.setdefault(owned.tool.layer, []).append(owned)
    parts = [HEAD]
    for layer, members in layers.items():
        parts.append(f"\n## {layer.capitalize()}\n")
        parts.extend(section(owned, passes=owned in passing) for owned in members)
    return "".join(parts)


def declared(family: str, tools: list[OwnedTool]) -> str:
    """Return the declarations shown to a model family, one line per parameter."""
    dialect = NATIVE.get(family, "mcp")
    head = f"# {family}\n\nMade by `make docs`: each tool as it is declared to models of this family, in the dialect `{dialect}`.\n"
    told = [owned.tool for owned in tools if not owned.tool.by_hand]
    return head + "".join(declaration(declare(tool, dialect=dialect, family=family)) for tool in told)


def declaration(declared: dict[str, Any]) -> str:
    told = declared.get("function", declared)
    schema = next((told[key] for key in ("parameters", "input_schema", "inputSchema") if key in told), {})
    rest = {key: value for key, value in schema.items() if key not in ("properties", "type")}
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in schema.get("properties", {}).items()]
    lines += [json.dumps(rest, ensure_ascii=False)] if rest else []
    return f"\n## {told['name']}\n\n{told['description']}\n\n```\n" + "".join(f"{line}\n" for line in lines) + "```\n"


def pages() -> dict[Path, str]:
    """Return the text of every page that is generated from the code."""
    tools = asyncio.run(owned_tools())
    families = (DEFAULT_FAMILY, *(family.name for family in MODEL_FAMILIES))
    return {
        DOCS / "tools.md": tools_page(tools, asyncio.run(passing_tools())),
        DOCS / "cli.md": commands_page(),
        DOCS / "keys.md": keys_page(build_installed_schema({})),
        DOCS / "names.md": names_page(),
        DOCS / "core-modules.md": core_modules_page(),
        DOCS / "hooks.md": hooks_page(),
        DOCS / "events.md": events_page(),
        DOCS / "error-codes.md": errors_page(),
        SUPPLIED: supplied(tools),
        **{DECLARATIONS / f"{family}.md": declared(family, tools) for family in families},
    }


def supplied(tools: list[OwnedTool]) -> str:
    """Return what each plugin of the project provides, for errors that name a missing plugin."""
    commands = find_plugin_commands({})
    made = {
        plugin.name: {
            "tools": sorted(owned.tool.name for owned in tools if owned.plugin == plugin.name),
            "commands": sorted(name for name, offer in commands.items() if offer.plugin == plugin.name),
            "backends": sorted(plugin.backends),
        }
        for plugin in loaded()
    }
    return json.dumps(made, indent=1) + "\n"


def loaded() -> list[PluginRecord]:
    plugins = load_plugins()
    register_plugins(plugins, Settings())
    return plugins.loaded


def section(owned: OwnedTool, *, passes: bool) -> str:
    tool = owned.tool
    needs = f" It is there when the vision backend has {' or '.join(sorted(tool.requires))}." if tool.requires else ""
    once = f" Once {', '.join(f'`{name}`' for name in tool.aliases)}; that still works." if tool.aliases else ""
    loaded = " It is there when it is loaded." if tool.loadable else ""
    loaded += " It is there while the session has a use for it." if passes else ""
    loaded += " A person uses it, by a command or the console, and no agent." if tool.by_hand else ""
    notes = f"Plugin `{owned.plugin}`, kind {tool.kind}.{needs}{loaded}{once}"
    head = f"\n### {tool.name}\n\n{tool.description}\n\n{notes}\n"
    properties: dict[str, Any] = tool.input_schema["properties"]
    if not properties:
        return f"{head}\nIt has no parameters.\n"
    required = tool.input_schema.get("required", [])
    rows = [
        row
        for name, prop in properties.items()
        for row in (
            parameter(name, prop, required=name in required),
            *fields(name, prop, tool.input_schema.get("$defs", {})),
        )
    ]
    return f"{head}\n| parameter | type | what |\n|---|---|---|\n" + "".join(rows)


def fields(above: str, prop: Mapping[str, Any], defs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows for the fields of a parameter's objects; nested objects are described by their type alone."""
    for choice in prop.get("anyOf", ()):
        yield from fields(above, choice, defs)
    if "items" in prop:
        yield from fields(f"{above}[]", prop["items"], defs)
    if "$ref" in prop:
        inner = defs[prop["$ref"].rpartition("/")[2]]
        for name, each in inner.get("properties", {}).items():
            yield parameter(f"{above}.{name}", each, required=name in inner.get("required", ()))


def parameter(name: str, prop: dict[str, Any], *, required: bool) -> str:
    default = (
        "" if required or "default" not in prop else f" Default: `{json.dumps(prop['default'], ensure_ascii=False)}`."
    )
    told = prop.get("description", "").replace("|", "\\|")
    return f"| {name}{'' if required else '?'} | {type_of(prop)} | {told}{default} |\n"


def type_of(prop: dict[str, Any]) -> str:
    if "enum" in prop:
        return ", ".join(f"`{value}`" for value in prop["enum"])
    if "anyOf" in prop:
        return " or ".join(type_of(choice) for choice in prop["anyOf"])
    if "$ref" in prop:
        return "object"
    if prop.get("type") == "array":
        return f"list of {type_of(prop['items'])}" if prop.get("items") else "list"
    return prop.get("type", "any")


def main() -> int:
    made = pages()
    if "--check" not in sys.argv[1:]:
        DECLARATIONS.mkdir(exist_ok=True)
        for path, text in made.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)} does not show the code as it is; run `make docs`")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
