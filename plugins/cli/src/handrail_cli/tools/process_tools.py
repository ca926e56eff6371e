"""Handles of commands that go on running: read, written to, stopped, listed. Only those of this session."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from handrail import Downstream, Input, Read, Run, ToolContext, Write, tool

if TYPE_CHECKING:
    from handrail_cli.process.command_process import CommandProcess
    from handrail_cli.tools.session_processes import SessionProcesses

PLATFORMS = frozenset(("linux", "darwin", "win32"))
# A program that does not read for so long is not going to.
WRITE_S = 5.0
NEXT_TRY_S = 0.02

ProcessId = Annotated[str, Field(description="From execute_cli.")]


@tool(layer="core", title="Read a process", effects=[Read("session")], platforms=PLATFORMS)
async def read_process(
    process_id: ProcessId,
    wait: Annotated[float, Field(ge=0, le=60, description="Seconds to wait for its end, or a prompt.")] = 0.0,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """What a background command wrote since it was last read, whether it still runs, its exit code, and the `prompt` it waits at.

    Of one that draws on a terminal, stdout is what that shows now.
    """
    from handrail_cli.process.command_wait import wait_until_over_or_prompt

    processes: SessionProcesses = await context.service("shell")
    process = processes.get(process_id)
    if wait:
        await wait_until_over_or_prompt(process, min(wait, 50.0))
    return _report_state(process)


@tool(
    layer="core",
    title="Write to a process",
    effects=[Input("process", arg="text"), Run("shell", arg="text")],
    platforms=PLATFORMS,
)
async def write_process(
    process_id: ProcessId,
    text: Annotated[str, Field(description="Text; end a line with a newline.")] = "",
    keys: Annotated[
        tuple[str, ...],
        Field(max_length=50, description="Keys after it, such as ctrl-c, enter, up, f1."),
    ] = (),
    end: Annotated[bool, Field(description="Close its input afterwards.")] = False,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Write to the standard input of a command that was started with background=true.

    Without a terminal (`pty`), ctrl-c is sent as a signal and ctrl-d closes its input.
    """
    from handrail_cli.process.key_input import translate_keys
    from handrail_cli.tools.session_processes import compute_written_text

    processes: SessionProcesses = await context.service("shell")
    process = processes.get(process_id)
    pressed = translate_keys(process, keys)
    processes.check_judged(process, context.invocation)
    after = compute_written_text(process, context.invocation)
    # What has come of it is not known until all of it is written.
    process.written = process.written.with_unknown_keys()
    if process.launch.terminal is not None:
        # The key that ends a line sends this, also to programs that read key by key.
        text = text.replace("\r\n", "\r").replace("\n", "\r")
    await _write_input(process, text.encode("utf-8", "replace"), context)
    for key in pressed:
        context.checkpoint()
        if key.text:
            await _write_input(process, key.text, context)
        if key.signal is not None:
            process.interrupt(key.signal)
        if key.end:
            process.end_input()
    if end:
        process.end_input()
    process.written = after
    return {"written": len(text), "running": process.running}


@tool(layer="core", title="Stop a process", effects=[Write("session")], platforms=PLATFORMS)
async def stop_process(process_id: ProcessId, *, context: ToolContext) -> Mapping[str, Any]:
    """End a command of this session and everything it started; returns what it still wrote."""
    processes: SessionProcesses = await context.service("shell")
    process = processes.get(process_id)
    was_running = process.running
    await processes.stop(process)
    return {**_report_state(process), "stopped": was_running and not process.running}


@tool(layer="core", title="List processes", effects=[Read("session")], platforms=PLATFORMS)
async def list_processes(*, context: ToolContext) -> Mapping[str, Any]:
    """The commands of this session that have a process_id: running, exit_code, pid, command, started."""
    processes: SessionProcesses = await context.service("shell")
    return {"processes": [_describe_process(process) for process in processes.all()]}


async def _write_input(process: CommandProcess, data: bytes, context: ToolContext) -> None:
    deadline = monotonic() + WRITE_S
    while data:
        context.checkpoint()
        data = data[process.write(data) :]
        if data and await process.settle(NEXT_TRY_S):
            raise Downstream(f"process {process.id!r} ended with {len(data)} bytes unread")
        if data and monotonic() > deadline:
            raise Downstream(
                f"process {process.id!r} does not read its standard input: {len(data)} bytes were not written"
            )


def _describe_process(process: CommandProcess) -> dict[str, Any]:
    return {
        "process_id": process.id,
        "command": process.launch.command,
        "pid": process.pid,
        "running": process.running,
        "exit_code": process.exit_code,
        "started": datetime.fromtimestamp(process.started, UTC).isoformat(timespec="seconds"),
    }


def _report_state(process: CommandProcess) -> dict[str, Any]:
    from handrail_cli.process.command_wait import find_waiting_prompt
    from handrail_cli.tools.output_report import describe_outputs

    prompt = find_waiting_prompt(process)
    keys, notes = describe_outputs(
        {stream.name: stream.kept.take(last=stream.fd is None) for stream in process.streams}
    )
    state = {**_describe_process(process), **keys}
    if prompt is not None:
        state["prompt"] = prompt.wire()
    if notes:
        state["note"] = " ".join(notes)
    return state
