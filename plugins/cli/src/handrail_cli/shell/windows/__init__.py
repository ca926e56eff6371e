"""Judging of command lines for PowerShell and cmd.exe.

shell.powershell, shell.cmd                       parse a text
powershell_analyzer, cmd_analyzer                 walk over all that may run, with what can be known of its words
cmdlet_rules, cmdlet_handlers, member_access      say what a cmdlet, or a member of .NET, comes to
program_analyzer, program_rules, portable_programs say what a program comes to
cmdlet_table, program_table, powershell.dotnet    hold what is known of them, as data: nothing else is let pass
path_effects, findings                            say what a place is, and what all that was found comes to
"""

from __future__ import annotations

import re
from pathlib import PurePath, PureWindowsPath
from typing import Literal

from handrail import EvaluationContext, Opinion
from handrail_cli.shell.windows.findings import AnalysisExhausted, FindingGrade, LineEvaluation, create_opinion

MAX_LENGTH = 10_000
CONFUSABLE_CHARS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ue000-\uf8ff\ufeff\U000e0000-\U000e007f]"
)

__all__ = ["judge_windows_command"]


def judge_windows_command(
    text: str,
    judging: EvaluationContext,
    *,
    shell: Literal["powershell", "cmd"],
    cwd: PurePath | None = None,
    stdin: str | None = None,
) -> Opinion:
    """Return the opinion on one command line for PowerShell or cmd.exe, run in `cwd` (default: the session's)."""
    folder = cwd if cwd is not None else judging.cwd
    case = LineEvaluation(judging, PureWindowsPath(str(folder)) if judging.platform == "win32" else folder, stdin=stdin)
    if len(text) > MAX_LENGTH:
        case.unread("too_long", f"the command is longer than {MAX_LENGTH} characters")
        return create_opinion(case)
    if (strange := CONFUSABLE_CHARS.search(text)) is not None:
        case.add(
            FindingGrade.DANGEROUS,
            "strange_character",
            f"it holds the character U+{ord(strange[0]):04X}",
            strange.span(),
        )
    try:
        if shell == "cmd":
            from handrail_cli.shell.windows.cmd_analyzer import judge_cmd_text

            judge_cmd_text(case, text)
        else:
            from handrail_cli.shell.windows.powershell_analyzer import judge_powershell_text as judge_powershell

            judge_powershell(case, text)
    except AnalysisExhausted as exc:
        case.unread(exc.code, str(exc))
    except RecursionError:
        case.unread("too_deep", "it is nested deeper than is analysed")
    return create_opinion(case)
