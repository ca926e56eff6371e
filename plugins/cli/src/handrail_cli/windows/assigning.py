"""Assignments of PowerShell: what is known of a variable afterwards, and what changes by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail_cli.windows import powershell_values as values
from handrail_cli.windows.findings import Grade
from handrail_cli.windows.places import sets_variable, writes
from handrail_cli.windows.powershell_nodes import Cast, Index, Listed, Member, Node, Variable
from handrail_cli.windows.powershell_values import Value

if TYPE_CHECKING:
    from handrail_cli.windows.powershell import Shell

# Variables that change what commands do.
TELLING_VARIABLES = frozenset((
    "psdefaultparametervalues", "ofs", "executioncontext", "psmoduleautoloadingpreference", "psnativecommandargumentpassing",
))  # fmt: skip


def assign(shell: Shell, target: Node, value: Value, operator: str = "=") -> None:
    """Give a variable, a list of them, or a part of something a value."""
    match target:
        case Variable():
            _assign_variable(shell, target, value, operator)
        case Cast():
            assign(shell, target.value, values.cast(target.kind, value), operator)
        case Listed():
            for at, item in enumerate(target.items):
                assign(
                    shell,
                    item,
                    value.items[at] if value.items is not None and at < len(value.items) else Value(marks=value.marks),
                )
        case Member() | Index():
            _assign_part(shell, target, value)
        case _:
            shell.value(target)


def _assign_variable(shell: Shell, target: Variable, value: Value, operator: str) -> None:
    drive, colon, rest = target.name.partition(":")
    if colon and drive == "env":
        sets_variable(shell.case, rest, target.span)
        return
    if colon:
        writes(shell.case, f"{drive}:{rest}", target.span)
        return
    if target.name in TELLING_VARIABLES and target.name != "ofs":
        shell.case.add(Grade.DANGEROUS, "redefines", f"${target.name} changes what commands do", target.span)
    if operator == "+=":
        value = values.binary("+", shell.variable(target.name, target.span), value)
    elif operator != "=":
        value = Value(marks=value.marks)
    shell.scope[target.name] = value


def _assign_part(shell: Shell, target: Member | Index, value: Value) -> None:
    """A property or an entry: harmless on what the text made itself, else a change of something unseen."""
    holder = shell.value(target.target)
    if isinstance(target, Index):
        shell.value(target.index)
    root = target.target
    while isinstance(root, Member | Index):
        root = root.target
    if isinstance(root, Variable):
        if root.name in TELLING_VARIABLES:
            shell.case.add(Grade.DANGEROUS, "redefines", f"${root.name} changes what commands do", target.span)
        own = root.name in shell.scope and (
            holder.table is not None or holder.items is not None or holder.kind in ("hashtable", "object")
        )
        shell.scope[root.name] = Value(marks=holder.marks | value.marks, kind=holder.kind)
        if own:
            return
    shell.case.add(Grade.UNKNOWN, "sets_property", "it changes a property of something that is not known", target.span)
