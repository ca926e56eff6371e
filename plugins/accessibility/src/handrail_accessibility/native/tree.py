"""Interface to a platform's tree of a window and the actions on its nodes, and the elements built from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from handrail import Element, Rect, Window
from handrail_accessibility.tree.roles import ElementRole, RoleKind

ActionVerb = Literal["press", "focus", "select", "expand", "collapse", "scroll"]

# Enough to recognise a text by; the whole is there for `read`.
MAX_VALUE_CHARS = 500
ALWAYS_LISTED_KINDS = frozenset((RoleKind.CONTROL, RoleKind.TEXT, RoleKind.RANGE, RoleKind.MENU, RoleKind.TABLE))
SELECTABLE_ROLES = frozenset(("list item", "tab", "tree item", "menu item", "radio button", "cell"))


@dataclass(frozen=True, slots=True)
class NativeNode:
    """One object of a tree, as it was when it was read. `key` tells it from all others of its program, `native` is how the platform reaches it."""

    key: str
    role: ElementRole
    name: str = ""
    value: str | None = None
    rect: Rect | None = None
    states: frozenset[str] = frozenset()
    actions: tuple[str, ...] = ()
    automation_id: str = ""
    children: tuple[NativeNode, ...] = ()
    native: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class WindowTree:
    """A window's tree. `truncated`: a part is missing, for the number of objects or for time."""

    root: NativeNode
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class NativeHandle:
    """An element's `ref`: the object, and the id of the window that it is in."""

    native: Any
    window: str


class TreeProvider(Protocol):
    """A platform's tree. Every method is called in one thread, and may be given up there when a program hangs."""

    def read(self, window: Window, *, limit: int, deadline: float) -> WindowTree | None:
        """Return the window's tree, in one request where possible; None if the window publishes none.

        Reads at most `limit` objects in `deadline` seconds.
        """
        ...

    def again(self, native: Any) -> NativeNode | None:
        """Return the current state of one object, with its children; None if it is gone."""
        ...

    def do(self, native: Any, verb: ActionVerb) -> str | None:
        """Request an action on the object.

        Returns the name of the interface used for the request; None if the object does not support the action or
        refused it.
        """
        ...

    def text(self, native: Any) -> str | None:
        """Return the whole text; None without any."""
        ...

    def set_text(self, native: Any, text: str) -> bool:
        """Replace its text."""
        ...

    def number(self, native: Any) -> float | None:
        """Return the current number, or None."""
        ...

    def set_number(self, native: Any, number: float) -> bool:
        """Set its number."""
        ...

    def end(self) -> None:
        """Give back what the thread has taken."""
        ...


def walk_nodes(root: NativeNode, depth: int = 0) -> Iterator[tuple[NativeNode, int]]:
    """Yield every object below a root with its depth, in tree order."""
    for child in root.children:
        yield child, depth
        yield from walk_nodes(child, depth + 1 if child.name else depth)


def is_worth_listing(node: NativeNode) -> bool:
    """Return True if a user would miss the object in a short list."""
    if "focused" in node.states or node.role.kind in ALWAYS_LISTED_KINDS:
        return True
    return node.role.kind in (RoleKind.BOX, RoleKind.STATIC) and node.role.named and bool(node.name.strip())


def build_element(node: NativeNode, window: Window, depth: int = 0) -> Element:
    """Build the element value that tools use."""
    hidden = node.rect is None or "offscreen" in node.states
    password = node.role.word == "password" or "password" in node.states
    return Element(
        role=node.role.word,
        text=node.name.strip(),
        rect=None if hidden else node.rect,
        states=node.states | {"offscreen"} if hidden else node.states,
        actions=node.actions,
        value=None if password else _truncate_text(node.value),
        automation_id=node.automation_id,
        window=window.title,
        window_id=window.id,
        depth=depth,
        ref=NativeHandle(node.native, window.id),
        fingerprint=compute_fingerprint(node, window),
    )


def compute_fingerprint(node: NativeNode, window: Window) -> str:
    """Return an identifier that stays the same for the same object.

    It consists of the object's key in its program, its role, and its name unless that is content.
    """
    name = node.name if node.role.named else ""
    return f"{window.pid}:{node.key}:{node.role.word}:{name}"


def _truncate_text(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_VALUE_CHARS else text[:MAX_VALUE_CHARS] + "…"
