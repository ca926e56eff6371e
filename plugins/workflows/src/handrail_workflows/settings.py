"""The tool `change_setting`."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from handrail import Downstream, InvalidArguments, Run, ToolContext, tool
from handrail_workflows.steps import WorkflowSteps

# The type that GVariant's text says before a number, or before nothing.
GVARIANT_TYPE_PREFIX = re.compile(r"^(?:@\S+|byte|u?int(?:16|32|64)|handle|double|objectpath|signature) ")
GVARIANT_BOOLEANS = {"true": "True", "false": "False"}


@dataclass(frozen=True, slots=True)
class SettingCommands:
    """Commands with which a platform reads and changes a setting."""

    read: str
    change: str


@tool(
    layer="workflow",
    title="Change a setting",
    effects=[Run("steps")],
    timeout=60,
    loadable=True,
    describe=lambda given: f"Set {given.setting} to {given.value}",
    undo=lambda given, result: f"change_setting {given.setting} to {result['before']}" if result.get("before") else "",
)
async def change_setting(
    setting: Annotated[
        str,
        Field(
            min_length=3,
            description="Linux: 'SCHEMA KEY' (gsettings); macOS: 'DOMAIN KEY' (defaults); Windows: registry path with the value's name.",
        ),
    ],
    value: Annotated[str, Field(description="The new value; text needs no quotes.")],
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Change a setting of the desktop and read it back. Returns before, after and steps_taken."""
    platform = context.session.runtime.platform
    commands = build_commands(platform, setting, value)
    steps = WorkflowSteps(context)
    with steps.told():
        before = (await steps.take("execute_cli", command=commands.read))["stdout"].strip()
        await steps.take("execute_cli", command=commands.change)
        after = (await steps.take("execute_cli", command=commands.read))["stdout"].strip()
        if not is_same_value(after.split(" " * 4)[-1] if platform == "win32" else after, value):
            raise Downstream(
                f"{setting!r} reads back as {after!r}, not as {value!r}",
                hint="nothing here keeps settings, or the value does not fit the setting's type",
                details={"before": before, "after": after},
            )
    return {"setting": setting, "before": before, "after": after, "effect": "confirmed", "steps_taken": steps.taken}


def build_commands(platform: str, setting: str, value: str) -> SettingCommands:
    """Build the commands of a platform, with all values quoted.

    Raises `InvalidArguments` if the setting does not name a key.
    """
    if platform == "win32":
        key, _, name = setting.replace("/", "\\").rpartition("\\")
        if not key:
            raise InvalidArguments(
                f"{setting!r} is no registry path", hint="write HKCU\\Control Panel\\Desktop\\Wallpaper"
            )
        where = f"{shlex.quote(key)} //v {shlex.quote(name)}"
        return SettingCommands(f"reg query {where}", f"reg add {where} //d {shlex.quote(value)} //f")
    schema, _, key = re.sub(r"[/ ]+", " ", setting.strip()).rpartition(" ")
    if not schema:
        raise InvalidArguments(f"{setting!r} names no key", hint="write 'org.gnome.desktop.interface clock-format'")
    where = f"{shlex.quote(schema)} {shlex.quote(key)}"
    if platform == "darwin":
        return SettingCommands(f"defaults read {where}", f"defaults write {where} {shlex.quote(value)}")
    return SettingCommands(f"gsettings get {where}", f"gsettings set {where} {shlex.quote(value)}")


def is_same_value(after: str, value: str) -> bool:
    """Return True if the value read back is the given one.

    Both are compared as text, or by meaning in GVariant's text format, which changes quoting and spacing.
    """
    read = _parse_gvariant(after)
    return read in (value, _parse_gvariant(value))


def _parse_gvariant(text: str) -> Any:
    """Parse a text in GVariant's format; the text itself if it is not."""
    bare = GVARIANT_TYPE_PREFIX.sub("", text.strip())
    quoted = "'" in bare or '"' in bare
    try:
        return ast.literal_eval(
            bare if quoted else re.sub(r"\b(?:true|false)\b", lambda found: GVARIANT_BOOLEANS[found[0]], bare)
        )
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return bare
