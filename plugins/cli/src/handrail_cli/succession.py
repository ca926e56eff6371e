"""Which commands of a line run only where an earlier one has succeeded: `make` in `cd build && make`."""

from __future__ import annotations

import re

from handrail_cli.commandline import Analysis

# What may stand between two commands beside what joins them: redirections, and nothing that groups, quotes or comments. In `cd a &> b && c` a
# shell other than bash leaves the `cd` in the background.
REST = r"(?:[^;&|\n(){}`$\"'#\\]|>&)*"
AND = re.compile(rf"{REST}&&\s*")
PIPE = re.compile(rf"{REST}\|&?\s*")
NEW = re.compile(rf"{REST}[;\n][ \t\n(]*")
FIRST = re.compile(r"[\s(]*")


def succession(analysis: Analysis, number: int) -> range:
    """The commands right behind one that run only when it has succeeded, by number. None of them where that is not plain to see."""
    last = number
    if _stands_alone(analysis, number) and _joined(analysis, number + 1, AND):
        last += 1
        while _joined(analysis, last + 1, AND) or _joined(analysis, last + 1, PIPE):
            last += 1
    return range(number + 1, last + 1)


def _stands_alone(analysis: Analysis, number: int) -> bool:
    """Whether a command is in no pipeline before it, and only `&&` and `|` are between it and the beginning of its statement."""
    if analysis.opaque or analysis.functions:
        return False
    if _begins(analysis, number):
        return True
    if not _joined(analysis, number, AND):
        return False
    number -= 1
    while not _begins(analysis, number):
        if not (_joined(analysis, number, AND) or _joined(analysis, number, PIPE)):
            return False
        number -= 1
    return True


def _begins(analysis: Analysis, number: int) -> bool:
    """Whether a statement begins with a command."""
    if number == 0:
        return FIRST.fullmatch(analysis.text, 0, analysis.commands[0].span[0]) is not None
    return _joined(analysis, number, NEW)


def _joined(analysis: Analysis, number: int, joint: re.Pattern[str]) -> bool:
    """Whether this stands between a command and the one before it."""
    gap = _gap(analysis, number)
    return gap is not None and joint.fullmatch(gap) is not None


def _gap(analysis: Analysis, number: int) -> str | None:
    """The text between a command and the one before it; None where there is none, or one stands in the other."""
    if not 0 < number < len(analysis.commands):
        return None
    start, end = analysis.commands[number - 1].span[1], analysis.commands[number].span[0]
    return analysis.text[start:end] if start <= end else None
