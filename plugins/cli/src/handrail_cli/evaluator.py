"""The judge of shell commands.

nothing but reading what anybody may see                   allow
an ordinary change that is understood wholly               allow in the sandbox, else confirm
what may do harm                                           confirm, each time
whatever is not understood                                 confirm
one of a small set that a yes cannot undo                  deny, in every mode
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from handrail import Decision, EvaluationContext, Evaluator, Invocation, Opinion, Reason, Run, Tool, View
from handrail.fs import path_resolution

if TYPE_CHECKING:
    from handrail_cli.shell.host_env import HostEnvironment


class ShellEvaluator(Evaluator):
    """Judges every call that runs a shell command, by the whole of what it would run."""

    name = "shell"
    reads_commands = True

    def __init__(self) -> None:
        # Found once for the circumstances of a session, until they change.
        self._around: tuple[EvaluationContext, HostEnvironment] | None = None

    def applies(self, tool: Tool) -> bool:
        """Tools that run shell commands, and those that may type them into a terminal."""
        return tool.inputs or any(
            isinstance(effect, Run) and effect.what == "shell" and effect.arg for effect in tool.effects
        )

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        """Its view of the command in the call, or of what it types into a terminal; None when there is none."""
        if judging.focus is not None and invocation.tool.inputs:
            from handrail_cli.shell.typed_input import judge_typed_keys

            return judge_typed_keys(judging.focus, judging)
        texts = _list_shell_texts(invocation)
        if not texts:
            return None
        if judging.focus is not None:
            from handrail_cli.shell.typed_input import judge_written_text

            folder = judging.focus.cwd
            return judge_written_text(judging.focus, lambda text: self._read(text, judging, folder, None))
        stdin = getattr(invocation.params, "stdin", None)
        stdin = stdin if isinstance(stdin, str) else None
        opinion = self._read("\n".join(texts), judging, _resolve_folder(invocation, judging), stdin)
        return _without_repository_changes(opinion) if _may_outlive_call(invocation) else opinion

    def _read(self, text: str, judging: EvaluationContext, cwd: PurePath, stdin: str | None) -> Opinion:
        """The opinion on one text for the shell that is used here."""
        shell = _find_shell(judging)
        # Tables and patterns of some size, which a start that runs no command has no use for.
        if shell == "powershell" or shell == "cmd":
            from handrail_cli.shell import windows

            return windows.judge_windows_command(text, judging, shell=shell, cwd=cwd, stdin=stdin)
        if shell != "bash":
            reason = Reason("other_shell", f"commands for {shell} are not analysed")
            return Opinion("shell", suggestion=Decision.CONFIRM, reasons=(reason,))
        from handrail_cli.shell.verdict import judge_line

        around = self._around
        if around is None or (around[0] is not judging and not _has_same_environment(around[0], judging)):
            from handrail_cli.shell.host_env import read_host_environment

            around = self._around = judging, read_host_environment(judging)
        return judge_line(text, judging, cwd=cwd, stdin=stdin, around=around[1])


def _find_shell(judging: EvaluationContext) -> str:
    """What reads the command. On Windows without Git's bash that is cmd.exe, as `WindowsStarter` has it."""
    if sys.platform == "win32" and judging.platform == "win32" and judging.shell == "bash":
        from handrail_cli.process.windows_start import find_git_bash

        return "bash" if find_git_bash(judging.environment, os.path.isfile) else "cmd"
    return judging.shell


def _has_same_environment(one: EvaluationContext, other: EvaluationContext) -> bool:
    """Whether two circumstances have the same surroundings."""
    return (
        one.environment == other.environment and one.workspace == other.workspace and one.protected == other.protected
    )


def _list_shell_texts(invocation: Invocation) -> list[str]:
    """The texts of a call that a shell will read."""
    values: list[Any] = [
        invocation.argument(effect)
        for effect in invocation.tool.effects
        if isinstance(effect, Run) and effect.what == "shell"
    ]
    return [value for value in values if isinstance(value, str)]


def _may_outlive_call(invocation: Invocation) -> bool:
    """Return True for a command that may go on when its call is over."""
    params = invocation.params
    return bool(getattr(params, "background", False)) or getattr(params, "on_timeout", "stop") != "stop"


def _without_repository_changes(opinion: Opinion) -> Opinion:
    """Return the opinion on a command that goes on beside others, which could lead git into its own data: it changes no repository."""
    if not opinion.changes_repositories and not opinion.steps:
        return opinion
    from handrail_cli.shell.verdict_codes import KEEPS_GIT

    told = (
        "git could not change the repository, as the command may go on in the background; run git in a call of its own"
    )
    reasons = (*opinion.reasons, Reason(KEEPS_GIT, told)) if opinion.view is View.WORK else opinion.reasons
    return replace(opinion, changes_repositories=(), steps=(), reasons=reasons)


def _resolve_folder(invocation: Invocation, judging: EvaluationContext) -> PurePath:
    given = getattr(invocation.params, "cwd", None)
    if not isinstance(given, str):
        return judging.cwd
    return path_resolution.resolve_path(given, cwd=judging.cwd, home=judging.home, platform=judging.platform).path
