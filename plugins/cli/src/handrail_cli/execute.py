"""The tool `execute_cli`: one command for bash, run to its end, its time limit or its first window."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from handrail import (
    Desktop,
    Downstream,
    ExecConfirmation,
    HandrailError,
    InvalidArguments,
    NoSandbox,
    NotFound,
    Read,
    Run,
    SandboxDenied,
    TimedOut,
    ToolContext,
    ToolError,
    ToolResult,
    ToolUnavailable,
    Verdict,
    tool,
)
from handrail_cli import family

if TYPE_CHECKING:
    from handrail_cli.processes import Launch, Process, Processes

TITLE = "Run a command"
CURE = "`handrail doctor` says how to get a sandbox that works"
# The rule of a verdict on a command that does nothing but read.
RULE = "shell"
# After its own time limit a call needs a moment to end what it started and to tell what was written.
CLOSING_S = 15.0
# A program that opens a window is not waited for. Most commands are over before anybody looks.
FIRST_LOOK_S = 1.0
NEXT_LOOK_S = 0.5
# Builtins among the programs that read that can set a variable (`printf -v`, arithmetic in `[[ a -eq b=1 ]]`).
ASSIGNING = frozenset(("printf", "test", "[", "[["))
# Programs that exit with 1 to say that they found nothing, or a difference.
ONE_MEANS_NO = frozenset(
    ("grep", "egrep", "fgrep", "rg", "diff", "cmp", "pgrep", "test", "[", "[[", "which", "type", "command")
)


class Command(BaseModel):
    """What to run, and for how long."""

    model_config = ConfigDict(extra="forbid")

    command: Annotated[str, Field(min_length=1, description="A command line for bash.")]
    timeout: Annotated[float, Field(gt=0, le=86_400, description="Seconds it may take.")] = 30.0
    on_timeout: Annotated[
        Literal["stop", "background"],
        Field(description="At the time limit: stop it with all it started, or leave it running under a process_id."),
    ] = "stop"
    background: Annotated[
        bool,
        Field(description="Return at once with a process_id; for servers and watchers. It keeps no cwd or variables."),
    ] = False
    stdin: Annotated[str | None, Field(description="Text for its standard input, which is empty otherwise.")] = None
    cwd: Annotated[str | None, Field(description="Working directory for this call only.")] = None


def _confirmation(command: Command, verdict: Verdict) -> ExecConfirmation:
    return ExecConfirmation(TITLE, command.command, command.cwd)


def _describe(command: Command) -> str:
    return f"Run {' '.join(command.command.split())[:200]}"


@tool(
    layer="core",
    title=TITLE,
    effects=[Run("shell", arg="command"), Read("cwd", arg="cwd")],
    platforms=frozenset(("linux", "darwin")),
    timeout=lambda command: None if command.background else command.timeout + CLOSING_S,
    live=True,
    confinable=True,
    describe=_describe,
    confirmation=_confirmation,
)
async def execute_cli(command: Command, context: ToolContext) -> Mapping[str, Any]:
    """Run a command line with bash on this computer and return stdout, stderr and exit_code.

    The working directory (`cd`) and exported variables are kept for the next call; nothing else of the shell is. Output beyond
    50 KB is shown as head and tail, and kept whole as an artifact. Nobody can answer prompts: standard input is empty unless
    `stdin` is given. Programs that open a window, and those started with `&`, go on running; they get a process_id.
    """
    from handrail_cli.processes import scratch_file

    processes: Processes = await context.service("shell")
    tells = context.sandbox is None or context.sandbox.sandbox.descriptors
    keeps = tells and not command.background and command.cwd is None and not _only_reads(context)
    state = scratch_file("state") if keeps else None
    try:
        launch = await _launch(command, context, processes, state)
        process = processes.start(launch)
        if command.background:
            return _background(process, processes, context)
        return await _foreground(process, command, context, processes, state)
    finally:
        if state is not None:
            os.close(state)


async def _launch(command: Command, context: ToolContext, processes: Processes, state: int | None) -> Launch:
    from handrail_cli.environment import on_desktop
    from handrail_cli.output import PassingThrough
    from handrail_cli.processes import Launch

    if "\0" in command.command:
        raise InvalidArguments("execute_cli: the command holds a NUL character, which no command can")
    bash = processes.bash(context.host_environment.get("PATH"))
    if bash is None:
        raise ToolUnavailable("bash is not on PATH", hint="install bash")
    environment = processes.host_environment(context.host_environment)
    if context.sandbox is None:
        environment = on_desktop(environment, await _desktop(context))
    environment.update(context.environment)
    return Launch(
        bash,
        command.command,
        _folder(command, context),
        environment,
        stdin=None if command.stdin is None else command.stdin.encode("utf-8", "replace"),
        interactive=command.background,
        state=state,
        open_sink=None if command.background else lambda: PassingThrough(context.artifacts.create()),
        on_output=context.output if context.listening else None,
        sandbox=context.sandbox,
    )


async def _desktop(context: ToolContext) -> Desktop | None:
    try:
        return await context.desktop()
    # No screen is no reason not to run a command: it is then shown nowhere.
    except HandrailError:
        return None


def _folder(command: Command, context: ToolContext) -> Path:
    folder = context.cwd
    if command.cwd is not None:
        from handrail import paths

        home = Path(context.host_environment.get("HOME") or Path.home())
        found = paths.resolve(command.cwd, cwd=context.cwd, home=home)
        if found.refused is not None:
            raise InvalidArguments(f"execute_cli: cwd: {found.refused.text}")
        folder = Path(found.path)
    if folder.is_dir():
        return folder
    if command.cwd is not None:
        raise NotFound(f"execute_cli: there is no folder {str(folder)!r} to work in", hint="give another `cwd`")
    # The command was judged for the folder that is gone: it is not run elsewhere, but the next one can be.
    context.keep(cwd=context.workspace[0])
    raise NotFound(
        f"execute_cli: the session's folder {str(folder)!r} is gone; nothing was run",
        hint=f"the session is in {str(context.workspace[0])!r} from now on: call again",
    )


def _background(process: Process, processes: Processes, context: ToolContext) -> Mapping[str, Any]:
    id = processes.keep(process)
    return {
        "stdout": "",
        "stderr": "",
        "exit_code": None,
        "process_id": id,
        "pid": process.pid,
        "cwd": str(context.cwd),
        "note": f"It runs in the background; read_process gives what it writes, stop_process({id!r}) ends it.",
    }


async def _foreground(
    process: Process, command: Command, context: ToolContext, processes: Processes, state: int | None
) -> Mapping[str, Any]:
    try:
        ended, window = await _until_end_or_window(process, command.timeout, context)
    except asyncio.CancelledError:
        await processes.stop(process)
        # Raises when it was the call that was stopped, and then what was written is still told.
        try:
            context.checkpoint()
        except ToolError:
            return _report(process, context, exit_code=None)
        raise
    if window is not None:
        note = f"It opened the window {window!r} and goes on running."
        return _report(process, context, exit_code=None, note=note, process_id=processes.keep(process))
    if not ended and command.on_timeout == "background":
        note = (
            f"It was not done after {command.timeout:g} s and goes on running; read_process gives what it writes next."
        )
        return _report(process, context, exit_code=None, note=note, process_id=processes.keep(process))
    if not ended:
        await processes.stop(process)
        return _timed_out(process, command, context)
    if (refused := await process.give_back()) is not None:
        said = process.stderr.shown().text.strip()
        processes.finished(process)
        raise NoSandbox(f"nothing was run: {refused}: {said[:500]}", hint=CURE)
    return _ended(process, command, context, processes, state)


async def _until_end_or_window(process: Process, timeout: float, context: ToolContext) -> tuple[bool, str | None]:
    """Whether the command has ended in time, and the title of the window that it opened instead."""
    deadline = monotonic() + timeout
    if await process.settle(min(FIRST_LOOK_S, timeout)):
        return True, None
    while (left := deadline - monotonic()) > 0:
        if (title := await _window(process, context)) is not None:
            return False, title
        if await process.settle(min(NEXT_LOOK_S, left)):
            return True, None
    return False, None


async def _window(process: Process, context: ToolContext) -> str | None:
    """The title of a window that the command shows on the session's desktop; None when it shows none, or nobody can tell."""
    members = await asyncio.to_thread(family.family, process.pid, mark=process.mark)
    if not await asyncio.to_thread(family.draws, members):
        return None
    try:
        screen = await context.service("screen")
        windows = await screen.windows()
    # Without a screen nothing is shown on it, and the command is waited for like any other.
    except HandrailError:
        return None
    return next((window.title for window in windows if window.pid in members), None)


