"""Commands of a line that run only if an earlier one has succeeded: `make` in `cd build && make`."""

from __future__ import annotations

import re

from handrail_cli.shell.bash.syntax import ParsedLine

# What may stand between two commands beside what joins them: redirections, and nothing that groups, quotes or comments. In `cd a &> b && c` a
# shell other than bash leaves the `cd` in the background.
PLAIN_REST = r"(?:[^;&|\n(){}`$\"'#\\]|>&)*"
AND_JOINT = re.compile(rf"{PLAIN_REST}&&\s*")
PIPE_JOINT = re.compile(rf"{PLAIN_REST}\|&?\s*")
STATEMENT_START = re.compile(rf"{PLAIN_REST}[;\n][ \t\n(]*")
LINE_START = re.compile(r"[\s(]*")


def find_dependent_commands(analysis: ParsedLine, number: int) -> range:
    """Return the indices of the commands right after a given one that run only if it has succeeded.

    Empty if this is not evident.
    """
    last = number
    if _is_outside_pipeline(analysis, number) and _is_joined_by(analysis, number + 1, AND_JOINT):
        last += 1
        while _is_joined_by(analysis, last + 1, AND_JOINT) or _is_joined_by(analysis, last + 1, PIPE_JOINT):
            last += 1
    return range(number + 1, last + 1)


def _is_outside_pipeline(analysis: ParsedLine, number: int) -> bool:
    """Return True if a command is in no pipeline with earlier commands.

    Only `&&` and `|` may be between it and the beginning of its statement.
    """
    if analysis.opaque or analysis.functions:
        return False
    if _begins_statement(analysis, number):
        return True
    if not _is_joined_by(analysis, number, AND_JOINT):
        return False
    number -= 1
    while not _begins_statement(analysis, number):
        if not (_is_joined_by(analysis, number, AND_JOINT) or _is_joined_by(analysis, number, PIPE_JOINT)):
            return False
        number -= 1
    return True


def _begins_statement(analysis: ParsedLine, number: int) -> bool:
    """Return True if a statement begins with a command."""
    if number == 0:
        return LINE_START.fullmatch(analysis.text, 0, analysis.commands[0].span[0]) is not None
    return _is_joined_by(analysis, number, STATEMENT_START)


def _is_joined_by(analysis: ParsedLine, number: int, joint: re.Pattern[str]) -> bool:
    """Return True if `joint` matches the text between a command and the one before it."""
    gap = _find_gap(analysis, number)
    return gap is not None and joint.fullmatch(gap) is not None


def _find_gap(analysis: ParsedLine, number: int) -> str | None:
    """Return the text between a command and the one before it.

    None for the first command, or if one of the two contains the other.
    """
    if not 0 < number < len(analysis.commands):
        return None
    start, end = analysis.commands[number - 1].span[1], analysis.commands[number].span[0]
    return analysis.text[start:end] if start <= end else None
