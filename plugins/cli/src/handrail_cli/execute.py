"""The tool `execute_cli`: one command for bash, run to its end, its time limit or its first window."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

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
    View,
    tool,
)
from handrail.files import place_kinds
from handrail.running.processes import name_of
from handrail.sandboxing.denials import PERMISSION
from handrail_cli import family
from handrail_cli.handles import PLATFORMS

if TYPE_CHECKING:
    from handrail import Confinement, Denial
    from handrail_cli.config import AnswerRule, CliConfig
    from handrail_cli.process import Launch, Process
    from handrail_cli.processes import Processes
    from handrail_cli.prompts import Prompt
    from handrail_cli.waiting import Attention

TITLE = "Run a command"
CURE = "`handrail doctor` says how to get a sandbox that works"
# The rule of a verdict on a command that does nothing but read, and the code of a reason that its result repeats.
RULE = "shell"
INSPECTS_INSIDE = "inspects_inside"
# What a sandbox has of its own, by the same name.
ALWAYS_SHOWN = ("/dev", "/proc", "/sys", "/tmp", "/var/tmp")
# After its own time limit a call needs a moment to end what it started and to tell what was written.
CLOSING_S = 15.0
# The sizes that a terminal may have.
MOST_COLUMNS, MOST_ROWS = 1_000, 500
SIZE = re.compile(r"^[1-9]\d{0,2}x[1-9]\d{0,2}$")
MEGABYTE = 1024 * 1024
# Linux gives a program no longer argument (MAX_ARG_STRLEN, which counts the NUL at its end).
LONGEST = 131_071
# Kinds of prompts that are told of a command that ended well, too: what else it wrote last may only look like one.
PLAINLY_ASKED = frozenset(("password", "question", "key"))
# Builtins among the programs that read that can set a variable (`printf -v`, arithmetic in `[[ a -eq b=1 ]]`).
ASSIGNING = frozenset(("printf", "test", "[", "[["))
# Programs that exit with 1 to say that they found nothing, or a difference.
ONE_MEANS_NO = frozenset(
    ("grep", "egrep", "fgrep", "rg", "diff", "cmp", "pgrep", "test", "[", "[[", "which", "type", "command")
)


def _size(pty: str | None) -> str | None:
    if pty is not None and SIZE.fullmatch(pty) is None:
        raise ValueError(f"{pty!r} is no size of a terminal; give columns and rows, such as 120x40")
    return pty


def _startable(command: str) -> str:
    size = len(command.encode(errors="replace"))
    if size > LONGEST:
        raise ValueError(
            f"it has {size:,} bytes, and none of more than {LONGEST:,} can be started; write it to a file and run that"
        )
    return command


class Command(BaseModel):
    """What to run, and for how long."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    command: Annotated[str, AfterValidator(_startable), Field(min_length=1, description="A command line for bash.")]
    timeout: Annotated[float, Field(gt=0, le=86_400, description="Seconds it may take.")] = 30.0
    on_timeout: Annotated[
        Literal["stop", "background"],
        Field(description="At the time limit: stop it, or leave it running under a process_id."),
    ] = "stop"
    background: Annotated[
        bool,
        Field(description="Return at once with a process_id; for servers."),
    ] = False
    stdin: Annotated[str | None, Field(description="Its standard input, which is empty otherwise.")] = None
    cwd: Annotated[str | None, Field(description="Folder for this call only.")] = None
    pty: Annotated[
        str | None,
        AfterValidator(_size),
        Field(
            json_schema_extra={"pattern": SIZE.pattern},
            description="Columns and rows of a terminal for it, such as 120x40.",
        ),
    ] = None


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
    that open a window, and those started with `&`, go on running under a process_id.
    """
    from handrail_cli.waiting import Attention

    processes: Processes = await context.service("shell")
    rules = _rules(context)
    tells = context.sandbox is None or context.sandbox.sandbox.descriptors
    keeps = tells and not command.background and command.cwd is None and not _leaves_nothing(context)
    launch = await _launch(command, context, processes, keeps=keeps, answered=bool(rules))
    process = processes.start(launch)
    if command.background:
        return _background(process, processes, context)
    return await _foreground(Attention(process, rules), command, context, processes)


async def run_words(
    argv: Sequence[str], context: ToolContext, processes: Processes, *, timeout: float, readable: Sequence[Path]
) -> Mapping[str, Any]:
    """Run a program for another tool, as `execute_cli` runs a command; the session's folder and variables stay as they are."""
    from handrail_cli.waiting import Attention

    command = Command(command=processes.command_line(argv, context.programs), timeout=timeout)
    launch = await _launch(command, context, processes, keeps=False, answered=False)
    if context.sandbox is not None:
        launch = replace(launch, sandbox=(launch.sandbox or context.sandbox).reading(*readable))
    return await _foreground(Attention(processes.start(launch), ()), command, context, processes)


