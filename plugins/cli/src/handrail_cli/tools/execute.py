"""The tool `execute_cli`: one command for bash, run to its end, its time limit or its first window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail import (
    ExecConfirmation,
    Read,
    Run,
    ToolContext,
    Verdict,
    tool,
)
from handrail_cli.shell.bash.syntax import STARTS_JOB
from handrail_cli.tools.command_launch import find_answer_rules, is_state_unchanged, prepare_launch
from handrail_cli.tools.command_params import TOOL_TITLE, CommandParams
from handrail_cli.tools.command_results import report_background, wait_for_result
from handrail_cli.tools.process_tools import PLATFORMS
from handrail_cli.tools.step_runner import is_run_in_steps, run_line_steps

if TYPE_CHECKING:
    from handrail_cli.tools.session_processes import SessionProcesses

# After its own time limit a call needs a moment to end what it started and to tell what was written.
CLOSING_TIME_S = 15.0
ONE_THING = "Prefer a tool that does one thing to a command that does many: a person sees at once what it will do. Never start what waits for typing."
ADVICE = {
    "linux": f"{ONE_THING} Commands are written for bash.",
    "darwin": f"{ONE_THING} Commands are written for bash, with the programs of macOS: BSD's sed, find and date.",
    "win32": f"{ONE_THING} Commands are written for Git Bash where it is installed; paths with forward slashes work in it.",
}


def _create_confirmation(command: CommandParams, verdict: Verdict) -> ExecConfirmation:
    return ExecConfirmation(TOOL_TITLE, command.command, command.cwd)


def _describe_command(command: CommandParams) -> str:
    return f"Run {' '.join(command.command.split())[:200]}"


@tool(
    layer="core",
    title=TOOL_TITLE,
    effects=[Run("shell", arg="command"), Read("cwd", arg="cwd")],
    platforms=PLATFORMS,
    advice=ADVICE,
    timeout=lambda command: None if command.background else command.timeout + CLOSING_TIME_S,
    live=True,
    confinable=True,
    describe=_describe_command,
    confirmation=_create_confirmation,
)
async def execute_cli(command: CommandParams, context: ToolContext) -> Mapping[str, Any]:
    """Run a command line with bash. Returns stdout, stderr and exit_code.

    `cd` and exported variables last to the next call. Output beyond 50 KB is kept whole as an artifact. Standard input is empty unless
    `stdin` is given, so give options such as -y; `prompt` says what was asked; to answer, use background=true and write_process. Programs
    with windows go on under a process_id, on the host also jobs (`&`).
    """
    from handrail_cli.process.command_wait import PromptWatcher

    processes: SessionProcesses = await context.service("shell")
    rules = find_answer_rules(context)
    tells = context.sandbox is None or context.sandbox.sandbox.descriptors
    # A command in a sandbox also says whether it has left processes.
    keeps = tells and not command.background and (command.cwd is None or context.sandbox is not None)
    keeps = keeps and not (is_state_unchanged(context) and STARTS_JOB.search(command.command) is None)
    if not rules and is_run_in_steps(command, context, keeps=keeps):
        return await run_line_steps(context.verdict.steps, command, context, processes, keeps=keeps)
    launch = await prepare_launch(command, context, processes, keeps=keeps, answered=bool(rules))
    process = processes.start(launch)
    if command.background:
        return report_background(process, processes, context)
    return await wait_for_result(PromptWatcher(process, rules), command.timeout, command, context, processes)


async def run_program(
    argv: Sequence[str], context: ToolContext, processes: SessionProcesses, *, timeout: float, readable: Sequence[Path]
) -> Mapping[str, Any]:
    """Run a program for another tool, as `execute_cli` runs a command; the session's folder and variables stay as they are."""
    from handrail_cli.process.command_wait import PromptWatcher

    command = CommandParams(command=processes.command_line(argv, context.programs), timeout=timeout)
    launch = await prepare_launch(command, context, processes, keeps=False, answered=False)
    if context.sandbox is not None:
        launch = replace(launch, sandbox=(launch.sandbox or context.sandbox).reading(*readable))
    attention = PromptWatcher(processes.start(launch), ())
    return await wait_for_result(attention, timeout, command, context, processes)
