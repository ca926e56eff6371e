"""What a PowerShell text consists of, as far as judging it needs to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of PowerShell and its place (start, end) in the text."""

    span: Span


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A word, a quoted text or a number; `bare` words are not quoted."""

    text: str
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Expandable(Node):
    """Text with variables and subexpressions in it."""

    parts: tuple[str | Node, ...]
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """`$name`, `$drive:name`, `${name}`, or, when `splat`, `@name`; the name is in lower case and without a scope."""

    name: str
    splat: bool = False


@dataclass(frozen=True, slots=True)
class Block(Node):
    """`{ … }`: statements, and the names of its parameters with their defaults."""

    body: tuple[Node, ...]
    parameters: tuple[tuple[str, Node | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Group(Node):
    """`( … )`, `$( … )` or `@( … )`: the result of statements; `array` when it is a list whatever is in it."""

    body: tuple[Node, ...]
    array: bool = False


@dataclass(frozen=True, slots=True)
class Listed(Node):
    """`a, b, c`."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Table(Node):
    """`@{ key = value }`."""

    pairs: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class Kind(Node):
    """`[Type]`: its name in lower case, without `system.` and spaces."""

    name: str


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """`[Type] value`."""

    kind: str
    value: Node


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`-not x`, `-join x`, `++x`."""

    operator: str
    value: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`a -op b`; of `a ? b : c` the three are in `left` and a `Listed`."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`x.name`, `[T]::name`, and with `arguments` the call of a method."""

    target: Node
    name: Node
    static: bool = False
    arguments: tuple[Node, ...] | None = None


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`x[i]`."""

    target: Node
    index: Node


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`-Name` or `-Name:value` of a command."""

    name: str
    value: Node | None = None


@dataclass(frozen=True, slots=True)
class Verbatim(Node):
    """What follows `--%`, which goes to the program as it stands."""

    text: str


@dataclass(frozen=True, slots=True)
class Redirection(Node):
    """`> file`, `2>&1`; without a target it only joins streams."""

    operator: str
    target: Node | None = None


@dataclass(frozen=True, slots=True)
class Invoked(Node):
    """A command: its name, its arguments; `operator` is `&` or `.` where it is called so."""

    name: Node
    arguments: tuple[Node, ...]
    redirections: tuple[Redirection, ...] = ()
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Pipeline(Node):
    """Commands and values, each fed to the next; `background` when it is a job."""

    stages: tuple[Node, ...]
    redirections: tuple[Redirection, ...] = ()
    background: bool = False


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    """`target = value`; the operator is `=` or one that adds to what is there."""

    target: Node
    operator: str
    value: Node


@dataclass(frozen=True, slots=True)
class Branch(Node):
    """What runs once, or not at all: the conditions and bodies of `if`, `switch`, `try`."""

    conditions: tuple[Node, ...]
    bodies: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Loop(Node):
    """What may run many times; of `foreach`, `variable` stands for each of `over`."""

    conditions: tuple[Node, ...]
    body: Block
    variable: str = ""
    over: Node | None = None


@dataclass(frozen=True, slots=True)
class Definition(Node):
    """`function name { … }`."""

    name: str
    block: Block


@dataclass(frozen=True, slots=True)
class Leaving(Node):
    """`return`, `throw`, `exit`, `break`, `continue`, with what they give."""

    value: Node | None


@dataclass(frozen=True, slots=True)
class Using(Node):
    """`using module x`, `using namespace x`."""

    what: str
    name: str


def assigned(node: Node) -> set[str]:
    """The variables that are given a value anywhere in a loop or block."""
    found: set[str] = set()
    waiting: list[object] = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Assignment):
            found.update(_variables(item.target))
        if isinstance(item, Unary) and item.operator == "++":
            found.update(_variables(item.value))
        if isinstance(item, Loop) and item.variable:
            found.add(item.variable)
        if isinstance(item, tuple):
            waiting.extend(cast("tuple[object, ...]", item))
        elif isinstance(item, Node):
            waiting.extend(
                getattr(item, name) for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())
            )
    return found


def _variables(node: Node) -> Iterator[str]:
    match node:
        case Variable():
            yield node.name
        case Cast():
            yield from _variables(node.value)
        case Listed():
            for item in node.items:
                yield from _variables(item)
        case Member() | Index():
            yield from _variables(node.target)
        case _:
            return