def _rules(context: ToolContext) -> Sequence[AnswerRule]:
    """The rules that answer a program of this command."""
    answers = _settings(context).answers
    if not answers:
        return ()
    called = [part.argv for part in context.verdict.parts]
    return [rule for rule in answers if any(argv[: len(rule.command)] == rule.command for argv in called)]


def _settings(context: ToolContext) -> CliConfig:
    from handrail_cli.config import CliConfig

    # Who registers the tool alone, without the plugin, has none.
    return context.config if isinstance(context.config, CliConfig) else CliConfig()


async def _launch(
    command: Command, context: ToolContext, processes: Processes, *, keeps: bool, answered: bool
) -> Launch:
    from handrail_cli.environment import in_terminal, on_desktop, system_environment, unattended
    from handrail_cli.output import PassingThrough
    from handrail_cli.process import Launch

    if "\0" in command.command:
        raise InvalidArguments("execute_cli: the command holds a NUL character, which no command can")
    bash = processes.shell(context.programs)
    if bash is None:
        raise ToolUnavailable(context.programs.why_missing("bash"), hint="install bash")
    environment = processes.host_environment(context.host_environment)
    apart = context.verdict.view in (View.SYSTEM, View.FILES)
    folder = processes.directory_for(context) if apart else _folder(command, context)
    withheld = _withheld(command.command, folder, context, processes)
    given = {name: value for name, value in context.environment.items() if name not in withheld}
    if context.sandbox is None:
        environment = on_desktop(environment, await _desktop(context))
    if apart:
        environment = system_environment(environment, given)
    terminal = _terminal(command)
    environment = unattended(environment, unset=processes.unset) if terminal is None else in_terminal(environment)
    if not apart:
        environment.update(given)
    sandbox = context.sandbox
    if sandbox is not None:
        sandbox, environment = _networked(sandbox, environment, folder, context)
    settings = _settings(context)
    return Launch(
        bash,
        command.command,
        folder,
        environment,
        stdin=None if command.stdin is None else command.stdin.encode("utf-8", "replace"),
        fed=command.background or (answered and command.stdin is None),
        terminal=terminal,
        keeps=keeps,
        open_sink=lambda: PassingThrough(context.artifacts.create()),
        on_output=context.output,
        listening=lambda: context.listening,
        sandbox=sandbox,
        limits=settings.limits,
        output_limit=settings.output_limit * MEGABYTE,
        followed=command.background,
        withheld=withheld,
    )


def _withheld(command: str, folder: Path, context: ToolContext, processes: Processes) -> frozenset[str]:
    """The session's variables that a command on the host is not given; builtins alone obey none of a program's."""
    if context.sandbox is not None or context.verdict.view is View.SHELL or not context.environment:
        return frozenset()
    from handrail_cli.withholding import withheld_variables

    own = {**context.host_environment, **processes.vouched}
    return withheld_variables(context.environment, own, command=command, folder=folder, roots=context.workspace)