def _timed_out(process: Process, command: Command, context: ToolContext) -> Mapping[str, Any]:
    error = TimedOut(
        f"the command was stopped after {command.timeout:g} s, with what could be told to be its own",
        hint='give a longer timeout, on_timeout="background", or background=true',
    )
    return {**_report(process, context, exit_code=None), **ToolResult.failure(error, title=TITLE)}


def _ended(
    process: Process, command: Command, context: ToolContext, processes: Processes, state: int | None
) -> Mapping[str, Any]:
    note = _keep_left(process, context, processes, state)
    code = process.exit_code
    assert code is not None
    id = None
    if process.left:
        id = processes.keep(process)
        note = f"{note} Programs it started still run; stop_process({id!r}) ends them.".strip()
    else:
        processes.finished(process)
    if code == 1 and _last_program(context) in ONE_MEANS_NO:
        note = f"{note} Exit code 1 means that nothing was found, or a difference.".strip()
        return _report(process, context, exit_code=code, note=note, process_id=id)
    report = _report(process, context, exit_code=code, note=note, process_id=id)
    if code == 0:
        return report
    if context.sandbox is not None and (denial := _denial(process, context, code)) is not None:
        return {**report, **ToolResult.failure(denial, title=TITLE)}
    told = f"signal {-code}" if code < 0 else f"exit code {code}"
    return {**report, **ToolResult.failure(Downstream(f"the command failed with {told}"), title=TITLE)}


