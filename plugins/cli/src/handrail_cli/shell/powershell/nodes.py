"""Syntax nodes of a PowerShell text, in the detail that judging requires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """A piece of PowerShell and its place (start, end) in the text."""

    span: Span


@dataclass(frozen=True, slots=True)
class ConstantNode(SyntaxNode):
    """A word, a quoted text or a number; `bare` words are not quoted."""

    text: str
    bare: bool = False


@dataclass(frozen=True, slots=True)
class ExpandableString(SyntaxNode):
    """Text with variables and subexpressions in it."""

    parts: tuple[str | SyntaxNode, ...]
    bare: bool = False


@dataclass(frozen=True, slots=True)
class VariableNode(SyntaxNode):
    """`$name`, `$drive:name`, `${name}`, or, when `splat`, `@name`; the name is in lower case and without a scope."""

    name: str
    splat: bool = False


@dataclass(frozen=True, slots=True)
class ScriptBlock(SyntaxNode):
    """`{ … }`: statements, and the names of its parameters with their defaults."""

    body: tuple[SyntaxNode, ...]
    parameters: tuple[tuple[str, SyntaxNode | None], ...] = ()


@dataclass(frozen=True, slots=True)
class GroupNode(SyntaxNode):
    """Node of `( … )`, `$( … )` or `@( … )`: the result of statements; `array` if it is always a list."""

    body: tuple[SyntaxNode, ...]
    array: bool = False


@dataclass(frozen=True, slots=True)
class ArrayLiteral(SyntaxNode):
    """`a, b, c`."""

    items: tuple[SyntaxNode, ...]


@dataclass(frozen=True, slots=True)
class HashTable(SyntaxNode):
    """`@{ key = value }`."""

    pairs: tuple[tuple[SyntaxNode, SyntaxNode], ...]


@dataclass(frozen=True, slots=True)
class TypeLiteral(SyntaxNode):
    """`[Type]`: its name in lower case, without `system.` and spaces."""

    name: str


@dataclass(frozen=True, slots=True)
class CastNode(SyntaxNode):
    """`[Type] value`."""

    kind: str
    value: SyntaxNode


@dataclass(frozen=True, slots=True)
class UnaryOperation(SyntaxNode):
    """`-not x`, `-join x`, `++x`."""

    operator: str
    value: SyntaxNode


@dataclass(frozen=True, slots=True)
class BinaryOperation(SyntaxNode):
    """`a -op b`; of `a ? b : c` the three are in `left` and a `ArrayLiteral`."""

    operator: str
    left: SyntaxNode
    right: SyntaxNode


@dataclass(frozen=True, slots=True)
class MemberAccess(SyntaxNode):
    """`x.name`, `[T]::name`, and with `arguments` the call of a method."""

    target: SyntaxNode
    name: SyntaxNode
    static: bool = False
    arguments: tuple[SyntaxNode, ...] | None = None


@dataclass(frozen=True, slots=True)
class IndexAccess(SyntaxNode):
    """`x[i]`."""

    target: SyntaxNode
    index: SyntaxNode


@dataclass(frozen=True, slots=True)
class CommandParameter(SyntaxNode):
    """`-Name` or `-Name:value` of a command."""

    name: str
    value: SyntaxNode | None = None


@dataclass(frozen=True, slots=True)
class VerbatimArguments(SyntaxNode):
    """Arguments after `--%`, which are passed to the program verbatim."""

    text: str


@dataclass(frozen=True, slots=True)
class RedirectionNode(SyntaxNode):
    """`> file`, `2>&1`; without a target it only joins streams."""

    operator: str
    target: SyntaxNode | None = None


@dataclass(frozen=True, slots=True)
class CommandNode(SyntaxNode):
    """A command: its name, its arguments; `operator` is `&` or `.` where it is called so."""

    name: SyntaxNode
    arguments: tuple[SyntaxNode, ...]
    redirections: tuple[RedirectionNode, ...] = ()
    operator: str = ""


@dataclass(frozen=True, slots=True)
class PipelineNode(SyntaxNode):
    """Commands and values, each fed to the next; `background` when it is a job."""

    stages: tuple[SyntaxNode, ...]
    redirections: tuple[RedirectionNode, ...] = ()
    background: bool = False


@dataclass(frozen=True, slots=True)
class AssignmentNode(SyntaxNode):
    """Node of `target = value`; the operator is `=` or an operator that modifies the existing value."""

    target: SyntaxNode
    operator: str
    value: SyntaxNode


@dataclass(frozen=True, slots=True)
class BranchNode(SyntaxNode):
    """Node of code that runs once or not at all: the conditions and bodies of `if`, `switch`, `try`."""

    conditions: tuple[SyntaxNode, ...]
    bodies: tuple[ScriptBlock, ...]


@dataclass(frozen=True, slots=True)
class LoopNode(SyntaxNode):
    """Node of code that may run many times; in `foreach`, `variable` takes each value of `over`."""

    conditions: tuple[SyntaxNode, ...]
    body: ScriptBlock
    variable: str = ""
    over: SyntaxNode | None = None


@dataclass(frozen=True, slots=True)
class FunctionDefinition(SyntaxNode):
    """`function name { … }`."""

    name: str
    block: ScriptBlock


@dataclass(frozen=True, slots=True)
class JumpStatement(SyntaxNode):
    """`return`, `throw`, `exit`, `break`, `continue`, with what they give."""

    value: SyntaxNode | None


@dataclass(frozen=True, slots=True)
class UsingStatement(SyntaxNode):
    """`using module x`, `using namespace x`."""

    what: str
    name: str


def find_assigned_variables(node: SyntaxNode) -> set[str]:
    """Return the variables that are assigned a value anywhere in a loop or block."""
    found: set[str] = set()
    waiting: list[object] = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, AssignmentNode):
            found.update(_iter_target_variables(item.target))
        if isinstance(item, UnaryOperation) and item.operator == "++":
            found.update(_iter_target_variables(item.value))
        if isinstance(item, LoopNode) and item.variable:
            found.add(item.variable)
        if isinstance(item, tuple):
            waiting.extend(cast("tuple[object, ...]", item))
        elif isinstance(item, SyntaxNode):
            waiting.extend(
                getattr(item, name) for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())
            )
    return found


def _iter_target_variables(node: SyntaxNode) -> Iterator[str]:
    match node:
        case VariableNode():
            yield node.name
        case CastNode():
            yield from _iter_target_variables(node.value)
        case ArrayLiteral():
            for item in node.items:
                yield from _iter_target_variables(item)
        case MemberAccess() | IndexAccess():
            yield from _iter_target_variables(node.target)
        case _:
            return
