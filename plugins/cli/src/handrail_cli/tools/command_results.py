"""The result of a command: waiting for its end, and what there is to say about that."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any

from handrail import (
    Downstream,
    HandrailError,
    NoSandbox,
    SandboxDenied,
    TimedOut,
    ToolContext,
    ToolError,
    ToolResult,
    Verdict,
    View,
)
from handrail.policy import place_kinds
from handrail.sandbox.denials import PERMISSION_FAILURE, detect_repository_denial, refused_files
from handrail.workers.processes import read_process_name
from handrail_cli.process import process_tree
from handrail_cli.shell.verdict_codes import INSPECTS_INSIDE, KEEPS_GIT
from handrail_cli.tools.command_params import TOOL_TITLE, CommandParams

if TYPE_CHECKING:
    from handrail import Confinement, Denial
    from handrail_cli.process.bash_protocol import ShellState
    from handrail_cli.process.command_process import CommandProcess, LaunchRequest
    from handrail_cli.process.command_wait import PromptWatcher
    from handrail_cli.process.prompts import DetectedPrompt
    from handrail_cli.tools.session_processes import SessionProcesses

SANDBOX_HINT = "`handrail doctor` says how to get a sandbox that works"
# What a sandbox has of its own, by the same name.
ALWAYS_SHOWN = ("/dev", "/proc", "/sys", "/tmp", "/var/tmp")
# Kinds of prompts that are told of a command that ended well, too: what else it wrote last may only look like one.
CERTAIN_PROMPTS = frozenset(("password", "question", "key"))
# Variables that only show, and are no loss.
DISPLAY_VARIABLES = re.compile(r"PS[0-4]|PROMPT_.*|.*_PROMPT")
# Variables that a note names.
MOST_NAMED = 5
# Programs that exit with 1 to say that they found nothing, or a difference.
ONE_MEANS_NO = frozenset(
    ("grep", "egrep", "fgrep", "rg", "diff", "cmp", "pgrep", "test", "[", "[[", "which", "type", "command")
)


def report_background(process: CommandProcess, processes: SessionProcesses, context: ToolContext) -> Mapping[str, Any]:
    """Keep a command that is not waited for.

    Returns its result so far, with the id under which it continues.
    """
    id = processes.keep(process)
    context.goes_on(lambda: process.running)
    told = f"It runs in the background; read_process gives what it writes, stop_process({id!r}) ends it."
    return {
        "stdout": "",
        "stderr": "",
        "exit_code": None,
        "process_id": id,
        "pid": process.pid,
        "cwd": str(context.cwd),
        "note": " ".join((*_describe_withheld(process), told)),
    }


async def wait_for_end(
    attention: PromptWatcher, seconds: float, command: CommandParams, context: ToolContext, processes: SessionProcesses
) -> Mapping[str, Any] | None:
    """Wait until a command has ended; otherwise return its result so far. Raises `NoSandbox` where none was set up, and it was not run."""
    from handrail_cli.process.command_wait import wait_until_over

    process = attention.process
    try:
        ended, window = await wait_until_over(process, seconds, context, attention)
    except asyncio.CancelledError:
        from handrail_cli.process.command_process import CANCEL_S

        await processes.stop(process, patience=CANCEL_S)
        # Raises when it was the call that was stopped, and then what was written is still told.
        try:
            context.checkpoint()
        except ToolError:
            return report_output(process, context, exit_code=None)
        raise
    if window is not None:
        note = f"It opened the window {window!r} and goes on running."
        return report_output(process, context, exit_code=None, notes=[note], process_id=processes.keep(process))
    if not ended and (process.misses_terminal or process.holds_screen):
        return await _stop_keyless_command(attention, context, processes)
    if not ended and command.on_timeout == "background":
        note = (
            f"It was not done after {command.timeout:g} s and goes on running; read_process gives what it writes next."
        )
        notes = [*_describe_prompts(attention, process.prompt), note]
        prompt = process.prompt
        kept = processes.keep(process)
        return report_output(process, context, exit_code=None, notes=notes, prompt=prompt, process_id=kept)
    if not ended:
        prompt = process.prompt
        await processes.stop(process)
        return _report_timeout(attention, prompt, command, context)
    if (refused := await process.give_back()) is not None:
        said = process.streams[1].kept.finish().text.strip()
        processes.finished(process)
        what = "nothing was run" if process.launch.outputs is None else f"{process.launch.command!r} was not run"
        raise NoSandbox(f"{what}: {refused}: {said[:500]}", hint=SANDBOX_HINT)
    return None


def _describe_prompts(attention: PromptWatcher, prompt: DetectedPrompt | None) -> list[str]:
    """Return the notes about questions that a command has asked at its terminal."""
    from handrail_cli.process.prompts import READ_KEYS

    notes = [f"{text!r} was answered with {answer!r}, as a rule says." for text, answer in attention.answered]
    if prompt is None:
        return notes
    if attention.given_up is not None:
        return [*notes, f"Nobody answered {attention.given_up.text!r}, and its input was closed after 5 s of silence."]
    if prompt.kind == "password":
        return [*notes, f"It asked for a secret ({prompt.text!r}), which nothing here gives."]
    if prompt.kind in READ_KEYS:
        how = 'pty="120x40" and background=true'
        told = f"It waits for keys on a whole screen ({prompt.text!r}): run it with {how} and press them with write_process"
        return [*notes, f"{told}, or give options that need no screen."]
    return [
        *notes,
        f"It asked {prompt.text!r}: give an option that answers it, or `stdin`, or run it with background=true.",
    ]


async def _stop_keyless_command(
    attention: PromptWatcher, context: ToolContext, processes: SessionProcesses
) -> Mapping[str, Any]:
    """Stop a command that waits for keys and has no terminal: no key can be pressed."""
    prompt = attention.process.prompt
    await processes.stop(attention.process)
    error = Downstream(
        "the command was stopped: it works a whole screen until a key is pressed, and has no terminal",
        hint='run it with pty="120x40" and background=true and press keys with write_process, or use a program that needs no screen',
    )
    report = report_output(attention.process, context, exit_code=None, prompt=prompt)
    return {**report, **ToolResult.failure(error, title=TOOL_TITLE)}


def _lacks_network(context: ToolContext) -> str:
    """Return what the user should know of a waiting command, if it was in a sandbox without network access."""
    sandbox = context.sandbox
    return "" if sandbox is None or sandbox.network or sandbox.hosts else "the sandbox has no network to wait for; "


def _report_timeout(
    attention: PromptWatcher, prompt: DetectedPrompt | None, command: CommandParams, context: ToolContext
) -> Mapping[str, Any]:
    waited = "" if prompt is None else f", waiting at {prompt.text!r}"
    found = "" if context.sandbox is not None else ", as far as they could be found"
    error = TimedOut(
        f"the command was stopped after {command.timeout:g} s{waited}, together with the processes that it had started{found}",
        hint=f'{_lacks_network(context)}give a longer timeout, on_timeout="background", or background=true',
    )
    report = report_output(
        attention.process, context, exit_code=None, notes=_describe_prompts(attention, prompt), prompt=prompt
    )
    return {**report, **ToolResult.failure(error, title=TOOL_TITLE)}


async def wait_for_result(
    attention: PromptWatcher, seconds: float, command: CommandParams, context: ToolContext, processes: SessionProcesses
) -> Mapping[str, Any]:
    """Wait until a command has ended. Returns its result, or the part of it available by then."""
    unfinished = await wait_for_end(attention, seconds, command, context, processes)
    return unfinished if unfinished is not None else report_ended(attention, command, context, processes)


def report_ended(
    attention: PromptWatcher, command: CommandParams, context: ToolContext, processes: SessionProcesses
) -> Mapping[str, Any]:
    """Process the state left by an ended command. Returns its result, with notes on what its output omits."""
    process = attention.process
    code = process.exit_code
    assert code is not None
    prompt = attention.given_up or process.prompt
    if prompt is not None and code == 0 and attention.given_up is None and prompt.kind not in CERTAIN_PROMPTS:
        prompt = None
    notes = [
        *_describe_prompts(attention, prompt),
        *_keep_shell_state(process, context, processes, stays=command.cwd is not None),
    ]
    kept = "" if process.launch.in_steps else _explain_kept_repositories(context)
    notes += [f"{reason.text}." for reason in context.verdict.reasons if reason.code == INSPECTS_INSIDE]
    notes += [f"{kept}."] if kept else []
    if code == 0 and (partly := _find_partly_shown(context)):
        notes.append(f"The sandbox shows little or nothing of {', '.join(partly)}; list_directory shows what is there.")
    if code == 0 and not kept and (refused := _find_history_denial(process, context)) is not None:
        notes.append(f"Not all of it was done: {refused.text}.")
    id = None
    if process.left:
        id = processes.keep(process)
        notes.append(f"Programs it started still run{_describe_daemons(process)}; stop_process({id!r}) ends them.")
    else:
        processes.finished(process)
    if (limit := _find_limit_reached(code, process.launch)) is not None:
        notes.append(f"It reached the limit plugins.cli.limits.{limit}.")
    if code == 1 and _find_last_program(context) in ONE_MEANS_NO:
        notes.append("Exit code 1 means that nothing was found, or a difference.")
        return report_output(process, context, exit_code=code, notes=notes, prompt=prompt, process_id=id)
    if (hidden := _find_hidden_secrets(process, context)) and code != 0:
        # A search that goes past a secret has done its work; nobody is asked to show it the secret.
        notes.append(f"The sandbox hides {', '.join(hidden)}, which may hold secrets: what is in there was left out.")
        return report_output(process, context, exit_code=code, notes=notes, prompt=prompt, process_id=id)
    report = report_output(process, context, exit_code=code, notes=notes, prompt=prompt, process_id=id)
    if code == 0:
        left = _left_by_git(process, context)
        return {**report, **ToolResult.failure(_half_checked_out(left), title=TOOL_TITLE)} if left else report
    ended_by = f"signal {-code}" if code < 0 else f"exit code {code}"
    failure: HandrailError = Downstream(f"the command failed with {ended_by}")
    # Where git alone is missing, calls of their own do it all, and nobody has to be asked.
    if context.sandbox is not None and not (kept and _find_history_denial(process, context) is not None):
        failure = _describe_denial(report, context, code) or failure
    return {**report, **ToolResult.failure(failure, title=TOOL_TITLE)}


def _explain_kept_repositories(context: ToolContext) -> str:
    """Return why git could not change repositories in one sandbox with the rest of the line; empty where it could, and on the host."""
    if context.sandbox is None:
        return ""
    if places := [place for step in context.verdict.steps for place in step.changes_repositories]:
        from handrail_cli.shell.line_steps import explain_kept_repository

        return explain_kept_repository(dict.fromkeys(places))
    return next((reason.text for reason in context.verdict.reasons if reason.code == KEEPS_GIT), "")


def _find_hidden_secrets(process: CommandProcess, context: ToolContext) -> Sequence[str]:
    """Return the secrets that a command which only reads was refused, if it wrote something and had nothing else to complain of."""
    if context.verdict.view is not View.READ or context.sandbox is None or not process.stdout.beginning():
        return ()
    masked = context.sandbox.bounds.masked
    found: dict[str, None] = {}
    for line in process.stderr.ending().decode("utf-8", "replace").splitlines():
        names = [path.name for path in masked if path.name in line]
        if not names or PERMISSION_FAILURE.search(line) is None:
            return ()
        found |= dict.fromkeys(names)
    return tuple(found)


def _find_history_denial(process: CommandProcess, context: ToolContext) -> Denial | None:
    """Return the refusal to change a repository that a command was told of and went on after (`git add x; ls`)."""
    if context.sandbox is None:
        return None
    return detect_repository_denial(process.stderr.ending().decode("utf-8", "replace"), context.sandbox.bounds)


def _left_by_git(process: CommandProcess, context: ToolContext) -> Sequence[str]:
    """Return the files of the work tree that git was to change in the sandbox and has left as they were."""
    verdict = context.verdict
    changes = any(each.changes_repositories for each in (verdict, *verdict.steps))
    if context.sandbox is None or not changes:
        return ()
    said = "\n".join(stream.ending().decode("utf-8", "replace") for stream in (process.stdout, process.stderr))
    return refused_files(said)


def _half_checked_out(left: Sequence[str]) -> HandrailError:
    """Return the error for git that ended well without changing these files."""
    named = ", ".join(map(repr, left[:MOST_NAMED])) + (
        f" and {len(left) - MOST_NAMED} more" if left[MOST_NAMED:] else ""
    )
    return Downstream(
        f"git ended well, but left {named} as before, which the sandbox keeps: the work tree is not the one of the commit",
        hint="look at `git status`; a person can approve `git checkout -f .`, or `rm` for a file that the commit does not have, for the host",
    )


def _find_partly_shown(context: ToolContext) -> Sequence[str]:
    """Return the places that a sandboxed command has named to read, and of which the sandbox shows at most a part."""
    if context.sandbox is None:
        return ()
    bounds = context.sandbox.bounds
    whole = (*bounds.writable, *bounds.readable, bounds.temporary, *bounds.shown)
    named = {touch.what for part in context.verdict.parts for touch in part.touches if touch.kind == "read"}
    return sorted(
        place
        for place in named
        if place.startswith("/")
        and not place.startswith(ALWAYS_SHOWN)
        and not place_kinds.is_public(PurePosixPath(place))
        and not any(PurePosixPath(place).is_relative_to(root) for root in whole)
    )


def _find_limit_reached(code: int, launch: LaunchRequest) -> str | None:
    """Return the configured limit that ended a command, as far as its exit code shows, or None."""
    limits = launch.limits if launch.sandbox is None else None
    if limits is None:
        return None
    # By name: Windows has neither, and no such limit is taken there.
    ended_by = {"SIGXCPU": ("cpu_seconds", limits.cpu_seconds), "SIGXFSZ": ("file_size", limits.file_size)}
    try:
        name, value = ended_by[signal.Signals(-code if code < 0 else code - 128).name]
    except (ValueError, KeyError):
        return None
    return name if value else None


def _describe_daemons(process: CommandProcess) -> str:
    """Name the programs that left the command's process group, and say if its output is still open."""
    told = ", ".join(f"{read_process_name(pid)} {pid}".strip() for pid in process.daemons)
    held = ", and its output is still open" if process.held else ""
    return f" ({told} as daemons{held})" if told else held and " (its output is still open)"


