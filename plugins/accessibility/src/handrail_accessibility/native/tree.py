"""What a platform has to tell of a window's tree, and do with a part of it; and the elements that are made of that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from handrail import Element, Rect, Window
from handrail_accessibility.roles import Kind, Role

Verb = Literal["press", "focus", "select", "expand", "collapse", "scroll"]

# Enough to recognise a text by; the whole is there for `read`.
LONGEST_VALUE = 500
ALWAYS = frozenset((Kind.CONTROL, Kind.TEXT, Kind.RANGE, Kind.MENU, Kind.TABLE))
ITEMS = frozenset(("list item", "tab", "tree item", "menu item", "radio button", "cell"))


@dataclass(frozen=True, slots=True)
class Node:
    """One object of a tree, as it was when it was read. `key` tells it from all others of its program, `native` is how the platform reaches it."""

    key: str
    role: Role
    name: str = ""
    value: str | None = None
    rect: Rect | None = None
    states: frozenset[str] = frozenset()
    actions: tuple[str, ...] = ()
    automation_id: str = ""
    children: tuple[Node, ...] = ()
    native: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """A window's tree. `truncated`: a part is missing, for the number of objects or for time."""

    root: Node
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Handle:
    """An element's `ref`: the object, and the id of the window that it is in."""

    native: Any
    window: str


class Provider(Protocol):
    """A platform's tree. Every method is called in one thread, and may be given up there when a program hangs."""

    def read(self, window: Window, *, limit: int, deadline: float) -> Read | None:
        """The window's tree in one request where that is possible, at most `limit` objects in `deadline` seconds; None when it publishes none."""
        ...

    def again(self, native: Any) -> Node | None:
        """One object as it is now, with its children; None when it is gone."""
        ...

    def do(self, native: Any, verb: Verb) -> str | None:
        """Ask it to do something; by what it was asked, None when it knows nothing of the kind or refused."""
        ...

    def text(self, native: Any) -> str | None:
        """All of its text, None when it keeps none."""
        ...

    def set_text(self, native: Any, text: str) -> bool:
        """Replace its text."""
        ...

    def number(self, native: Any) -> float | None:
        """The number that it stands at."""
        ...

    def set_number(self, native: Any, number: float) -> bool:
        """Set its number."""
        ...

    def end(self) -> None:
        """Give back what the thread has taken."""
        ...


def nodes_of(root: Node, depth: int = 0) -> Iterator[tuple[Node, int]]:
    """Every object below a root with its depth, in the order of the tree."""
    for child in root.children:
        yield child, depth
        yield from nodes_of(child, depth + 1 if child.name else depth)


def worth_a_line(node: Node) -> bool:
    """Whether a person would miss it in a short list."""
    if "focused" in node.states or node.role.kind in ALWAYS:
        return True
    return node.role.kind in (Kind.BOX, Kind.STATIC) and node.role.named and bool(node.name.strip())


def element_of(node: Node, window: Window, depth: int = 0) -> Element:
    """The object as tools know it."""
    hidden = node.rect is None or "offscreen" in node.states
    password = node.role.word == "password" or "password" in node.states
    return Element(
        role=node.role.word,
        text=node.name.strip(),
        rect=None if hidden else node.rect,
        states=node.states | {"offscreen"} if hidden else node.states,
        actions=node.actions,
        value=None if password else _shortened(node.value),
        automation_id=node.automation_id,
        window=window.title,
        window_id=window.id,
        depth=depth,
        ref=Handle(node.native, window.id),
        fingerprint=fingerprint(node, window),
    )


def fingerprint(node: Node, window: Window) -> str:
    """The same for the same object: its key in its program, its role, and its name unless that is content."""
    name = node.name if node.role.named else ""
    return f"{window.pid}:{node.key}:{node.role.word}:{name}"


def _shortened(text: str | None) -> str | None:
    return text if text is None or len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
