"""Binding of a cmdlet's arguments to its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handrail_cli.shell.powershell import values
from handrail_cli.shell.powershell.nodes import (
    CommandNode,
    CommandParameter,
    SyntaxNode,
    VariableNode,
    VerbatimArguments,
)
from handrail_cli.shell.powershell.values import UNKNOWN_VALUE, PowerShellValue, create_known_value
from handrail_cli.shell.windows.cmdlet_table import CmdletParameter, CmdletSpec
from handrail_cli.shell.windows.findings import Span

if TYPE_CHECKING:
    from handrail_cli.shell.windows.powershell_analyzer import PowerShellAnalyzer

FALSE_VALUES = frozenset(("false", "0", ""))


@dataclass(slots=True)
class BoundArguments:
    """The arguments of a cmdlet by parameter. `words` are its words with the names of parameters written out."""

    given: dict[str, list[PowerShellValue]] = field(default_factory=dict[str, list[PowerShellValue]])
    kinds: dict[str, CmdletParameter] = field(default_factory=dict[str, CmdletParameter])
    spans: dict[str, Span] = field(default_factory=dict[str, Span])
    words: list[str] = field(default_factory=list[str])
    odd: bool = False

    @property
    def varies(self) -> bool:
        """Return True if an argument is not constant."""
        given = (item for several in self.given.values() for value in several for item in values.flatten_value(value))
        return any(item.text is None and item.block is None for item in given)

    def on(self, name: str) -> bool:
        """Return True if a switch is set."""
        return any(value.text is None or value.text.lower() not in FALSE_VALUES for value in self.given.get(name, ()))

    def one(self, name: str) -> PowerShellValue | None:
        """Return the value of a parameter; several values as one list, None without any."""
        found = self.given.get(name)
        return None if not found else found[0] if len(found) == 1 else values.create_list(found)


def bind_arguments(shell: PowerShellAnalyzer, cmdlet: CmdletSpec, node: CommandNode) -> BoundArguments:
    """Bind each argument to its parameter."""
    bound = BoundArguments()
    loose: list[tuple[PowerShellValue, Span]] = []
    waiting = list(node.arguments)
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, VerbatimArguments):
            bound.odd = True
        elif isinstance(item, CommandParameter):
            _bind_named(shell, cmdlet, bound, item, waiting)
        elif isinstance(item, VariableNode) and item.splat:
            _bind_splat(cmdlet, bound, shell.variable(item.name, item.span), item.span, loose)
        else:
            loose.append((shell.value(item), item.span))
    _bind_positional(cmdlet, bound, loose)
    return bound


def _bind_named(
    shell: PowerShellAnalyzer,
    cmdlet: CmdletSpec,
    bound: BoundArguments,
    item: CommandParameter,
    waiting: list[SyntaxNode],
) -> None:
    option = cmdlet.option(item.name)
    if option is None:
        bound.odd = True
        bound.words.append(f"-{item.name}")
        if item.value is not None:
            shell.argument(item.value)
        return
    if (not option.kind and not option.beyond) or not option.kind:
        value = shell.value(item.value) if item.value is not None else create_known_value("True")
    elif item.value is not None:
        value = shell.value(item.value)
    elif waiting and not isinstance(waiting[0], CommandParameter | VerbatimArguments):
        value = shell.value(waiting.pop(0))
    else:
        bound.odd = True
        return
    _bind_value(bound, option, value, item.span)


def _bind_splat(
    cmdlet: CmdletSpec,
    bound: BoundArguments,
    value: PowerShellValue,
    span: Span,
    loose: list[tuple[PowerShellValue, Span]],
) -> None:
    if value.table is not None:
        for name, item in value.table:
            option = cmdlet.option(name)
            if option is None:
                bound.odd = True
            else:
                _bind_value(bound, option, item, span)
    elif value.items is not None:
        loose.extend((item, span) for item in value.items)
    else:
        bound.odd = True
        # What is not seen may name anything.
        loose.append((UNKNOWN_VALUE, span))


def _bind_positional(cmdlet: CmdletSpec, bound: BoundArguments, loose: Sequence[tuple[PowerShellValue, Span]]) -> None:
    free = [option for option in cmdlet.positions if option.name not in bound.given]
    for value, span in loose:
        block = value.block is not None
        option = next((o for o in free if (o.kind == "x") == block), None) or next(iter(free), None)
        if option is not None:
            # Parameters of one position are of different sets: the one that is taken rules the others out.
            free = [other for other in free if other.position != option.position]
        else:
            option = cmdlet.positions[-1] if cmdlet.positions else None
        if option is None:
            bound.odd = True
            continue
        _bind_value(bound, option, value, span)


def _bind_value(bound: BoundArguments, option: CmdletParameter, value: PowerShellValue, span: Span) -> None:
    bound.given.setdefault(option.name, []).append(value)
    bound.kinds[option.name] = option
    bound.spans.setdefault(option.name, span)
    if option.kind:
        if option.position is None or option.position > 0 or option.kind in "vx":
            bound.words.append(f"-{option.name}") if option.position is None else None
        bound.words.extend(item.guess for item in values.flatten_value(value))
    else:
        bound.words.append(f"-{option.name}")


def bind_piped_value(cmdlet: CmdletSpec, bound: BoundArguments, piped: PowerShellValue, span: Span) -> None:
    """Give what is piped in to the parameter that takes it."""
    taking = [option for option in dict.fromkeys(cmdlet.options.values()) if option.piped]
    free = [option for option in taking if option.name not in bound.given]
    option = next((o for o in free if o.kind in "rlwdu"), None) or next(iter(free), None)
    if option is not None:
        bound.given[option.name] = [piped]
        bound.kinds[option.name] = option
        bound.spans[option.name] = span
