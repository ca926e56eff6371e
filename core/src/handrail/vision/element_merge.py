"""One list of elements from several looks at the same screen: what a tree tells and what is made out in a picture.

The same thing is one element. The tree's keeps its handle and its actions; a picture's reading gives a name to what the tree has no word for. Who
else saw it is said by `Element.also`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from handrail.api.observation import Element, Rect

# How much of two rectangles' whole is common to both, at least, when they are taken for one thing that only one of them names.
MIN_OVERLAP = 0.5
# Pixels by which what is read of a picture may reach over the edge of what it belongs to.
SLACK_PX = 4
# Pixels of a field of the screen: only what shares one with something can be the same.
CELL_PX = 64
# Of all that lie where something is seen, so many of the smallest are compared with it.
MAX_PER_CELL = 100

GridCell = tuple[int, int]


def merge_elements(first: Iterable[Element], second: Iterable[Element]) -> tuple[Element, ...]:
    """Return the elements of `first`, each completed from the same element in `second`, then those only in `second`."""
    known = list(first)
    new: list[Element] = []
    others = list(second)
    fields = _index_by_cell(known, {_center_cell(other.rect) for other in others if other.rect is not None})
    for seen in others:
        at = _find_same(known, fields, seen)
        if at is None:
            new.append(seen)
            continue
        one = known[at]
        also = one.also if seen.source in (one.source, *one.also) else (*one.also, seen.source)
        known[at] = replace(one, also=also, text=one.text or seen.text)
    return (*known, *new)


def _index_by_cell(known: Sequence[Element], wanted: Collection[GridCell]) -> dict[GridCell, list[int]]:
    """Return the elements in each of the wanted grid cells, smallest first."""
    fields: dict[GridCell, list[int]] = defaultdict(list)
    for at in sorted(range(len(known)), key=lambda at: _rect_area(known[at].rect)):
        if (rect := known[at].rect) is not None:
            for field in _iter_cells(_grow_rect(rect), wanted):
                if len(fields[field]) < MAX_PER_CELL:
                    fields[field].append(at)
    return fields


def _iter_cells(rect: Rect, wanted: Collection[GridCell]) -> Iterator[GridCell]:
    across = range(rect.x // CELL_PX, (rect.right - 1) // CELL_PX + 1)
    down = range(rect.y // CELL_PX, (rect.bottom - 1) // CELL_PX + 1)
    # A program may say that something is millions of pixels wide.
    if len(across) * len(down) > len(wanted):
        yield from ((x, y) for x, y in wanted if x in across and y in down)
    else:
        yield from ((x, y) for x in across for y in down if (x, y) in wanted)


def _center_cell(rect: Rect) -> GridCell:
    x, y = rect.center
    return x // CELL_PX, y // CELL_PX


def _find_same(known: Sequence[Element], fields: dict[GridCell, list[int]], seen: Element) -> int | None:
    """Return the index of the known element that is the same as the seen one, or None; the smallest of several.

    It covers the center of the seen element.
    """
    if seen.rect is None or seen.rect.empty:
        return None
    for at in fields.get(_center_cell(seen.rect), ()):
        rect = known[at].rect
        if rect is not None and _is_same_element(known[at], rect, seen, seen.rect):
            return at
    return None


def _is_same_element(one: Element, place: Rect, other: Element, where: Rect) -> bool:
    if _list_texts(one) and _list_texts(other):
        said = any(
            _normalize_text(text) in _normalize_text(whole) for text in _list_texts(other) for whole in _list_texts(one)
        )
        return said and _grow_rect(place).contains(*where.center)
    common = _rect_area(place.intersect(where))
    together = _rect_area(place) + _rect_area(where) - common
    # A control that has no name is named by what is written on it.
    written = not _list_texts(one) and bool(one.actions) and _rect_area(place.intersect(where)) == _rect_area(where)
    return written or (together > 0 and common / together >= MIN_OVERLAP)


def _list_texts(element: Element) -> list[str]:
    return [text for text in (element.text, element.value or "") if _normalize_text(text)]


def _normalize_text(text: str) -> str:
    return "".join(text.split()).casefold()


def _grow_rect(rect: Rect) -> Rect:
    return Rect(rect.x - SLACK_PX, rect.y - SLACK_PX, rect.width + 2 * SLACK_PX, rect.height + 2 * SLACK_PX)


def _rect_area(rect: Rect | None) -> int:
    return 0 if rect is None else max(0, rect.width) * max(0, rect.height)
