"""One read of one window, from the objects to the elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from handrail import Element
from handrail.words import folded, right_to_left
from handrail_accessibility.atspi.bus import Bus, together
from handrail_accessibility.atspi.elements import Line, described, lines, says_nothing
from handrail_accessibility.atspi.forest import Forest
from handrail_accessibility.atspi.nodes import Node, all_extents
from handrail_accessibility.atspi.places import Places
from handrail_accessibility.atspi.roles import State
from handrail_accessibility.atspi.windows import TopLevel

# A query looks at more than it returns.
QUERY_FACTOR = 4
# Elements that are described at the same time: what is there of them is told when the time is up.
AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a read is asked for."""

    full: bool = False
    max_depth: int | None = None
    query: str | None = None
    budget: int = 500
    # Only what has the focus.
    focused: bool = False


@dataclass(slots=True)
class Reading:
    """Fills itself as it goes: when it is cancelled at its deadline, what it has so far is there, in reading order."""

    bus: Bus
    window: TopLevel
    popups: list[TopLevel]
    wanted: Wanted
    places: Places
    truncated: bool = False
    _listed: list[Line] = field(default_factory=list[Line])
    _found: dict[int, Element] = field(default_factory=dict[int, Element])

    @property
    def elements(self) -> tuple[Element, ...]:
        """All that was read and fits; more than the budget where cells of a table are among them."""
        read = [(self._listed[number], element) for number, element in sorted(self._found.items())]
        return tuple(element for element in _as_seen(read) if self._fits(element))

    async def run(self) -> None:
        """Read the window, its open menus and lists included."""
        forest = Forest(self.bus)
        await forest.learn(self.window.node.app)
        roots = [forest.nodes.get(top.node.ref, top.node) for top in (self.window, *self.popups)]
        await forest.grow(roots)
        self._list(forest, roots)
        layout = await self.places.of(roots[0], [line.spot for line in self._listed])
        self._listed = [
            replace(line, placing=layout.placings[line.spot], window_id=layout.window_id) for line in self._listed
        ]
        for start in range(0, len(self._listed), AT_ONCE):
            await self._describe(range(start, min(start + AT_ONCE, len(self._listed))), forest)

    def _list(self, forest: Forest, roots: list[Node]) -> None:
        """What will be described. Cells have a limit of their own, and those that turn out empty are left out."""
        wanted = self.wanted
        limit = wanted.budget * (QUERY_FACTOR if wanted.query else 1)
        every = (
            line
            for root in roots
            for line in lines(forest, root, self.window, full=wanted.full, max_depth=wanted.max_depth)
            if line.node.has(State.FOCUSED) or not wanted.focused
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

    async def _describe(self, numbers: Sequence[int], forest: Forest) -> None:
        listed = [self._listed[number] for number in numbers]
        boxes = await all_extents(self.bus, [line.node for line in listed])
        elements = (described(self.bus, line, box, forest) for line, box in zip(listed, boxes, strict=True))
        self._found |= zip(numbers, await together(elements), strict=True)

    def _fits(self, element: Element) -> bool:
        if not self.wanted.full and says_nothing(element):
            return False
        if not self.wanted.query:
            return True
        sought = folded(self.wanted.query)
        return any(sought in folded(part) for part in (element.text, element.role, element.value or ""))


def _as_seen(read: list[tuple[Line, Element]]) -> Iterator[Element]:
    """In reading order: a toolkit may keep the things in one box in any order, so those that follow each other are put by their place."""
    for _, group in groupby(read, key=lambda pair: pair[0].parent):
        elements = [element for _, element in group]
        placed = all(element.rect is not None for element in elements)
        yield from _by_rows(elements) if placed else elements


def _by_rows(elements: list[Element]) -> list[Element]:
    """From the top down, and as their words go among those that overlap in height by more than half."""
    rows: list[list[Element]] = []
    for element in sorted(elements, key=_middle):
        if rows and _middle(element) < _bottom(rows[-1][0]):
            rows[-1].append(element)
        else:
            rows.append([element])
    back = right_to_left(element.text for element in elements)
    return [element for row in rows for element in sorted(row, key=_left, reverse=back)]


def _middle(element: Element) -> int:
    return element.rect.center[1] if element.rect is not None else 0


def _bottom(element: Element) -> int:
    return element.rect.bottom if element.rect is not None else 0


def _left(element: Element) -> int:
    return element.rect.x if element.rect is not None else 0