def _describe_denial(report: Mapping[str, Any], context: ToolContext, code: int) -> SandboxDenied | None:
    """Return a description of what the sandbox seems to have refused, or None for an ordinary failure."""
    assert context.sandbox is not None
    said = f"{report['stdout']}\n{report['stderr']}"
    found = context.sandbox.denied(said, code)
    if found is None:
        return None
    hosts = _find_missing_hosts(found, context.sandbox, context.verdict)
    details: dict[str, Any] = {"denied": found.what, **({"hosts": list(hosts)} if hosts else {})}
    return SandboxDenied(
        f"the command failed with exit code {code} in the sandbox: {found.text}",
        details=details,
        hint=SandboxDenied.ALLOWED_HOSTS if hosts else SandboxDenied.INSTEAD,
    )


def _find_missing_hosts(found: Denial, sandbox: Confinement, verdict: Verdict) -> tuple[str, ...]:
    """Return the hosts that the user may be prompted for.

    These are the hosts that were refused and, without any network, those that the program is known to use.
    """
    if not sandbox.sandbox.filters:
        return ()
    reach = verdict.reach if found.what == "network" and not sandbox.hosts else None
    return tuple(dict.fromkeys((*(reach.hosts if reach is not None else ()), *found.hosts)))


def _keep_shell_state(
    process: CommandProcess, context: ToolContext, processes: SessionProcesses, *, stays: bool
) -> list[str]:
    """Keep the shell's folder and variables for the calls that follow, unless the session `stays` as it is; what there is to say about it."""
    if not process.launch.keeps or process.exit_code is None or process.exit_code < 0:
        return []
    written = process.left_behind()
    left = None if written is None else processes.left_by(process, written)
    if left is None:
        return [] if stays or written == b"" else ["What it left of its folder and variables could not be kept."]
    notes = [*_describe_lost_processes(left), *_describe_dropped_variables(left, context)]
    gone = left.unset - {process_tree.MARK_VARIABLE}
    if stays or (left.cwd == context.cwd and not left.changed and not gone):
        return notes
    if not process.alone:
        return [*notes, "It ran beside another command: its folder and variables were not kept."]
    kept = {name: value for name, value in context.environment.items() if name not in gone}
    if process.launch.sandbox is None and context.verdict.view is None:
        processes.vouched = {**processes.vouched, **left.changed}
    processes.unset = (processes.unset | gone) - left.changed.keys()
    context.keep(cwd=left.cwd, environment={**kept, **left.changed})
    return notes


