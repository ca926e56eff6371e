"""What every platform's service makes of a tree that it has read, and of an element that was seen in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TypeVar

from handrail import Element, Glance, StaleElement, Tree

R = TypeVar("R")


def build_glance(tree: Tree) -> Glance:
    """All of the tree, in short."""
    seen = [(e.role, e.text, e.value, sorted(e.states), e.rect) for e in tree.elements]
    said = hashlib.sha256(repr((tree.window, tree.note, seen)).encode()).hexdigest()[:16]
    return Glance(said, tree.focused)


def find_focused(elements: Iterable[Element]) -> Element | None:
    """What has the keyboard focus. Some programs say it of a pane as well as of the text in it that gets what is typed."""
    focused = [element for element in elements if "focused" in element.states]
    return next((element for element in focused if "editable" in element.states), focused[0] if focused else None)


def require_ref(element: Element, kind: type[R]) -> R:
    """The element's `ref`; `StaleElement` when it is of another kind, as that of what was read from a picture."""
    if not isinstance(element.ref, kind):
        raise StaleElement(
            f"{element.role} {element.text!r} was not seen in the accessibility tree", hint="observe again"
        )
    return element.ref
