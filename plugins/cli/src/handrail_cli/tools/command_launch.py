"""Preparation of a command: its folder, environment, sandbox and limits, from its parameters and the session."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from handrail import (
    Desktop,
    HandrailError,
    InvalidArguments,
    NotFound,
    ToolContext,
    ToolUnavailable,
    View,
)
from handrail.sandbox.repositories import find_single_repository
from handrail_cli.shell.verdict_codes import SHELL_RULE
from handrail_cli.tools.command_params import MOST_COLUMNS, MOST_ROWS, CommandParams

if TYPE_CHECKING:
    from handrail import CommandStep, Confinement
    from handrail_cli.process.command_process import LaunchRequest
    from handrail_cli.process.config import AnswerRule, CliConfig, HostLimits
    from handrail_cli.tools.session_processes import SessionProcesses

MEGABYTE = 1024 * 1024
# Builtins among the programs that read that can set a variable (`printf -v`, arithmetic in `[[ a -eq b=1 ]]`).
ASSIGNING_BUILTINS = frozenset(("printf", "test", "[", "[["))


def find_answer_rules(context: ToolContext) -> Sequence[AnswerRule]:
    """Return the rules that answer a program of this command."""
    answers = get_cli_settings(context).answers
    if not answers:
        return ()
    called = [part.argv for part in context.verdict.parts]
    return [rule for rule in answers if any(argv[: len(rule.command)] == rule.command for argv in called)]


def get_cli_settings(context: ToolContext) -> CliConfig:
    """Return the settings of the plugin."""
    from handrail_cli.process.config import CliConfig

    # Who registers the tool alone, without the plugin, has none.
    return context.config if isinstance(context.config, CliConfig) else CliConfig()


async def prepare_launch(
    command: CommandParams,
    context: ToolContext,
    processes: SessionProcesses,
    *,
    keeps: bool,
    answered: bool,
    step: CommandStep | None = None,
    folder: Path | None = None,
) -> LaunchRequest:
    """Return what to start for a command, or for one `step` of it in a `folder`.

    Raises `InvalidArguments` for a command that cannot be started, `ToolUnavailable` without bash, and `NotFound` without its folder.
    """
    from handrail_cli.process.command_process import LaunchRequest
    from handrail_cli.process.environment import (
        add_terminal,
        create_system_environment,
        make_unattended,
        point_to_desktop,
    )
    from handrail_cli.process.output_capture import UncachedFileSink

    if "\0" in command.command:
        raise InvalidArguments("execute_cli: the command holds a NUL character, which no command can")
    bash = processes.shell(context.programs)
    if bash is None:
        raise ToolUnavailable(context.programs.why_missing("bash"), hint="install bash")
    builtins_only = context.sandbox is None and context.verdict.view is View.SHELL
    base = processes.visible_environment if builtins_only else processes.host_environment
    environment = base(context.host_environment)
    apart = context.verdict.view in (View.SYSTEM, View.FILES)
    folder = folder or (processes.directory_for(context) if apart else _resolve_folder(command, context))
    withheld = _find_withheld_variables(command.command, context, processes)
    given = {name: value for name, value in context.environment.items() if name not in withheld}
    if context.sandbox is None and not builtins_only:
        environment = point_to_desktop(environment, await _find_desktop(context))
    if apart:
        environment = create_system_environment(environment, given)
    terminal = _parse_terminal_size(command)
    environment = make_unattended(environment, unset=processes.unset) if terminal is None else add_terminal(environment)
    if not apart:
        environment.update(given)
    search_path = environment.get("PATH")
    if search_path is not None and await _should_shorten_path(context):
        environment["PATH"] = context.programs.searched(search_path)
    sandbox, changes = context.sandbox, context.verdict.changes_repositories
    if sandbox is not None and step is not None:
        sandbox, changes = sandbox.changing_repository(step.changes_repositories), step.changes_repositories
    if sandbox is not None and (changed := find_single_repository(changes)) is not None:
        from handrail_cli.process.history_environment import create_history_environment

        environment = create_history_environment(
            environment,
            changed,
            context.programs,
            settings=sandbox.confines.git_settings,
            used=[Path(git).parent for git in changes],
            writable=sandbox.writable,
        )
    path_shortened = environment.get("PATH") != search_path
    if sandbox is not None:
        sandbox, environment = _apply_network_setup(sandbox, environment, folder, context)
    settings = get_cli_settings(context)
    if sandbox is not None:
        await sandbox.wait_to_begin()
    return LaunchRequest(
        bash,
        command.command if step is None else step.text,
        folder,
        environment,
        stdin=None if command.stdin is None else command.stdin.encode(errors="surrogateescape"),
        fed=command.background or (answered and command.stdin is None),
        terminal=terminal,
        keeps=keeps,
        open_sink=lambda: UncachedFileSink(context.artifacts.create()),
        on_output=context.output,
        listening=lambda: context.listening,
        sandbox=sandbox,
        limits=_without_files(settings.limits) if apart else settings.limits,
        output_limit=settings.output_limit * MEGABYTE,
        followed=command.background,
        withheld=withheld,
        path_shortened=path_shortened,
    )


def _without_files(limits: HostLimits) -> HostLimits:
    """Return the limits of a command that only inspects: programs such as `sort` cannot spill what they were given into files of the host."""
    return limits if sys.platform == "win32" else limits.model_copy(update={"file_size": 0})


async def _should_shorten_path(context: ToolContext) -> bool:
    """Return True for a command on the host that runs without approval.

    Programs that sandboxed commands have put on PATH are not for it. A command that runs code of the workspace by a
    rule, or in permissive mode, gets PATH unchanged: misleading it requires no such program.
    """
    verdict = context.verdict
    if context.sandbox is not None or verdict.view is not None or verdict.approved is not None:
        return False
    if any(part.obeys_workspace for part in verdict.parts):
        return False
    # Where there is none, a grant may be for what runs the workspace's code, too.
    return (await context.session.runtime.sandbox()).sandbox is not None


def _find_withheld_variables(command: str, context: ToolContext, processes: SessionProcesses) -> frozenset[str]:
    """Return the session's variables withheld from a command on the host; builtins alone obey no such variables."""
    if context.sandbox is not None or context.verdict.view is View.SHELL or not context.environment:
        return frozenset()
    from handrail_cli.process.withheld_variables import find_withheld_variables

    own = {**context.host_environment, **processes.vouched}
    inspects = context.verdict.view in (View.SYSTEM, View.FILES)
    return find_withheld_variables(context.environment, own, command=command, gives_tame=inspects)


