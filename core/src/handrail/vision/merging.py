"""One list of elements from several looks at the same screen: what a tree tells and what is made out in a picture.

The same thing is one element. The tree's keeps its handle and its actions; a picture's reading gives a name to what the tree has no word for. Who
else saw it is said by `Element.also`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from handrail.vision.observation import Element, Rect

# How much of two rectangles' whole is common to both, at least, when they are taken for one thing that only one of them names.
ALIKE = 0.5
# Pixels by which what is read of a picture may reach over the edge of what it belongs to.
SLACK = 4
# Pixels of a field of the screen: only what shares one with something can be the same.
FIELD = 64
# Of all that lie where something is seen, so many of the smallest are compared with it.
MOST_NEAR = 100

Field = tuple[int, int]


def merged(first: Iterable[Element], second: Iterable[Element]) -> tuple[Element, ...]:
    """The elements of `first`, each with what `second` says of the same thing, then those that only `second` saw."""
    known = list(first)
    new: list[Element] = []
    others = list(second)
    fields = _by_field(known, {_middle(other.rect) for other in others if other.rect is not None})
    for seen in others:
        at = _same(known, fields, seen)
        if at is None:
            new.append(seen)
            continue
        one = known[at]
        also = one.also if seen.source in (one.source, *one.also) else (*one.also, seen.source)
        known[at] = replace(one, also=also, text=one.text or seen.text)
    return (*known, *new)


def _by_field(known: Sequence[Element], wanted: Collection[Field]) -> dict[Field, list[int]]:
    """The elements of each field that is wanted, the smallest first."""
    fields: dict[Field, list[int]] = defaultdict(list)
    for at in sorted(range(len(known)), key=lambda at: _area(known[at].rect)):
        if (rect := known[at].rect) is not None:
            for field in _fields(_around(rect), wanted):
                if len(fields[field]) < MOST_NEAR:
                    fields[field].append(at)
    return fields


def _fields(rect: Rect, wanted: Collection[Field]) -> Iterator[Field]:
    across = range(rect.x // FIELD, (rect.right - 1) // FIELD + 1)
    down = range(rect.y // FIELD, (rect.bottom - 1) // FIELD + 1)
    # A program may say that something is millions of pixels wide.
    if len(across) * len(down) > len(wanted):
        yield from ((x, y) for x, y in wanted if x in across and y in down)
    else:
        yield from ((x, y) for x in across for y in down if (x, y) in wanted)


def _middle(rect: Rect) -> Field:
    x, y = rect.center
    return x // FIELD, y // FIELD


def _same(known: Sequence[Element], fields: dict[Field, list[int]], seen: Element) -> int | None:
    """Which of the known elements something seen is; the smallest, where several could be. It covers the middle of what is seen."""
    if seen.rect is None or seen.rect.empty:
        return None
    for at in fields.get(_middle(seen.rect), ()):
        rect = known[at].rect
        if rect is not None and _are_one(known[at], rect, seen, seen.rect):
            return at
    return None


def _are_one(one: Element, place: Rect, other: Element, where: Rect) -> bool:
    if _words(one) and _words(other):
        said = any(_plain(text) in _plain(whole) for text in _words(other) for whole in _words(one))
        return said and _around(place).contains(*where.center)
    common = _area(place.intersect(where))
    together = _area(place) + _area(where) - common
    # A control that has no name is named by what is written on it.
    written = not _words(one) and bool(one.actions) and _area(place.intersect(where)) == _area(where)
    return written or (together > 0 and common / together >= ALIKE)


def _words(element: Element) -> list[str]:
    return [text for text in (element.text, element.value or "") if _plain(text)]


def _plain(text: str) -> str:
    return "".join(text.split()).casefold()


def _around(rect: Rect) -> Rect:
    return Rect(rect.x - SLACK, rect.y - SLACK, rect.width + 2 * SLACK, rect.height + 2 * SLACK)


def _area(rect: Rect | None) -> int:
    return 0 if rect is None else max(0, rect.width) * max(0, rect.height)
