"""Judging command lines for PowerShell and cmd.exe.

powershell_parser, cmd_parser            text to what it consists of
powershell, cmd                          a walk over all that may run, with what can be known of its words
commandlets, structural, members         what a cmdlet, or a member of .NET, comes to
programs, rules, every_system             what a program comes to
cmdlets, program_data, dotnet            what is known of them, as data: nothing else is let pass
places, findings                         what a place is, and what all that was found comes to
"""

from __future__ import annotations

import re
from pathlib import PurePath, PureWindowsPath
from typing import Literal

from handrail import Judging, Opinion
from handrail_cli.windows.findings import Case, Exhausted, Grade, opinion

MAX_LENGTH = 10_000
STRANGE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ue000-\uf8ff\ufeff\U000e0000-\U000e007f]"
)

__all__ = ["judge"]


def judge(
    text: str,
    judging: Judging,
    *,
    shell: Literal["powershell", "cmd"],
    cwd: PurePath | None = None,
    stdin: str | None = None,
) -> Opinion:
    """The opinion on one command line for PowerShell or cmd.exe, run in `cwd` (default: the session's)."""
    folder = cwd if cwd is not None else judging.cwd
    case = Case(judging, PureWindowsPath(str(folder)) if judging.platform == "win32" else folder, stdin=stdin)
    if len(text) > MAX_LENGTH:
        case.unread("too_long", f"the command is longer than {MAX_LENGTH} characters")
        return opinion(case)
    if (strange := STRANGE.search(text)) is not None:
        case.add(
            Grade.DANGEROUS, "strange_character", f"it holds the character U+{ord(strange[0]):04X}", strange.span()
        )
    try:
        if shell == "cmd":
            from handrail_cli.windows.cmd import judge_text

            judge_text(case, text)
        else:
            from handrail_cli.windows.powershell import judge_text as judge_powershell

            judge_powershell(case, text)
    except Exhausted as exc:
        case.unread(exc.code, str(exc))
    except RecursionError:
        case.unread("too_deep", "it is nested deeper than is analysed")
    return opinion(case)
