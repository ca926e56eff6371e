"""One read of one window, from the objects to the elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from handrail import Element
from handrail.text import fold_text, is_right_to_left
from handrail_accessibility.atspi.bus import AccessibilityBus, gather_results
from handrail_accessibility.atspi.elements import ListedNode, build_element, is_negligible, list_nodes
from handrail_accessibility.atspi.nodes import AtSpiNode, fetch_all_extents
from handrail_accessibility.atspi.roles import AtSpiState
from handrail_accessibility.atspi.transform_resolver import TransformResolver
from handrail_accessibility.atspi.tree_cache import TreeCache
from handrail_accessibility.atspi.windows import TopLevelWindow

# A query looks at more than it returns.
QUERY_FACTOR = 4
# Elements that are described at the same time: what is there of them is told when the time is up.
DESCRIBE_BATCH_SIZE = 100


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a read."""

    full: bool = False
    max_depth: int | None = None
    query: str | None = None
    budget: int = 500
    # Only what has the focus.
    focused: bool = False


@dataclass(slots=True)
class WindowReader:
    """Fills itself as it goes: when it is cancelled at its deadline, what it has so far is there, in reading order."""

    bus: AccessibilityBus
    window: TopLevelWindow
    popups: list[TopLevelWindow]
    wanted: ReadOptions
    places: TransformResolver
    truncated: bool = False
    _listed: list[ListedNode] = field(default_factory=list[ListedNode])
    _found: dict[int, Element] = field(default_factory=dict[int, Element])

    @property
    def elements(self) -> tuple[Element, ...]:
        """All that was read and fits; more than the budget where cells of a table are among them."""
        read = [(self._listed[number], element) for number, element in sorted(self._found.items())]
        return tuple(element for element in _sort_reading_order(read) if self._fits(element))

    async def run(self) -> None:
        """Read the window, its open menus and lists included."""
        forest = TreeCache(self.bus)
        await forest.learn(self.window.node.app)
        roots = [forest.nodes.get(top.node.ref, top.node) for top in (self.window, *self.popups)]
        await forest.grow(roots)
        self._list(forest, roots)
        layout = await self.places.of(roots[0], [line.spot for line in self._listed])
        self._listed = [
            replace(line, placing=layout.placings[line.spot], window_id=layout.window_id) for line in self._listed
        ]
        for start in range(0, len(self._listed), DESCRIBE_BATCH_SIZE):
            await self._describe(range(start, min(start + DESCRIBE_BATCH_SIZE, len(self._listed))), forest)

    def _list(self, forest: TreeCache, roots: list[AtSpiNode]) -> None:
        """Collect the objects to describe. Cells have a separate limit, and cells found to be empty are left out."""
        wanted = self.wanted
        limit = wanted.budget * (QUERY_FACTOR if wanted.query else 1)
        every = (
            line
            for root in roots
            for line in list_nodes(forest, root, self.window, full=wanted.full, max_depth=wanted.max_depth)
            if line.node.has(AtSpiState.FOCUSED) or not wanted.focused
        )
        counted = 0
        for line in every:
            counted += line.node.address is None
            # What lies in one box is put in order by its place: all of it, or more of it at another time would come between.
            if counted > limit and line.parent != self._listed[-1].parent:
                self.truncated = True
                break
            self._listed.append(line)
        self.truncated |= forest.truncated

    async def _describe(self, numbers: Sequence[int], forest: TreeCache) -> None:
        listed = [self._listed[number] for number in numbers]
        boxes = await fetch_all_extents(self.bus, [line.node for line in listed])
        elements = (build_element(self.bus, line, box, forest) for line, box in zip(listed, boxes, strict=True))
        self._found |= zip(numbers, await gather_results(elements), strict=True)

    def _fits(self, element: Element) -> bool:
        if not self.wanted.full and is_negligible(element):
            return False
        if not self.wanted.query:
            return True
        sought = fold_text(self.wanted.query)
        return any(sought in fold_text(part) for part in (element.text, element.role, element.value or ""))


def _sort_reading_order(read: list[tuple[ListedNode, Element]]) -> Iterator[Element]:
    """Yield the elements in reading order.

    A toolkit may keep the children of one box in any order, so consecutive ones are sorted by position.
    """
    for _, group in groupby(read, key=lambda pair: pair[0].parent):
        elements = [element for _, element in group]
        placed = all(element.rect is not None for element in elements)
        yield from _sort_by_rows(elements) if placed else elements


def _sort_by_rows(elements: list[Element]) -> list[Element]:
    """Sort from top to bottom, and within a row in the direction of writing.

    Elements that overlap in height by more than half form a row.
    """
    rows: list[list[Element]] = []
    for element in sorted(elements, key=_vertical_center):
        if rows and _vertical_center(element) < _bottom_edge(rows[-1][0]):
            rows[-1].append(element)
        else:
            rows.append([element])
    back = is_right_to_left(element.text for element in elements)
    return [element for row in rows for element in sorted(row, key=_left_edge, reverse=back)]


def _vertical_center(element: Element) -> int:
    return element.rect.center[1] if element.rect is not None else 0


def _bottom_edge(element: Element) -> int:
    return element.rect.bottom if element.rect is not None else 0


def _left_edge(element: Element) -> int:
    return element.rect.x if element.rect is not None else 0