def _networked(
    sandbox: Confinement, environment: Mapping[str, str], folder: Path, context: ToolContext
) -> tuple[Confinement, dict[str, str]]:
    """The sandbox and the environment with what programs need to fetch packages, or to find those that were fetched."""
    from handrail_cli.networked import fetched_before, prepare_networked, showing_registries

    reach = context.verdict.reach
    if not sandbox.hosts and (reach is None or not reach.hosts or sandbox.view is View.READ):
        return sandbox, {**environment, **fetched_before(sandbox)}
    from handrail.files.small_texts import read_small_text
    from handrail_cli.registries import Circumstances, in_virtual_environment

    home = Path(context.host_environment.get("HOME") or Path.home())
    # With the variables that hold credentials: what they say of registries is given without these.
    told = {**context.host_environment, **environment}
    around = Circumstances(told, home, (folder,), context.workspace, read_small_text)
    programs = {part.argv[0] for part in context.verdict.parts if part.argv}
    for program in programs:
        around = in_virtual_environment(program, around)
    if not sandbox.hosts:
        # It has no network yet: what it lacks is to be the person's registry, not one that it would ask without their settings.
        return showing_registries(sandbox, around), {**environment, **fetched_before(sandbox)}
    found = prepare_networked(sandbox, environment, around, {PurePath(program).name for program in programs})
    return found.sandbox, dict(found.environment)


def _terminal(command: Command) -> tuple[int, int] | None:
    if command.pty is None:
        return None
    if command.stdin is not None:
        raise InvalidArguments("execute_cli: pty and stdin exclude each other", hint="type with write_process")
    width, _, height = command.pty.partition("x")
    if int(width) > MOST_COLUMNS or int(height) > MOST_ROWS:
        raise InvalidArguments(f"execute_cli: pty is {command.pty!r}; at most {MOST_COLUMNS}x{MOST_ROWS} is there")
    return int(width), int(height)


async def _desktop(context: ToolContext) -> Desktop | None:
    try:
        return await context.desktop()
    # No screen is no reason not to run a command: it is then shown nowhere.
    except HandrailError:
        return None


def _folder(command: Command, context: ToolContext) -> Path:
    folder = context.cwd
    if command.cwd is not None:
        from handrail.files import paths

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
    context.goes_on(lambda: process.running)
    told = f"It runs in the background; read_process gives what it writes, stop_process({id!r}) ends it."
    return {
        "stdout": "",
        "stderr": "",
        "exit_code": None,
        "process_id": id,
        "pid": process.pid,
        "cwd": str(context.cwd),
        "note": " ".join((*_told_of_withheld(process), told)),
    }


async def _foreground(
    attention: Attention, command: Command, context: ToolContext, processes: Processes
) -> Mapping[str, Any]:
    from handrail_cli.waiting import until_over

    process = attention.process
    try:
        ended, window = await until_over(process, command.timeout, context, attention)
    except asyncio.CancelledError:
        from handrail_cli.process import CANCEL_S

        await processes.stop(process, patience=CANCEL_S)
        # Raises when it was the call that was stopped, and then what was written is still told.
        try:
            context.checkpoint()
        except ToolError:
            return _report(process, context, exit_code=None)
        raise
    if window is not None:
        note = f"It opened the window {window!r} and goes on running."
        return _report(process, context, exit_code=None, notes=[note], process_id=processes.keep(process))
    if not ended and (process.misses_terminal or process.holds_screen):
        return await _given_up(attention, context, processes)
    if not ended and command.on_timeout == "background":
        note = (
            f"It was not done after {command.timeout:g} s and goes on running; read_process gives what it writes next."
        )
        notes = [*_asked(attention, process.prompt), note]
        prompt = process.prompt
        kept = processes.keep(process)
        return _report(process, context, exit_code=None, notes=notes, prompt=prompt, process_id=kept)
    if not ended:
        prompt = process.prompt
        await processes.stop(process)
        return _timed_out(attention, prompt, command, context)
    if (refused := await process.give_back()) is not None:
        said = process.streams[1].kept.finish().text.strip()
        processes.finished(process)
        raise NoSandbox(f"nothing was run: {refused}: {said[:500]}", hint=CURE)
    return _ended(attention, context, processes)


def _asked(attention: Attention, prompt: Prompt | None) -> list[str]:
    """What is to be said of the questions of a command."""
    from handrail_cli.prompts import READ_KEYS

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


async def _given_up(attention: Attention, context: ToolContext, processes: Processes) -> Mapping[str, Any]:
    """Stop a command that waits for keys and has no terminal: nobody can press any."""
    prompt = attention.process.prompt
    await processes.stop(attention.process)
    error = Downstream(
        "the command was stopped: it works a whole screen until a key is pressed, and has no terminal",
        hint='run it with pty="120x40" and background=true and press keys with write_process, or use a program that needs no screen',
    )
    report = _report(attention.process, context, exit_code=None, prompt=prompt)
    return {**report, **ToolResult.failure(error, title=TITLE)}


