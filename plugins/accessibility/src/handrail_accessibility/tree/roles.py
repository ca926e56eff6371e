"""The roles of a tree's objects, as models read them on every platform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

K = TypeVar("K")


class RoleKind(Enum):
    """Category of a role from a reader's point of view."""

    # A person acts on it.
    CONTROL = "control"
    # It holds a value that a person reads or writes.
    TEXT = "text"
    # A number within limits.
    RANGE = "range"
    # Opens a list of further choices.
    MENU = "menu"
    # Addressed by row and column.
    TABLE = "table"
    # Says something, does nothing.
    STATIC = "static"
    # A box of other things; worth a line only when it has a name.
    BOX = "box"
    # A top-level window.
    WINDOW = "window"
    # Decoration.
    NOISE = "noise"


@dataclass(frozen=True, slots=True)
class ElementRole:
    """A role as models read it.

    `named`: its name is what tells it from others; where False the name is content and may change while the thing stays the same.
    """

    word: str
    kind: RoleKind
    named: bool = True


def build_roles(kind: RoleKind, words: Mapping[K, str], *, named: bool = True) -> dict[K, ElementRole]:
    """Build roles of one kind, keyed by a platform's numbers or names for them."""
    return {each: ElementRole(word, kind, named) for each, word in words.items()}
