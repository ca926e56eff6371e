"""Steps of a line that changes a repository and other files.

Each step runs in its own shell and sandbox, which lets only git write `.git`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from handrail import CommandStep
from handrail_cli.shell.bash.line_parser import parse_line, parse_text
from handrail_cli.shell.bash.syntax import ParsedLine
from handrail_cli.shell.bash.variable_rules import strip_subscript
from handrail_cli.shell.bash_builtins import BUILTINS
from handrail_cli.shell.repository_changes import RepositoryChanges

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_STEPS = 12
# Builtins with rules of their own that leave nothing to the commands behind but the folder, which goes from step to step.
WITHOUT_STATE = frozenset(("cd", "true", "false", ":"))
# Text that depends on the state of one shell, or changes it: the exit code, jobs, the previous folder, a value, the shell's end.
OF_ONE_SHELL = re.compile(
    r"\$\{?[#!]?[?!$_-]|\bBASH|\b(?:PIPESTATUS|LINENO|SECONDS|OLDPWD|REPLY)\b|~[-+]|\(\(|\$\[|printf\s+-v"
    r"|\$\{\w+(?:\[|:?[=?]|:[^-+])"
)
JOINT_OPERATORS = {"&&": "&&", "||": "||", ";": ";", "": ";"}


@dataclass(frozen=True, slots=True)
class _LineSegment:
    """A statement of a line, or a part of it between `&&` and `||`; `operator` joins it to the one before."""

    start: int
    end: int
    operator: str


def plan_line_steps(
    analysis: ParsedLine,
    folders: Sequence[PurePath],
    variables: Mapping[str, str],
    environment: Container[str],
    weigh: Callable[[ParsedLine, Sequence[PurePath]], tuple[RepositoryChanges, Sequence[PurePath]]],
) -> tuple[CommandStep, ...]:
    """Return the steps of a line in which git works beside what else changes files; empty where it cannot be taken apart.

    `weigh` gives the repositories that a part of the line works on, run in one of some folders, and the folders that it ends in. A step is as
    long as nothing else in it has to be kept from `.git`. The steps do what the line does: none sets a variable, a function or an option that
    another may use.
    """
    segments = _split_segments(analysis)
    parts = [parse_line(analysis.text[each.start : each.end], variables=variables) for each in segments]
    if not 1 < len(segments) <= MOST_STEPS or _is_state_shared(analysis, parts, variables, environment):
        return ()
    steps: list[CommandStep] = []
    start = 0
    for segment, part in zip(segments, parts, strict=True):
        histories, folders = weigh(part, folders)
        if histories.refused:
            return ()
        changed = histories.changed
        # Where the step before may be left out, only what would be left out with it belongs to it.
        if steps and steps[-1].changes_repositories == changed and steps[-1].operator in (";", segment.operator):
            steps[-1] = replace(steps[-1], text=analysis.text[start : segment.end])
        else:
            start = segment.start
            steps.append(CommandStep(analysis.text[start : segment.end], segment.operator, changed))
    return tuple(steps)


def explain_kept_repository(places: Iterable[str]) -> str:
    """Return the note on a line that was run undivided although it was to change these repositories."""
    named = ", ".join(map(repr, places))
    return f"git could not change {named} beside what else changes files; run git in a call of its own"


def _split_segments(analysis: ParsedLine) -> Sequence[_LineSegment]:
    """Return the parts of a line between `&&`, `||`, `;` and line ends, none of them in another; empty where the line is not plainly such a list."""
    if analysis.opaque or analysis.functions:
        return ()
    found = list(_iter_segments(parse_text(analysis.text), analysis.text))
    return () if any(segment is None for segment in found) else [segment for segment in found if segment is not None]


def _iter_segments(node: Node, text: str) -> Iterator[_LineSegment | None]:
    """Yield the parts below a node; None in place of anything but a list."""
    operator = ";"
    for child in node.children:
        if child.type in JOINT_OPERATORS:
            operator = JOINT_OPERATORS[child.type]
        elif (inner := _find_list(child)) is not None:
            *others, last = _iter_segments(inner, text)
            whole = [*others, None if last is None else replace(last, end=child.end_byte)]
            yield None if whole[0] is None else replace(whole[0], operator=operator)
            yield from whole[1:]
            operator = ";"
        elif child.is_named and child.type != "comment":
            yield _LineSegment(child.start_byte, child.end_byte, operator)
            operator = ";"
        elif child.type != "comment" and text[child.start_byte : child.end_byte].strip():
            yield None


def _find_list(node: Node) -> Node | None:
    """Return the list that a statement is, or None.

    If the redirections of a list's last part make it a redirected statement, return the list: the parser assigns them
    to the entire list.
    """
    if node.type == "redirected_statement" and node.children:
        node = node.children[0]
    return node if node.type == "list" else None


def _is_state_shared(
    analysis: ParsedLine, parts: Sequence[ParsedLine], variables: Container[str], environment: Container[str]
) -> bool:
    """Return True if a part may leave something to another in the shell, or if the parts read otherwise than the line."""
    if OF_ONE_SHELL.search(analysis.text) or any(part.opaque or part.functions for part in parts):
        return True
    if any(command.guess and command.guess[0] in BUILTINS.keys() - WITHOUT_STATE for command in analysis.commands):
        return True
    if [command.guess for command in analysis.commands] != [
        command.guess for part in parts for command in part.commands
    ]:
        return True
    # Variables of a loop, as long as no program is given them and no other part names them.
    assigned = [(strip_subscript(name), part) for part in parts for name, _ in part.assigned]
    return any(
        name in variables or name in environment or any(name in other.text for other in parts if other is not part)
        for name, part in assigned
    )