def _timed_out(
    attention: Attention, prompt: Prompt | None, command: Command, context: ToolContext
) -> Mapping[str, Any]:
    waited = "" if prompt is None else f", waiting at {prompt.text!r}"
    error = TimedOut(
        f"the command was stopped after {command.timeout:g} s{waited}, with what could be told to be its own",
        hint='give a longer timeout, on_timeout="background", or background=true',
    )
    report = _report(attention.process, context, exit_code=None, notes=_asked(attention, prompt), prompt=prompt)
    return {**report, **ToolResult.failure(error, title=TITLE)}


def _ended(attention: Attention, context: ToolContext, processes: Processes) -> Mapping[str, Any]:
    process = attention.process
    code = process.exit_code
    assert code is not None
    prompt = attention.given_up or process.prompt
    if prompt is not None and code == 0 and attention.given_up is None and prompt.kind not in PLAINLY_ASKED:
        prompt = None
    notes = [*_asked(attention, prompt), *_keep_left(process, context, processes)]
    notes += [f"{reason.text}." for reason in context.verdict.reasons if reason.code == INSPECTS_INSIDE]
    if code == 0 and (partly := _shown_partly(context)):
        notes.append(f"The sandbox shows little or nothing of {', '.join(partly)}; list_directory shows what is there.")
    id = None
    if process.left:
        id = processes.keep(process)
        notes.append(f"Programs it started still run{_behind(process)}; stop_process({id!r}) ends them.")
    else:
        processes.finished(process)
    if (limit := _limit_reached(code, process.launch)) is not None:
        notes.append(f"It reached the limit plugins.cli.limits.{limit}.")
    if code == 1 and _last_program(context) in ONE_MEANS_NO:
        notes.append("Exit code 1 means that nothing was found, or a difference.")
        return _report(process, context, exit_code=code, notes=notes, prompt=prompt, process_id=id)
    if (hidden := _hidden_secrets(process, context)) and code != 0:
        # A search that goes past a secret has done its work; nobody is asked to show it the secret.
        notes.append(f"The sandbox hides {', '.join(hidden)}, which may hold secrets: what is in there was left out.")
        return _report(process, context, exit_code=code, notes=notes, prompt=prompt, process_id=id)
    report = _report(process, context, exit_code=code, notes=notes, prompt=prompt, process_id=id)
    if code == 0:
        return report
    if context.sandbox is not None and (denial := _denial(report, context, code)) is not None:
        return {**report, **ToolResult.failure(denial, title=TITLE)}
    told = f"signal {-code}" if code < 0 else f"exit code {code}"
    return {**report, **ToolResult.failure(Downstream(f"the command failed with {told}"), title=TITLE)}


def _hidden_secrets(process: Process, context: ToolContext) -> Sequence[str]:
    """Return the secrets that a command which only reads was refused, if it wrote something and had nothing else to complain of."""
    if context.verdict.view is not View.READ or context.sandbox is None or not process.stdout.beginning():
        return ()
    masked = context.sandbox.bounds.masked
    found: dict[str, None] = {}
    for line in process.stderr.ending().decode("utf-8", "replace").splitlines():
        names = [path.name for path in masked if path.name in line]
        if not names or PERMISSION.search(line) is None:
            return ()
        found |= dict.fromkeys(names)
    return tuple(found)


def _shown_partly(context: ToolContext) -> Sequence[str]:
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


def _limit_reached(code: int, launch: Launch) -> str | None:
    """The configured limit that a command was ended by, as far as its end tells."""
    limits = launch.limits if launch.sandbox is None else None
    if limits is None:
        return None
    # By name: Windows has neither, and no such limit is taken there.
    ended_by = {"SIGXCPU": ("cpu_seconds", limits.cpu_seconds), "SIGXFSZ": ("file_size", limits.file_size)}
    try:
        name, value = ended_by[signal.Signals(-code if code < 0 else code - 128).name]
    except (ValueError, KeyError):
        return None
    return name if value is not None else None


