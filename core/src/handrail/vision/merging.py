"""One list of elements from several looks at the same screen: what a tree tells and what is made out in a picture.

The same thing is one element. The tree's keeps its handle and its actions; a picture's reading gives a name to what the tree has no word for. Who
else saw it is said by `Element.also`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from handrail.vision.observation import Element, Rect

# How much of two rectangles' whole is common to both, at least, when they are taken for one thing that only one of them names.
ALIKE = 0.5
# Pixels by which what is read of a picture may reach over the edge of what it belongs to.
SLACK = 4


def merged(first: Iterable[Element], second: Iterable[Element]) -> tuple[Element, ...]:
    """The elements of `first`, each with what `second` says of the same thing, then those that only `second` saw."""
    known = list(first)
    new: list[Element] = []
    for seen in second:
        at = _same(known, seen)
        if at is None:
            new.append(seen)
            continue
        one = known[at]
        also = one.also if seen.source in (one.source, *one.also) else (*one.also, seen.source)
        known[at] = replace(one, also=also, text=one.text or seen.text)
    return (*known, *new)


def _same(known: Sequence[Element], seen: Element) -> int | None:
    """Which of the known elements something seen is; the smallest, where several could be."""
    if seen.rect is None:
        return None
    fitting = [at for at, one in enumerate(known) if one.rect is not None and _are_one(one, one.rect, seen, seen.rect)]
    return min(fitting, key=lambda at: _area(known[at].rect), default=None)


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