def _denial(process: Process, context: ToolContext, code: int) -> SandboxDenied | None:
    """What the sandbox seems to have refused; None when it is an ordinary failure."""
    assert context.sandbox is not None
    said = "\n".join(stream.kept.shown().text for stream in process.streams)
    found = context.sandbox.denied(said, code)
    if found is None:
        return None
    return SandboxDenied(
        f"the command failed with exit code {code} in the sandbox: {found.text}",
        details={"denied": found.what},
        hint=SandboxDenied.INSTEAD,
    )


def _keep_left(process: Process, context: ToolContext, processes: Processes, state: int | None) -> str:
    """Keep the shell's folder and variables for the calls that follow; what there is to say about that."""
    if state is None or process.exit_code is None or process.exit_code < 0:
        return ""
    from handrail_cli.shell import read_state

    written = read_state(state)
    left = None if written is None else processes.left_by(process, written)
    if left is None:
        return "" if written == b"" else "What it left of its folder and variables could not be kept."
    gone = left.unset - {family.MARK}
    if left.cwd == context.cwd and not left.changed and not gone:
        return ""
    if not process.alone:
        return "It ran beside another command: its folder and variables were not kept."
    kept = {name: value for name, value in context.environment.items() if name not in gone}
    processes.unset = (processes.unset | gone) - left.changed.keys()
    context.keep(cwd=left.cwd, environment={**kept, **left.changed})
    return ""


def _report(
    process: Process, context: ToolContext, *, exit_code: int | None, note: str = "", process_id: str | None = None
) -> dict[str, Any]:
    """The keys that every result has, with what was written so far."""
    running = process_id is not None
    outputs = {stream.name: stream.kept.take() if running else stream.kept.shown() for stream in process.streams}
    report: dict[str, Any] = {name: shown.text for name, shown in outputs.items()}
    report |= {"exit_code": exit_code, "cwd": str(context.cwd)}
    if any(shown.truncated for shown in outputs.values()):
        report["truncated"] = True
    for stream, key in zip(process.streams, ("artifact", "stderr_artifact"), strict=True):
        if stream.kept.sink is not None:
            stream.kept.close()
            report[key] = stream.kept.sink.wire()
            if stream.kept.cut:
                note = f"{note} The artifact ends after {report[key]['bytes']} bytes.".strip()
    if process_id is not None:
        report |= {"process_id": process_id, "pid": process.pid}
    if note:
        report["note"] = note
    if not any(shown.text for shown in outputs.values()) and exit_code == 0 and not note:
        report["note"] = "It printed nothing."
    return report


def _last_program(context: ToolContext) -> str | None:
    names = [part.argv[0].rpartition("/")[2] for part in context.verdict.parts if part.argv]
    return next((name for name in reversed(names) if name[:1].isalpha() or name in ("[", "[[")), None)


def _only_reads(context: ToolContext) -> bool:
    """Whether it is certain that the shell is the same afterwards: nothing runs but programs that read."""
    verdict = context.verdict
    return verdict.rule == RULE and all(
        part.argv and part.argv[0] not in ASSIGNING and all(touch.kind == "read" for touch in part.touches)
        for part in verdict.parts
    )
