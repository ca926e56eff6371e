"""Which parameter each argument of a cmdlet goes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handrail_cli.windows import powershell_values as values
from handrail_cli.windows.cmdlets import Cmdlet, Option
from handrail_cli.windows.findings import Span
from handrail_cli.windows.powershell_nodes import Invoked, Node, Parameter, Variable, Verbatim
from handrail_cli.windows.powershell_values import UNKNOWN, Value, known

if TYPE_CHECKING:
    from handrail_cli.windows.powershell import Shell

FALSE = frozenset(("false", "0", ""))


@dataclass(slots=True)
class Bound:
    """The arguments of a cmdlet by parameter. `words` are its words with the names of parameters written out."""

    given: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])
    kinds: dict[str, Option] = field(default_factory=dict[str, Option])
    spans: dict[str, Span] = field(default_factory=dict[str, Span])
    words: list[str] = field(default_factory=list[str])
    odd: bool = False

    @property
    def varies(self) -> bool:
        """Return True if an argument is not constant."""
        given = (item for several in self.given.values() for value in several for item in values.flat(value))
        return any(item.text is None and item.block is None for item in given)

    def on(self, name: str) -> bool:
        """Whether a switch is set."""
        return any(value.text is None or value.text.lower() not in FALSE for value in self.given.get(name, ()))

    def one(self, name: str) -> Value | None:
        """The value of a parameter; of several, all."""
        found = self.given.get(name)
        return None if not found else found[0] if len(found) == 1 else values.listed(found)


def bind(shell: Shell, cmdlet: Cmdlet, node: Invoked) -> Bound:
    """Which parameter each argument goes to."""
    bound = Bound()
    loose: list[tuple[Value, Span]] = []
    waiting = list(node.arguments)
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, Verbatim):
            bound.odd = True
        elif isinstance(item, Parameter):
            _bind_named(shell, cmdlet, bound, item, waiting)
        elif isinstance(item, Variable) and item.splat:
            _bind_splat(cmdlet, bound, shell.variable(item.name, item.span), item.span, loose)
        else:
            loose.append((shell.value(item), item.span))
    _bind_loose(cmdlet, bound, loose)
    return bound


def _bind_named(shell: Shell, cmdlet: Cmdlet, bound: Bound, item: Parameter, waiting: list[Node]) -> None:
    option = cmdlet.option(item.name)
    if option is None:
        bound.odd = True
        bound.words.append(f"-{item.name}")
        if item.value is not None:
            shell.argument(item.value)
        return
    if (not option.kind and not option.beyond) or not option.kind:
        value = shell.value(item.value) if item.value is not None else known("True")
    elif item.value is not None:
        value = shell.value(item.value)
    elif waiting and not isinstance(waiting[0], Parameter | Verbatim):
        value = shell.value(waiting.pop(0))
    else:
        bound.odd = True
        return
    _give(bound, option, value, item.span)


def _bind_splat(cmdlet: Cmdlet, bound: Bound, value: Value, span: Span, loose: list[tuple[Value, Span]]) -> None:
    if value.table is not None:
        for name, item in value.table:
            option = cmdlet.option(name)
            if option is None:
                bound.odd = True
            else:
                _give(bound, option, item, span)
    elif value.items is not None:
        loose.extend((item, span) for item in value.items)
    else:
        bound.odd = True
        # What is not seen may name anything.
        loose.append((UNKNOWN, span))


def _bind_loose(cmdlet: Cmdlet, bound: Bound, loose: Sequence[tuple[Value, Span]]) -> None:
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
        _give(bound, option, value, span)


def _give(bound: Bound, option: Option, value: Value, span: Span) -> None:
    bound.given.setdefault(option.name, []).append(value)
    bound.kinds[option.name] = option
    bound.spans.setdefault(option.name, span)
    if option.kind:
        if option.position is None or option.position > 0 or option.kind in "vx":
            bound.words.append(f"-{option.name}") if option.position is None else None
        bound.words.extend(item.guess for item in values.flat(value))
    else:
        bound.words.append(f"-{option.name}")


def take_piped(cmdlet: Cmdlet, bound: Bound, piped: Value, span: Span) -> None:
    """Give what is piped in to the parameter that takes it."""
    taking = [option for option in dict.fromkeys(cmdlet.options.values()) if option.piped]
    free = [option for option in taking if option.name not in bound.given]
    option = next((o for o in free if o.kind in "rlwdu"), None) or next(iter(free), None)
    if option is not None:
        bound.given[option.name] = [piped]
        bound.kinds[option.name] = option
        bound.spans[option.name] = span
