"""Findings about a script."""

from __future__ import annotations

import re
from dataclasses import dataclass

from handrail_cli.programs.values import OperandRole, UseKind, UseNeed


@dataclass(frozen=True, slots=True)
class ScriptFinding:
    """Effects of a script. `why` continues "the script …"; `doubtful`: not understood, so nothing may be concluded."""

    kind: UseKind = "reads"
    why: str = "does something that is not known to be harmless"
    code: str | None = None
    named: tuple[tuple[OperandRole, str], ...] = ()
    needs: frozenset[UseNeed] = frozenset()
    doubtful: bool = False


READ_ONLY = ScriptFinding()
UNCLEAR = ScriptFinding(doubtful=True)
# What code does that is a reason to show it to a person, wherever in it the name stands.
ALARMING = re.compile(
    r"""(?ix) \b(system\d?|p?open[23]|popen|proc_open|passthru|(shell_)?exec([lv]p?e?|Sync|File(Sync)?)?|(posix_)?spawn(Sync|[lv]p?e?)?|fork
      |subprocess|child_process|processbuilder|dup2|qx|eval|kill)\b | \bos:cmd\b
      | rmtree|removedirs|\brm(dir)?(Sync)?\s*\(|rm_rf|remove_tree|unlink|os\.remove|file\.remove|deltree|truncate
      | urlopen|urlretrieve|\brequests\b|https?\.|\bfetch\b|open-uri|\bLWP\b|Net::HTTP|HTTP::Tiny|['"](https?|ftp|php|data)://|socket|\bcurl\b
      | create_connection|createConnection|createServer|open_connection"""
)


def is_alarming(text: str) -> bool:
    """Return True if code that is not understood names what starts programs, deletes files or reaches other machines."""
    return ALARMING.search(text) is not None


def create_dangerous_finding(why: str, code: str = "runs_program") -> ScriptFinding:
    """Return a finding for a script that the user must review."""
    return ScriptFinding("dangerous", why, code)
