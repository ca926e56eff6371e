"""Walk of the whole accessibility tree by a peer, run with the system's Python.

Usage: python3 atspi_peers.py pyatspi|libatspi|dogtail. Prints the seconds of the walk alone, and the number of objects:
name, role, states and position of each. Of more than 500 children only the first are read, since a spreadsheet has two
billion.
"""

# The peers live in the system's own Python, where the type checker does not look.
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

MOST_CHILDREN = 500


def main(peer: str) -> None:
    read = {"pyatspi": _pyatspi, "libatspi": _libatspi, "dogtail": _dogtail}[peer]()
    began = perf_counter()
    count = read()
    print(perf_counter() - began, count)


def _pyatspi() -> Callable[[], int]:
    import pyatspi

    def walk(node: Any) -> Iterator[Any]:
        yield node.name, node.getRole(), node.getState().getStates(), _place(node)
        for index in range(min(node.childCount, MOST_CHILDREN)):
            if (child := node.getChildAtIndex(index)) is not None:
                yield from walk(child)

    def _place(node: Any) -> Any:
        try:
            return node.queryComponent().getExtents(pyatspi.DESKTOP_COORDS)
        except NotImplementedError:
            return None

    return lambda: sum(1 for app in pyatspi.Registry.getDesktop(0) if app is not None for _ in walk(app))


def _libatspi() -> Callable[[], int]:
    import gi

    gi.require_version("Atspi", "2.0")
    from gi.repository import Atspi

    def walk(node: Any) -> Iterator[Any]:
        component = node.get_component_iface()
        place = component.get_extents(Atspi.CoordType.SCREEN) if component is not None else None
        yield node.get_name(), node.get_role(), node.get_state_set().get_states(), place
        for index in range(min(node.get_child_count(), MOST_CHILDREN)):
            if (child := node.get_child_at_index(index)) is not None:
                yield from walk(child)

    return lambda: sum(1 for _ in walk(Atspi.get_desktop(0)))


def _dogtail() -> Callable[[], int]:
    from dogtail.config import config

    # It looks for a setting of GNOME's, and ends the process without it, though the accessibility bus is there.
    config.checkForA11y = False
    from dogtail.predicate import GenericPredicate
    from dogtail.tree import root

    return lambda: sum(len(app.findChildren(GenericPredicate())) for app in root.applications())


if __name__ == "__main__":
    main(sys.argv[1])