def _describe_lost_processes(left: ShellState) -> Sequence[str]:
    """Say that what a command in the sandbox left running is gone."""
    if not left.running:
        return ()
    return ("What it left running ended with it; start that with background=true and without `&`.",)


def _describe_dropped_variables(left: ShellState, context: ToolContext) -> Sequence[str]:
    """Say which variables hold for a command in the sandbox alone, and what to do instead."""
    names = [name for name in left.dropped if not DISPLAY_VARIABLES.fullmatch(name)]
    if not names:
        return ()
    shown = (
        names[:MOST_NAMED] if len(names) <= MOST_NAMED + 1 else [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    )
    listed = " and ".join((", ".join(shown[:-1]), shown[-1])) if len(shown) > 1 else shown[0]
    instead = f"set {'it' if len(names) == 1 else 'them'} in the command that needs it"
    if venv := left.dropped.get("VIRTUAL_ENV"):
        folder = PurePath(venv)
        folder = folder.relative_to(left.cwd) if folder.is_relative_to(left.cwd) else folder
        instead = (
            f"call its programs by their path (`{folder}/bin/python`), or activate it in the command that needs it"
        )
    return (f"{listed} hold{'s' if len(names) == 1 else ''} for this command only: {instead}.",)


def report_output(
    process: CommandProcess,
    context: ToolContext,
    *,
    exit_code: int | None,
    notes: Sequence[str] = (),
    prompt: DetectedPrompt | None = None,
    process_id: str | None = None,
) -> dict[str, Any]:
    """Return the keys common to all results, with the output so far."""
    from handrail_cli.tools.output_report import describe_outputs

    outputs = {
        stream.name: stream.kept.finish() if process_id is None else stream.kept.take(last=stream.fd is None)
        for stream in process.streams
    }
    keys, said = describe_outputs(outputs)
    report = {**keys, "exit_code": exit_code, "cwd": str(context.cwd)}
    said = [*notes, *_describe_withheld(process), *_unsettled_note(process), *said]
    if prompt is not None:
        report["prompt"] = prompt.wire()
    if process_id is not None:
        context.goes_on(lambda: process.running)
        report |= {"process_id": process_id, "pid": process.pid}
    if not said and exit_code == 0 and not any(shown.text for shown in outputs.values()):
        said = ["It printed nothing."]
    if said:
        report["note"] = " ".join(said)
    return report


def _describe_withheld(process: CommandProcess) -> Sequence[str]:
    """Say which variables of the session the command was not given, and where it failed, that PATH was shortened."""
    said: list[str] = []
    if process.launch.withheld:
        names = ", ".join(sorted(process.launch.withheld))
        why = "which a command that nobody approved may have set; give in the command what it needs (`NAME=value command`)"
        said.append(f"It ran on the host without the session's {names}, {why}.")
    if process.launch.path_shortened and process.exit_code:
        why = "nobody was asked about it" if process.launch.sandbox is None else "it may change a repository"
        said.append(f"As {why}, it ran without the folders of PATH that agents can write.")
    return said


def _unsettled_note(process: CommandProcess) -> Sequence[str]:
    """Say which setting of git keeps a repository read-only, and what to do, where a command failed."""
    sandbox = process.launch.sandbox
    if sandbox is None or not sandbox.unsettled or not process.exit_code:
        return ()
    key = sandbox.unsettled
    return (
        f"Git could not change the repository, as its setting {key!r} may have git run or obey what is in the workspace: remove it, or set it to "
        "the absolute path or the bare name of a program outside of the workspace, without words besides options.",
    )


def _find_last_program(context: ToolContext) -> str | None:
    names = [part.argv[0].rpartition("/")[2] for part in context.verdict.parts if part.argv]
    return next((name for name in reversed(names) if name[:1].isalpha() or name in ("[", "[[")), None)
