"""Evaluator of shell commands, with one outcome per class of command.

only reads data that any user may see                      allow
ordinary change, completely understood                     allow in the sandbox, else confirm
potentially harmful                                        confirm, each time
not understood                                             confirm
one of a small set whose harm cannot be undone             deny, in every mode
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
    """Evaluator that judges each call running a shell command by everything the command would run."""

    name = "shell"
    reads_commands = True

    def __init__(self) -> None:
        # Found once for the circumstances of a session, until they change.
        self._around: tuple[EvaluationContext, HostEnvironment] | None = None

    def applies(self, tool: Tool) -> bool:
        """Return True for tools that run shell commands or may type them into a terminal."""
        return tool.inputs or any(
            isinstance(effect, Run) and effect.what == "shell" and effect.arg for effect in tool.effects
        )

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        """Return the opinion on the call's shell command or on what it types into a terminal; else None."""
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
        """Return the opinion on one text, read as a command for the shell in use."""
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
    """Return the name of the shell that reads the command.

    On Windows without Git's bash this is cmd.exe, consistent with `WindowsStarter`.
    """
    if sys.platform == "win32" and judging.platform == "win32" and judging.shell == "bash":
        from handrail_cli.process.windows_start import find_git_bash

        return "bash" if find_git_bash(judging.environment, os.path.isfile) else "cmd"
    return judging.shell


def _has_same_environment(one: EvaluationContext, other: EvaluationContext) -> bool:
    """Return True if two contexts have the same environment variables, workspace and protected paths."""
    return (
        one.environment == other.environment and one.workspace == other.workspace and one.protected == other.protected
    )


def _list_shell_texts(invocation: Invocation) -> list[str]:
    """Return the arguments of a call that a shell will read."""
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
    """Return the opinion on a command that may run alongside others, without any repository changes.

    A command running alongside could make git write into its own data, so git may not change a repository.
    """
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
