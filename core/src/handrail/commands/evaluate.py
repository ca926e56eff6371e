"""`handrail evaluate`"""

from __future__ import annotations

import ntpath
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from handrail.commands._common import Choices, open_runtime_for, run, session_options
from handrail.commands._lines import BadLine, TooLong, check_keys, error_wire, parsed
from handrail.plain import is_object

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.judging.verdicts import Judging, Verdict
    from handrail.runtime import Runtime

SHELLS = ("bash", "powershell", "cmd")
FIELDS: Mapping[str, type | tuple[type, ...]] = {
    "id": (str, int, type(None)),
    "tool": str,
    "args": dict,
    "shell": str,
    "cwd": str,
    "home": str,
    "user": str,
    "env": dict,
    "workspace": list,
    "platform": str,
    "mode": str,
    "private_desktop": bool,
}
# What people call platforms, as `sys.platform` does.
PLATFORMS = {"windows": "win32", "macos": "darwin"}


@click.command("evaluate")
@click.option("--jsonl", is_flag=True, required=True, help="Read a call a line, write a verdict a line.")
@session_options
def command(jsonl: bool, choices: Choices) -> None:
    """Judge calls without running anything.

    Each line of stdin is {"tool", "args"} with, as wanted, "id", "shell" (bash, powershell, cmd), "cwd", "home", "user", "env", "workspace",
    "platform", "mode" and "private_desktop"; what is left out is as it is here. Each gives a line {"id", "decision", "route", "view", "hosts",
    "rule", "reasons"}, in order; a bad one {"id", "error"}. "hosts" are those that the call is given in the sandbox, or would be after an approval.

    Example: echo '{"tool": "wait", "args": {"seconds": 1}}' | handrail evaluate --jsonl
    """
    run(lambda: _evaluate(choices))


async def _evaluate(choices: Choices) -> None:
    import anyio

    from handrail.commands._stdio import Writer, lines, own_stdio

    async with open_runtime_for(choices, follow=False) as runtime:
        with own_stdio() as (stdin, stdout):
            writer = Writer(stdout)
            async with anyio.create_task_group() as group:
                group.start_soon(writer.run)
                async for line in lines(stdin):
                    if not isinstance(line, bytes) or line.strip():
                        writer.write(await judged(line, runtime))
                        await writer.room()
                writer.close()


async def judged(line: bytes | TooLong, runtime: Runtime) -> dict[str, Any]:
    """The verdict on one line, or the error that it is, as it is written."""
    id: Any = None
    try:
        call = parsed(line)
        if not is_object(call):
            raise BadLine(f"a line is an object, not {type(call).__name__}")
        id = call.get("id")
        check_call(call)
        judging = circumstances(call, runtime)
    except BadLine as exc:
        known = id if isinstance(id, str | int) else None
        return {"id": known, "error": error_wire("bad_line", str(exc))}
    verdict = await _verdict(call["tool"], call.get("args", {}), judging, runtime)
    return {"id": id, **_wire(verdict)}


async def _verdict(tool: str, args: Mapping[str, Any], judging: Judging, runtime: Runtime) -> Verdict:
    """As a session decides: what cannot be called or does not fit its tool is never run."""
    from handrail.errors import InvalidArguments
    from handrail.judging.verdicts import Decision, Reason, Verdict

    owned = runtime.registry.get(tool)
    if owned is None:
        return Verdict(
            Decision.DENY, rule="unknown_tool", reasons=(Reason("unknown_tool", f"there is no tool {tool!r}"),)
        )
    if runtime.settings.tools.disables(owned.tool):
        return Verdict(
            Decision.DENY, rule="tool_unavailable", reasons=(Reason("tool_unavailable", f"{tool} is disabled"),)
        )
    try:
        return await runtime.supposing.evaluate(tool, args, judging)
    except InvalidArguments as exc:
        return Verdict(Decision.DENY, rule=exc.code, reasons=(Reason(exc.code, str(exc)),))


def _wire(verdict: Verdict) -> dict[str, Any]:
    return {
        "decision": verdict.decision,
        "route": verdict.route,
        "view": verdict.view,
        "hosts": list(verdict.hosts),
        "rule": verdict.rule,
        "reasons": [asdict(reason) for reason in verdict.reasons],
    }


def check_call(call: Mapping[str, Any]) -> None:
    """Raise `BadLine` for a key that a call cannot have or a value that does not fit."""
    if "tool" not in call:
        raise BadLine("the key 'tool' is missing")
    check_keys(call, FIELDS)
    for key, value in call.items():
        if not isinstance(value, FIELDS[key]) or (key == "id" and isinstance(value, bool)):
            raise BadLine(f"{key} is {value!r}")
    if call.get("shell", SHELLS[0]) not in SHELLS:
        raise BadLine(f"shell is {call['shell']!r}; it should be one of {', '.join(SHELLS)}")
    if not all(isinstance(root, str) for root in call.get("workspace", ())):
        raise BadLine(f"workspace is {call['workspace']!r}; it should be a list of folders")
    if not all(isinstance(value, str) for value in call.get("env", {}).values()):
        raise BadLine(f"env is {call['env']!r}; its values should be text")


def circumstances(call: Mapping[str, Any], runtime: Runtime) -> Judging:
    """Where the call would be made: what the line says, else what is here."""
    from pathlib import Path

    from handrail.judging.verdicts import Mode

    here, settings = runtime.judging, runtime.settings
    cwd = Path(call["cwd"]) if "cwd" in call else here.cwd
    platform: str = call.get("platform", here.platform)
    platform = PLATFORMS.get(platform, platform)
    try:
        mode = Mode(call.get("mode", here.mode))
    except ValueError as exc:
        raise BadLine(f"mode is {call['mode']!r}; it should be one of {', '.join(Mode)}") from exc
    return replace(
        here,
        cwd=cwd,
        home=Path(call["home"]) if "home" in call else here.home,
        user=call.get("user", here.user),
        environment=call.get("env", here.environment),
        workspace=tuple(_joined(cwd, root, platform) for root in call.get("workspace", settings.workspace)),
        platform=platform,
        mode=mode,
        private_desktop=call.get("private_desktop", settings.desktop != "current"),
        shell=call.get("shell", here.shell),
    )


def _joined(cwd: Path, root: str, platform: str) -> Path:
    """A root of the workspace, by the grammar of the platform that is judged for."""
    return type(cwd)(ntpath.join(str(cwd), root)) if platform == "win32" else cwd / root
