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

from handrail import Decision, Evaluator, Invocation, Judging, Opinion, Reason, Run, Tool, View
from handrail.files import paths

if TYPE_CHECKING:
    from handrail_cli.surroundings import Surroundings


class ShellEvaluator(Evaluator):
    """Judges every call that runs a shell command, by the whole of what it would run."""

    name = "shell"
    reads_commands = True

    def __init__(self) -> None:
        # Found once for the circumstances of a session, until they change.
        self._around: tuple[Judging, Surroundings] | None = None

    def applies(self, tool: Tool) -> bool:
        """Tools that run shell commands, and those that may type them into a terminal."""
        return tool.inputs or any(
            isinstance(effect, Run) and effect.what == "shell" and effect.arg for effect in tool.effects
        )

    async def opinion(self, invocation: Invocation, judging: Judging) -> Opinion | None:
        """Its view of the command in the call, or of what it types into a terminal; None when there is none."""
        if judging.focus is not None and invocation.tool.inputs:
            from handrail_cli.typed import judge_typed

            return judge_typed(judging.focus, judging)
        texts = _shell_texts(invocation)
        if not texts:
            return None
        if judging.focus is not None:
            from handrail_cli.typed import judge_written

            folder = judging.focus.cwd
            return judge_written(judging.focus, lambda text: self._read(text, judging, folder, None))
        stdin = getattr(invocation.params, "stdin", None)
        stdin = stdin if isinstance(stdin, str) else None
        opinion = self._read("\n".join(texts), judging, _folder(invocation, judging), stdin)
        return _leaving_repositories(opinion) if _stays(invocation) else opinion

    def _read(self, text: str, judging: Judging, cwd: PurePath, stdin: str | None) -> Opinion:
        """The opinion on one text for the shell that is used here."""
        shell = _shell(judging)
        # Tables and patterns of some size, which a start that runs no command has no use for.
        if shell == "powershell" or shell == "cmd":
            from handrail_cli import windows

            return windows.judge(text, judging, shell=shell, cwd=cwd, stdin=stdin)
        if shell != "bash":
            reason = Reason("other_shell", f"commands for {shell} are not analysed")
            return Opinion("shell", suggestion=Decision.CONFIRM, reasons=(reason,))
        from handrail_cli.judgement import judge

        around = self._around
        if around is None or (around[0] is not judging and not _alike(around[0], judging)):
            from handrail_cli.surroundings import surroundings

            around = self._around = judging, surroundings(judging)
        return judge(text, judging, cwd=cwd, stdin=stdin, around=around[1])


def _shell(judging: Judging) -> str:
    """What reads the command. On Windows without Git's bash that is cmd.exe, as `WindowsStarter` has it."""
    if sys.platform == "win32" and judging.platform == "win32" and judging.shell == "bash":
        from handrail_cli.windows_start import find_bash

        return "bash" if find_bash(judging.environment, os.path.isfile) else "cmd"
    return judging.shell


def _alike(one: Judging, other: Judging) -> bool:
    """Whether two circumstances have the same surroundings."""
    return (
        one.environment == other.environment and one.workspace == other.workspace and one.protected == other.protected
    )


def _shell_texts(invocation: Invocation) -> list[str]:
    """The texts of a call that a shell will read."""
    values: list[Any] = [
        invocation.argument(effect)
        for effect in invocation.tool.effects
        if isinstance(effect, Run) and effect.what == "shell"
    ]
    return [value for value in values if isinstance(value, str)]


def _stays(invocation: Invocation) -> bool:
    """Return True for a command that may go on when its call is over."""
    params = invocation.params
    return bool(getattr(params, "background", False)) or getattr(params, "on_timeout", "stop") != "stop"


def _leaving_repositories(opinion: Opinion) -> Opinion:
    """Return the opinion on a command that goes on beside others, which could lead git into its own data: it changes no repository."""
    if not opinion.changes_repositories and not opinion.steps:
        return opinion
    from handrail_cli.verdict_codes import KEEPS_GIT

    told = (
        "git could not change the repository, as the command may go on in the background; run git in a call of its own"
    )
    reasons = (*opinion.reasons, Reason(KEEPS_GIT, told)) if opinion.view is View.WORK else opinion.reasons
    return replace(opinion, changes_repositories=(), steps=(), reasons=reasons)


def _folder(invocation: Invocation, judging: Judging) -> PurePath:
    given = getattr(invocation.params, "cwd", None)
    if not isinstance(given, str):
        return judging.cwd
    return paths.resolve(given, cwd=judging.cwd, home=judging.home, platform=judging.platform).path
