"""Assignments of PowerShell: what is known of a variable afterwards, and what changes by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail_cli.shell.powershell import values
from handrail_cli.shell.powershell.nodes import (
    ArrayLiteral,
    CastNode,
    IndexAccess,
    MemberAccess,
    SyntaxNode,
    VariableNode,
)
from handrail_cli.shell.powershell.values import PowerShellValue
from handrail_cli.shell.windows.findings import FindingGrade
from handrail_cli.shell.windows.path_effects import note_variable_change, note_write

if TYPE_CHECKING:
    from handrail_cli.shell.windows.powershell_analyzer import PowerShellAnalyzer

# Variables that change what commands do.
SPECIAL_VARIABLES = frozenset((
    "psdefaultparametervalues", "ofs", "executioncontext", "psmoduleautoloadingpreference", "psnativecommandargumentpassing",
))  # fmt: skip


def assign_target(shell: PowerShellAnalyzer, target: SyntaxNode, value: PowerShellValue, operator: str = "=") -> None:
    """Give a variable, a list of them, or a part of something a value."""
    match target:
        case VariableNode():
            _assign_variable(shell, target, value, operator)
        case CastNode():
            assign_target(shell, target.value, values.cast_value(target.kind, value), operator)
        case ArrayLiteral():
            for at, item in enumerate(target.items):
                assign_target(
                    shell,
                    item,
                    value.items[at]
                    if value.items is not None and at < len(value.items)
                    else PowerShellValue(marks=value.marks),
                )
        case MemberAccess() | IndexAccess():
            _assign_part(shell, target, value)
        case _:
            shell.value(target)


def _assign_variable(shell: PowerShellAnalyzer, target: VariableNode, value: PowerShellValue, operator: str) -> None:
    drive, colon, rest = target.name.partition(":")
    if colon and drive == "env":
        note_variable_change(shell.case, rest, target.span)
        return
    if colon:
        note_write(shell.case, f"{drive}:{rest}", target.span)
        return
    if target.name in SPECIAL_VARIABLES and target.name != "ofs":
        shell.case.add(FindingGrade.DANGEROUS, "redefines", f"${target.name} changes what commands do", target.span)
    if operator == "+=":
        value = values.apply_operator("+", shell.variable(target.name, target.span), value)
    elif operator != "=":
        value = PowerShellValue(marks=value.marks)
    shell.scope[target.name] = value


def _assign_part(shell: PowerShellAnalyzer, target: MemberAccess | IndexAccess, value: PowerShellValue) -> None:
    """Judge an assignment to a property or an entry.

    It is harmless on a value the text created itself, else a change of something unknown.
    """
    holder = shell.value(target.target)
    if isinstance(target, IndexAccess):
        shell.value(target.index)
    root = target.target
    while isinstance(root, MemberAccess | IndexAccess):
        root = root.target
    if isinstance(root, VariableNode):
        if root.name in SPECIAL_VARIABLES:
            shell.case.add(FindingGrade.DANGEROUS, "redefines", f"${root.name} changes what commands do", target.span)
        own = root.name in shell.scope and (
            holder.table is not None or holder.items is not None or holder.kind in ("hashtable", "object")
        )
        shell.scope[root.name] = PowerShellValue(marks=holder.marks | value.marks, kind=holder.kind)
        if own:
            return
    shell.case.add(
        FindingGrade.UNKNOWN, "sets_property", "it changes a property of something that is not known", target.span
    )
