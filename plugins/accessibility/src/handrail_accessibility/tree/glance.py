"""Helpers shared by all platforms' services, for trees they have read and elements seen in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TypeVar

from handrail import Element, Glance, StaleElement, Tree

R = TypeVar("R")


def build_glance(tree: Tree) -> Glance:
    """Summarize the whole tree."""
    seen = [(e.role, e.text, e.value, sorted(e.states), e.rect) for e in tree.elements]
    said = hashlib.sha256(repr((tree.window, tree.note, seen)).encode()).hexdigest()[:16]
    return Glance(said, tree.focused)


def find_focused(elements: Iterable[Element]) -> Element | None:
    """Return the element with the keyboard focus, preferring an editable one.

    Some programs report focus for a pane as well as for the text in it that receives the keys.
    """
    focused = [element for element in elements if "focused" in element.states]
    return next((element for element in focused if "editable" in element.states), focused[0] if focused else None)


def require_ref(element: Element, kind: type[R]) -> R:
    """Return the element's `ref`; raise `StaleElement` if it is of another kind, such as one read from a picture."""
    if not isinstance(element.ref, kind):
        raise StaleElement(
            f"{element.role} {element.text!r} was not seen in the accessibility tree", hint="observe again"
        )
    return element.ref
