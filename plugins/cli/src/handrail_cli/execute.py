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
from handrail_cli.command_launch import answer_rules, leaves_nothing, prepare_launch
from handrail_cli.command_params import TITLE, Command
from handrail_cli.command_results import awaited_result, background_result
from handrail_cli.commandline import STARTS_JOB
from handrail_cli.handles import PLATFORMS
from handrail_cli.step_runner import is_run_in_steps, run_steps

if TYPE_CHECKING:
    from handrail_cli.processes import Processes

# After its own time limit a call needs a moment to end what it started and to tell what was written.
CLOSING_S = 15.0
ONE_THING = "Prefer a tool that does one thing to a command that does many: a person sees at once what it will do. Never start what waits for typing."
ADVICE = {
    "linux": f"{ONE_THING} Commands are written for bash.",
    "darwin": f"{ONE_THING} Commands are written for bash, with the programs of macOS: BSD's sed, find and date.",
    "win32": f"{ONE_THING} Commands are written for Git Bash where it is installed; paths with forward slashes work in it.",
}


def _confirmation(command: Command, verdict: Verdict) -> ExecConfirmation:
    return ExecConfirmation(TITLE, command.command, command.cwd)


def _describe(command: Command) -> str:
    return f"Run {' '.join(command.command.split())[:200]}"


@tool(
    layer="core",
    title=TITLE,
    effects=[Run("shell", arg="command"), Read("cwd", arg="cwd")],
    platforms=PLATFORMS,
    advice=ADVICE,
    timeout=lambda command: None if command.background else command.timeout + CLOSING_S,
    live=True,
    confinable=True,
    describe=_describe,
    confirmation=_confirmation,
)
async def execute_cli(command: Command, context: ToolContext) -> Mapping[str, Any]:
    """Run a command line with bash. Returns stdout, stderr and exit_code.

    `cd` and exported variables last to the next call. Output beyond 50 KB is kept whole as an artifact. Standard input is empty unless
    `stdin` is given, so give options such as -y; `prompt` says what was asked; to answer, use background=true and write_process. Programs
    with windows go on under a process_id, on the host also jobs (`&`).
    """
    from handrail_cli.waiting import Attention

    processes: Processes = await context.service("shell")
    rules = answer_rules(context)
    tells = context.sandbox is None or context.sandbox.sandbox.descriptors
    # A command in a sandbox also says whether it has left processes.
    keeps = tells and not command.background and (command.cwd is None or context.sandbox is not None)
    keeps = keeps and not (leaves_nothing(context) and STARTS_JOB.search(command.command) is None)
    if not rules and is_run_in_steps(command, context, keeps=keeps):
        return await run_steps(context.verdict.steps, command, context, processes, keeps=keeps)
    launch = await prepare_launch(command, context, processes, keeps=keeps, answered=bool(rules))
    process = processes.start(launch)
    if command.background:
        return background_result(process, processes, context)
    return await awaited_result(Attention(process, rules), command.timeout, command, context, processes)


async def run_words(
    argv: Sequence[str], context: ToolContext, processes: Processes, *, timeout: float, readable: Sequence[Path]
) -> Mapping[str, Any]:
    """Run a program for another tool, as `execute_cli` runs a command; the session's folder and variables stay as they are."""
    from handrail_cli.waiting import Attention

    command = Command(command=processes.command_line(argv, context.programs), timeout=timeout)
    launch = await prepare_launch(command, context, processes, keeps=False, answered=False)
    if context.sandbox is not None:
        launch = replace(launch, sandbox=(launch.sandbox or context.sandbox).reading(*readable))
    attention = Attention(processes.start(launch), ())
    return await awaited_result(attention, timeout, command, context, processes)
