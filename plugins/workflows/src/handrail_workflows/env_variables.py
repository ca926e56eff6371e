"""The tool `set_env_var`."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from pydantic import Field

from handrail import InvalidArguments, Run, ToolContext, tool
from handrail_workflows.steps import FileTextService, WorkflowSteps

# What no line of a profile can hold.
LINE_END = re.compile(r"[\r\n]")
# The value of a variable as a shell's line has it, when nothing else stands on that line: one word, which ends there.
WORD_PATTERN = r"""(?:'[^'\n]*'|"(?:[^"\\\n]|\\[^\n])*"|[^\s'"\\;&|<>()`#])*[ \t]*$"""


@dataclass(frozen=True, slots=True)
class ShellProfile:
    """A file that sets variables: how a line of it is written, and what another line of the same variable looks like."""

    path: Path
    line: Callable[[str, str], str]
    pattern: str


@tool(
    layer="workflow",
    title="Set an environment variable",
    effects=[Run("steps")],
    timeout=60,
    loadable=True,
    describe=lambda given: f"Set {given.name} for this {given.scope}",
)
async def set_env_var(
    name: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Name of the variable.")],
    value: Annotated[str, Field(description="Its value, letter by letter: nothing in it is expanded.")],
    scope: Annotated[
        Literal["process", "user", "system"],
        Field(description="process: commands of this session; user, system: new logins."),
    ] = "process",
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Set an environment variable. Returns where it is set, changed (false when it was so already), and steps_taken."""
    if "\0" in value:
        raise InvalidArguments("the value holds a NUL, which no variable can")
    if scope != "process" and LINE_END.search(value):
        raise InvalidArguments("the value holds a line end, which no profile can", hint="use the scope process")
    steps = WorkflowSteps(context)
    with steps.told():
        if scope == "process":
            await steps.take("execute_cli", command=f"export {name}={shlex.quote(value)}")
            return {"scope": scope, "changed": True, "steps_taken": steps.taken}
        if context.session.runtime.platform == "win32":
            everywhere = " /M" if scope == "system" else ""
            await steps.take("execute_cli", command=f"setx {name} {shlex.quote(value)}{everywhere}")
            return {"scope": scope, "changed": True, "steps_taken": steps.taken}
        return await _write_profile(steps, find_profile(context, scope), name, value, scope)


async def _write_profile(
    steps: WorkflowSteps, profile: ShellProfile, name: str, value: str, scope: str
) -> Mapping[str, Any]:
    texts: FileTextService = await steps.context.service("file_texts")
    before = await texts.read(profile.path, str(profile.path)) if profile.path.exists() else ""
    after = set_profile_line(before, profile, name, value)
    # Also where nothing changes: what a profile says is told to nobody who may not write it, not even that it says so already.
    written = await steps.take(
        "write_file", untold="content", file_path=str(profile.path), content=after, create_dirs=True
    )
    result: dict[str, Any] = {"scope": scope, "path": str(profile.path), "changed": after != before}
    if after != before:
        result |= {"diff": written["diff"], "note": "programs that run already do not see it"}
    return {**result, "steps_taken": steps.taken}


def set_profile_line(text: str, profile: ShellProfile, name: str, value: str) -> str:
    """Return the text with one line that sets the variable.

    The line replaces the variable's last one. It is appended if the variable has none, or if the text after it also
    mentions the variable.
    """
    line = profile.line(name, value)
    pattern = re.compile(profile.pattern.format(name=re.escape(name)), re.MULTILINE)
    found = list(pattern.finditer(text))
    last = found[-1] if found else None
    if last is not None and (last[0] == line or not re.search(rf"\b{re.escape(name)}\b", text[last.end() :])):
        return text[: last.start()] + line + text[last.end() :]
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"


def find_profile(context: ToolContext, scope: str) -> ShellProfile:
    """Return the file that the user's login shell reads, or the one for every login if the scope is `system`."""
    # The person's own, wherever commands of this session think that they are at home.
    environment = context.host_environment
    home = Path(environment.get("HOME") or Path.home())
    if scope == "system":
        return ShellProfile(Path("/etc/environment"), _format_plain_line, r"^{name}=[^\n]*$")
    match PurePath(environment.get("SHELL", "bash")).name:
        case "zsh":
            return ShellProfile(
                Path(environment.get("ZDOTDIR") or home) / ".zshenv",
                _format_posix_line,
                rf"^export {{name}}={WORD_PATTERN}",
            )
        case "fish":
            folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "fish" / "conf.d"
            return ShellProfile(
                folder / "variables.fish",
                _format_fish_line,
                r"^set -gx {name} (?:'(?:[^'\\\n]|\\[^\n])*'|[\w./:@%+=,-]+)[ \t]*$",
            )
        case _:
            own = [home / name for name in (".bash_profile", ".bash_login") if os.path.lexists(home / name)]
            return ShellProfile(
                own[0] if own else home / ".profile", _format_posix_line, rf"^export {{name}}={WORD_PATTERN}"
            )


def _format_posix_line(name: str, value: str) -> str:
    return f"export {name}={shlex.quote(value)}"


def _format_fish_line(name: str, value: str) -> str:
    # In fish's single quotes only these two are special.
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"set -gx {name} '{quoted}'"


def _format_plain_line(name: str, value: str) -> str:
    if '"' in value:
        raise InvalidArguments(f"{value!r} holds a quotation mark, which /etc/environment cannot")
    return f'{name}="{value}"'