def _apply_network_setup(
    sandbox: Confinement, environment: Mapping[str, str], folder: Path, context: ToolContext
) -> tuple[Confinement, dict[str, str]]:
    """Return the sandbox and the environment with what programs need to fetch packages, or to find those fetched."""
    from handrail_cli.tools.network_setup import find_cache_variables, prepare_networked_sandbox, show_registries

    reach = context.verdict.reach
    if not sandbox.hosts and (reach is None or not reach.hosts or sandbox.view is View.READ):
        return sandbox, {**environment, **find_cache_variables(sandbox)}
    from handrail.fs.small_files import read_small_text
    from handrail_cli.shell.package_sources import RegistryLookup, enter_virtual_environment

    home = Path(context.host_environment.get("HOME") or Path.home())
    # With the variables that hold credentials: what they say of registries is given without these.
    told = {**context.host_environment, **environment}
    around = RegistryLookup(told, home, (folder,), context.workspace, read_small_text)
    programs = {part.argv[0] for part in context.verdict.parts if part.argv}
    for program in programs:
        around = enter_virtual_environment(program, around)
    if not sandbox.hosts:
        # It has no network yet: what it lacks is to be the person's registry, not one that it would ask without their settings.
        return show_registries(sandbox, around), {**environment, **find_cache_variables(sandbox)}
    found = prepare_networked_sandbox(sandbox, environment, around, {PurePath(program).name for program in programs})
    return found.sandbox, dict(found.environment)


def _parse_terminal_size(command: CommandParams) -> tuple[int, int] | None:
    if command.pty is None:
        return None
    if command.stdin is not None:
        raise InvalidArguments("execute_cli: pty and stdin exclude each other", hint="type with write_process")
    width, _, height = command.pty.partition("x")
    if int(width) > MOST_COLUMNS or int(height) > MOST_ROWS:
        raise InvalidArguments(f"execute_cli: pty is {command.pty!r}; at most {MOST_COLUMNS}x{MOST_ROWS} is there")
    return int(width), int(height)


async def _find_desktop(context: ToolContext) -> Desktop | None:
    try:
        return await context.desktop()
    # No screen is no reason not to run a command: it is then shown nowhere.
    except HandrailError:
        return None


def _resolve_folder(command: CommandParams, context: ToolContext) -> Path:
    folder = context.cwd
    if command.cwd is not None:
        from handrail.fs import path_resolution

        home = Path(context.host_environment.get("HOME") or Path.home())
        found = path_resolution.resolve_path(command.cwd, cwd=context.cwd, home=home)
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


def is_state_unchanged(context: ToolContext) -> bool:
    """Return True if the shell is certainly unchanged afterwards: only programs that read are run."""
    verdict = context.verdict
    if verdict.view in (View.SYSTEM, View.FILES):
        return True
    return verdict.rule == SHELL_RULE and all(
        part.argv and part.argv[0] not in ASSIGNING_BUILTINS and all(touch.kind == "read" for touch in part.touches)
        for part in verdict.parts
    )