def _behind(process: Process) -> str:
    """Which programs moved away, and whether the command's output is still open for more."""
    told = ", ".join(f"{name_of(pid)} {pid}".strip() for pid in process.daemons)
    held = ", and its output is still open" if process.held else ""
    return f" ({told} as daemons{held})" if told else held and " (its output is still open)"


def _denial(report: Mapping[str, Any], context: ToolContext, code: int) -> SandboxDenied | None:
    """What the sandbox seems to have refused; None when it is an ordinary failure."""
    assert context.sandbox is not None
    said = f"{report['stdout']}\n{report['stderr']}"
    found = context.sandbox.denied(said, code)
    if found is None:
        return None
    hosts = _lacking_hosts(found, context.sandbox, context.verdict)
    details: dict[str, Any] = {"denied": found.what, **({"hosts": list(hosts)} if hosts else {})}
    return SandboxDenied(
        f"the command failed with exit code {code} in the sandbox: {found.text}",
        details=details,
        hint=SandboxDenied.ALLOWED_HOSTS if hosts else SandboxDenied.INSTEAD,
    )


def _lacking_hosts(found: Denial, sandbox: Confinement, verdict: Verdict) -> tuple[str, ...]:
    """Return the hosts that a person may be asked about: those that were refused, and without any network those that the program is known to use."""
    if not sandbox.sandbox.filters:
        return ()
    reach = verdict.reach if found.what == "network" and not sandbox.hosts else None
    return tuple(dict.fromkeys((*(reach.hosts if reach is not None else ()), *found.hosts)))


def _keep_left(process: Process, context: ToolContext, processes: Processes) -> list[str]:
    """Keep the shell's folder and variables for the calls that follow; what there is to say about that."""
    if not process.launch.keeps or process.exit_code is None or process.exit_code < 0:
        return []
    written = process.left_behind()
    left = None if written is None else processes.left_by(process, written)
    if left is None:
        return [] if written == b"" else ["What it left of its folder and variables could not be kept."]
    gone = left.unset - {family.MARK}
    if left.cwd == context.cwd and not left.changed and not gone:
        return []
    if not process.alone:
        return ["It ran beside another command: its folder and variables were not kept."]
    kept = {name: value for name, value in context.environment.items() if name not in gone}
    if process.launch.sandbox is None and context.verdict.view is None:
        processes.vouched = {**processes.vouched, **left.changed}
    processes.unset = (processes.unset | gone) - left.changed.keys()
    context.keep(cwd=left.cwd, environment={**kept, **left.changed})
    return []


def _report(
    process: Process,
    context: ToolContext,
    *,
    exit_code: int | None,
    notes: Sequence[str] = (),
    prompt: Prompt | None = None,
    process_id: str | None = None,
) -> dict[str, Any]:
    """The keys that every result has, with what was written so far."""
    from handrail_cli.reporting import told

    outputs = {
        stream.name: stream.kept.finish() if process_id is None else stream.kept.take(last=stream.fd is None)
        for stream in process.streams
    }
    keys, said = told(outputs)
    report = {**keys, "exit_code": exit_code, "cwd": str(context.cwd)}
    said = [*notes, *_told_of_withheld(process), *said]
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


def _told_of_withheld(process: Process) -> Sequence[str]:
    """Say which variables of the session the command was not given."""
    if not process.launch.withheld:
        return ()
    names = ", ".join(sorted(process.launch.withheld))
    why = "which may lead programs to files that nobody looked at; give in the command what it needs"
    return (f"It ran on the host without the session's {names}, {why}.",)


def _last_program(context: ToolContext) -> str | None:
    names = [part.argv[0].rpartition("/")[2] for part in context.verdict.parts if part.argv]
    return next((name for name in reversed(names) if name[:1].isalpha() or name in ("[", "[[")), None)


def _leaves_nothing(context: ToolContext) -> bool:
    """True if the shell is certainly the same afterwards: nothing runs but programs that read."""
    verdict = context.verdict
    if verdict.view in (View.SYSTEM, View.FILES):
        return True
    return verdict.rule == RULE and all(
        part.argv and part.argv[0] not in ASSIGNING and all(touch.kind == "read" for touch in part.touches)
        for part in verdict.parts
    )
