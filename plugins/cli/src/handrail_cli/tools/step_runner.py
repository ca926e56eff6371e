"""Runs the steps of a line one by one, each in a sandbox that may change what this step may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from handrail import (
    Downstream,
    ToolContext,
    ToolError,
    ToolResult,
)
from handrail_cli.tools.command_launch import prepare_launch
from handrail_cli.tools.command_params import TOOL_TITLE, CommandParams
from handrail_cli.tools.command_results import report_ended, report_output, wait_for_end

if TYPE_CHECKING:
    from handrail import CommandStep
    from handrail_cli.process.command_process import CommandProcess
    from handrail_cli.tools.session_processes import SessionProcesses


def is_run_in_steps(command: CommandParams, context: ToolContext, *, keeps: bool) -> bool:
    """Return True if a line has steps, runs in the sandbox and takes no input."""
    goes = any(part.argv[:1] == ("cd",) for part in context.verdict.parts)
    simple = command.stdin is None and command.pty is None and (keeps or not goes)
    waits = not command.background and command.on_timeout == "stop"
    return bool(context.verdict.steps) and context.sandbox is not None and simple and waits


async def run_line_steps(
    steps: Sequence[CommandStep],
    command: CommandParams,
    context: ToolContext,
    processes: SessionProcesses,
    *,
    keeps: bool,
) -> Mapping[str, Any]:
    """Run the steps of a line one by one, each in a sandbox that may change what this step may; what they write comes together."""
    from handrail_cli.process.command_wait import PromptWatcher

    assert context.sandbox is not None
    deadline = monotonic() + command.timeout
    waiting, folder = steps, None
    process: CommandProcess | None = None
    aside: list[str] = []
    while True:
        before = process
        try:
            process = await _start_step(waiting[0], before, folder, command, context, processes, keeps=keeps)
            attention = PromptWatcher(process, ())
            unfinished = await wait_for_end(attention, deadline - monotonic(), command, context, processes)
        except ToolError as exc:
            if before is None or process is None:
                raise
            return _add_unrun_rest(_report_cut_short(process, context, exc), waiting, aside)
        if unfinished is not None:
            return _add_unrun_rest(unfinished, waiting[1:], aside)
        waiting = _find_due_steps(waiting[1:], process.exit_code)
        if not waiting:
            return _add_unrun_rest(report_ended(attention, command, context, processes), (), aside)
        left = process.parse_left(process.left_behind() or b"") if keeps else None
        aside = context.sandbox.put_aside()
        # The next step would do something else than in one shell.
        if aside or (keeps and (left is None or left.running)):
            return _add_unrun_rest(report_ended(attention, command, context, processes), waiting, aside)
        folder = left.cwd if left is not None else folder


async def _start_step(
    step: CommandStep,
    before: CommandProcess | None,
    folder: Path | None,
    command: CommandParams,
    context: ToolContext,
    processes: SessionProcesses,
    *,
    keeps: bool,
) -> CommandProcess:
    """Start a step, in the folder where the one `before` has ended. Where that fails, `before` has the outputs of all steps so far."""
    outputs = None
    if before is not None:
        outputs = before.detach_outputs()
        processes.finished(before)
    try:
        launch = await prepare_launch(
            command, context, processes, keeps=keeps, answered=False, step=step, folder=folder
        )
        return processes.start(replace(launch, outputs=outputs, in_steps=True))
    except ToolError:
        if before is not None and outputs is not None:
            before.restore_outputs(outputs)
        raise


def _report_cut_short(process: CommandProcess, context: ToolContext, why: ToolError) -> Mapping[str, Any]:
    """Return the result of a line whose next step could not be run. What was run before is done."""
    failure = Downstream(f"the line was not run to its end: {why}", hint=why.hint)
    return {
        **report_output(process, context, exit_code=process.exit_code),
        **ToolResult.failure(failure, title=TOOL_TITLE),
    }


def _find_due_steps(waiting: Sequence[CommandStep], code: int | None) -> Sequence[CommandStep]:
    """Return the steps from the next one on that runs after this exit code; none after a signal."""
    if code is None or code < 0:
        return ()
    due = {";", "&&" if code == 0 else "||"}
    return waiting[next((number for number, step in enumerate(waiting) if step.operator in due), len(waiting)) :]


def _add_unrun_rest(
    result: Mapping[str, Any], waiting: Sequence[CommandStep], aside: Sequence[str]
) -> Mapping[str, Any]:
    """Return a result with what was renamed between the steps, and what was not run."""
    result = {**result, "put_aside": list(aside)} if aside else result
    if not waiting:
        return result
    note = f"The rest of the line was not run, from {waiting[0].text!r} on."
    result = {**result, "note": f"{result['note']} {note}" if "note" in result else note}
    if "error" in result:
        return result
    why = "what the part before it left was renamed" if aside else "the part before it left a program running"
    failure = Downstream(f"the line was not run to its end: {why}", hint="look at what was done, then run the rest")
    return {**result, **ToolResult.failure(failure, title=TOOL_TITLE)}
