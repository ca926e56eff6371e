"""What the tests of PowerShell and cmd.exe share: circumstances on a Windows machine, and how far a command line goes there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from handrail import Decision, EvaluationContext, Opinion
from handrail_cli.shell.windows import judge_windows_command

HOME = Path(r"C:\Users\user")
WORK = Path(r"C:\Users\user\project")
JUDGING = EvaluationContext(cwd=WORK, home=HOME, user="user", environment={}, workspace=(WORK,), platform="win32")
UNIX = replace(
    JUDGING,
    cwd=Path("/home/user/project"),
    home=Path("/home/user"),
    workspace=(Path("/home/user/project"),),
    platform="linux",
)

Shell = Literal["powershell", "cmd"]


def opinion(command: str, shell: Shell, judging: EvaluationContext = JUDGING, *, stdin: str | None = None) -> Opinion:
    return judge_windows_command(command, judging, shell=shell, stdin=stdin)


def reach(command: str, shell: Shell, judging: EvaluationContext = JUDGING) -> str:
    """How far it goes: `reads` (no question), `asked`, `dangerous` (asked whatever a workspace says), `fatal`."""
    found = opinion(command, shell, judging)
    if found.catastrophic:
        return "fatal"
    if found.floor is not None:
        return "dangerous" if found.floor is Decision.CONFIRM else "refused"
    return "reads" if found.suggestion is Decision.ALLOW else "asked"


def codes(command: str, shell: Shell, judging: EvaluationContext = JUDGING) -> set[str]:
    return {reason.code for reason in opinion(command, shell, judging).reasons}
