"""`handrail evaluate`"""

from __future__ import annotations

import ntpath
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import SessionOptions, open_runtime_for, run_async, session_options
from handrail.json_types import is_object
from handrail.terminal.json_lines import InvalidLine, OversizedLine, check_known_keys, error_wire, parse_json_line

if TYPE_CHECKING:
    from pathlib import Path

    from handrail.api.verdict import EvaluationContext, Verdict
    from handrail.session.runtime import Runtime

SHELL_NAMES = ("bash", "powershell", "cmd")
CALL_FIELDS: Mapping[str, type | tuple[type, ...]] = {
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
PLATFORM_ALIASES = {"windows": "win32", "macos": "darwin"}


@click.command("evaluate")
@click.option("--jsonl", is_flag=True, required=True, help="Read a call a line, write a verdict a line.")
@session_options
def command(jsonl: bool, choices: SessionOptions) -> None:
    """Judge calls without running anything.

    Each line of stdin is {"tool", "args"} with, as wanted, "id", "shell" (bash, powershell, cmd), "cwd", "home", "user", "env", "workspace",
    "platform", "mode" and "private_desktop"; what is left out is as it is here. Each gives a line {"id", "decision", "route", "view", "hosts",
    "rule", "reasons"}, in order; a bad one {"id", "error"}. "hosts" are those that the call is given in the sandbox, or would be after an approval.

    Example: echo '{"tool": "wait", "args": {"seconds": 1}}' | handrail evaluate --jsonl
    """
    run_async(lambda: _evaluate_lines(choices))


async def _evaluate_lines(choices: SessionOptions) -> None:
    import anyio

    from handrail.terminal.stdio import LineWriter, read_lines, take_over_stdio

    async with open_runtime_for(choices, follow=False) as runtime:
        with take_over_stdio() as (stdin, stdout):
            writer = LineWriter(stdout)
            async with anyio.create_task_group() as group:
                group.start_soon(writer.run)
                async for line in read_lines(stdin):
                    if not isinstance(line, bytes) or line.strip():
                        writer.write(await evaluate_line(line, runtime))
                        await writer.room()
                writer.close()


async def evaluate_line(line: bytes | OversizedLine, runtime: Runtime) -> dict[str, Any]:
    """Return the verdict on one line, or the error in it, in wire format."""
    id: Any = None
    try:
        call = parse_json_line(line)
        if not is_object(call):
            raise InvalidLine(f"a line is an object, not {type(call).__name__}")
        id = call.get("id")
        check_call(call)
        judging = build_context(call, runtime)
    except InvalidLine as exc:
        known = id if isinstance(id, str | int) else None
        return {"id": known, "error": error_wire("bad_line", str(exc))}
    verdict = await _evaluate_call(call["tool"], call.get("args", {}), judging, runtime)
    return {"id": id, **_verdict_wire(verdict)}


async def _evaluate_call(tool: str, args: Mapping[str, Any], judging: EvaluationContext, runtime: Runtime) -> Verdict:
    """Judge a call as a session does: a tool that cannot be called, or arguments that do not fit, are denied."""
    from handrail.api.verdict import Decision, Reason, Verdict
    from handrail.errors import InvalidArguments

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


def _verdict_wire(verdict: Verdict) -> dict[str, Any]:
    return {
        "decision": verdict.decision,
        "route": verdict.route,
        "view": verdict.view,
        "hosts": list(verdict.hosts),
        "rule": verdict.rule,
        "reasons": [asdict(reason) for reason in verdict.reasons],
    }


def check_call(call: Mapping[str, Any]) -> None:
    """Raise `InvalidLine` for a key that a call cannot have or a value that does not fit."""
    if "tool" not in call:
        raise InvalidLine("the key 'tool' is missing")
    check_known_keys(call, CALL_FIELDS)
    for key, value in call.items():
        if not isinstance(value, CALL_FIELDS[key]) or (key == "id" and isinstance(value, bool)):
            raise InvalidLine(f"{key} is {value!r}")
    if call.get("shell", SHELL_NAMES[0]) not in SHELL_NAMES:
        raise InvalidLine(f"shell is {call['shell']!r}; it should be one of {', '.join(SHELL_NAMES)}")
    if not all(isinstance(root, str) for root in call.get("workspace", ())):
        raise InvalidLine(f"workspace is {call['workspace']!r}; it should be a list of folders")
    if not all(isinstance(value, str) for value in call.get("env", {}).values()):
        raise InvalidLine(f"env is {call['env']!r}; its values should be text")


def build_context(call: Mapping[str, Any], runtime: Runtime) -> EvaluationContext:
    """Return the context of the call: what the line says, else the values of this machine."""
    from pathlib import Path

    from handrail.api.verdict import Mode

    here, settings = runtime.judging, runtime.settings
    cwd = Path(call["cwd"]) if "cwd" in call else here.cwd
    platform: str = call.get("platform", here.platform)
    platform = PLATFORM_ALIASES.get(platform, platform)
    try:
        mode = Mode(call.get("mode", here.mode))
    except ValueError as exc:
        raise InvalidLine(f"mode is {call['mode']!r}; it should be one of {', '.join(Mode)}") from exc
    return replace(
        here,
        cwd=cwd,
        home=Path(call["home"]) if "home" in call else here.home,
        user=call.get("user", here.user),
        environment=call.get("env", here.environment),
        workspace=tuple(_join_root(cwd, root, platform) for root in call.get("workspace", settings.workspace)),
        platform=platform,
        mode=mode,
        private_desktop=call.get("private_desktop", settings.desktop != "current"),
        shell=call.get("shell", here.shell),
    )


def _join_root(cwd: Path, root: str, platform: str) -> Path:
    """Return a root of the workspace by the path grammar of the platform judged for."""
    return type(cwd)(ntpath.join(str(cwd), root)) if platform == "win32" else cwd / root
