"""Marks in a picture: a frame around each thing that can be used, and its id beside it.

Nothing of what is marked is hidden. Frames lie outside of the things, and are cut where another thing is. An id lies beside its thing, on none
that is marked; where there is no room, it lies on an empty part of its own thing, or further away at the end of a line; where there is none of
these either, it is left out. Blocking; a few milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from handrail import Element, Rect, Transform
from handrail_gui.opencv import cv2

if TYPE_CHECKING:
    from cv2.typing import MatLike
    from numpy.typing import ArrayLike, NDArray

    Numbers = NDArray[np.int64]
    # Left, top, right, bottom of each.
    Corners = tuple[Numbers, Numbers, Numbers, Numbers]

FONT = cv2.FONT_HERSHEY_SIMPLEX
FONT_SCALE = 0.36
# Pixels of an id's tag around its letters.
PADDING = 1
# From a thing to a tag that needs no line to it, and to one at the end of a line.
BESIDE = 2
FAR = 90
# Between two places that are tried: in a thing of its own, beside it, further away.
FINE = 2
STEP = 3
COARSE = 6
# Lines of its size that a tag may be moved down in its own thing.
DEPTH = 4
# How much further away a tag may be for each pixel that it hides less, and how many places are looked at.
HIDING = 3
TRIED = 24
# Of a thing, the edge of its frame or shadow.
EDGE = 3
# A pixel is a part of something when it differs so much from one beside it.
DETAIL = 24

# Neighbours get different colours (BGR), all dark enough for white letters.
COLOURS = ((180, 60, 0), (40, 40, 200), (30, 120, 20), (150, 30, 130), (0, 95, 170), (120, 100, 0))
# What was seen in a picture and not told by a program: what can be done with it is not known.
PICTURED = frozenset({"ocr", "vision"})


@dataclass(frozen=True, slots=True)
class Mark:
    """A thing that is marked, in image pixels; `tag` is where its id is written, None where there was no room."""

    id: str
    box: Rect
    tag: Rect | None = None


def interactive(element: Element) -> bool:
    """Whether a person would click it or type into it, as far as is known."""
    able = bool(element.actions) or "editable" in element.states or element.source in PICTURED
    return able and not element.states & {"disabled", "offscreen"}


def marks(pixels: MatLike, elements: Iterable[Element], transform: Transform) -> list[Mark]:
    """Every interactive element with the place of its id.

    What holds others and cannot be typed into is left out: in Chromium every part of a page can be clicked.
    """
    found = [(e, transform.to_image(e.rect)) for e in elements if e.rect and interactive(e)]
    found = [(element, box) for element, box in found if not box.empty]
    hold = _holding([box for _, box in found])
    kept = [(e.id, box) for (e, box), holds in zip(found, hold, strict=True) if "editable" in e.states or not holds]
    room = _Room(pixels, [box for _, box in kept])
    return [Mark(id, box, room.place(box, *_size(id))) for id, box in kept]


def drawn(pixels: MatLike, marked: Sequence[Mark]) -> MatLike:
    """A copy of the pixels with the marks on it."""
    picture = pixels.copy()
    for mark, colour in zip(marked, _colours(), strict=False):
        box = mark.box
        cv2.rectangle(picture, (box.x - 1, box.y - 1), (box.right, box.bottom), colour, 1)
        if mark.tag is not None and _distance(box, mark.tag) > BESIDE:
            cv2.line(picture, *_line(box, mark.tag), colour, 1)
    for box in _leaves([mark.box for mark in marked]):
        shown = slice(box.y, box.bottom), slice(box.x, box.right)
        picture[shown] = pixels[shown]
    for mark, colour in zip(marked, _colours(), strict=False):
        if (tag := mark.tag) is not None:
            cv2.rectangle(picture, (tag.x, tag.y), (tag.right - 1, tag.bottom - 1), colour, cv2.FILLED)
            at = (tag.x + PADDING, tag.bottom - PADDING - 1)
            cv2.putText(picture, mark.id, at, FONT, FONT_SCALE, (255, 255, 255), 1, cv2.LINE_AA)
    return picture


def blank(pixels: MatLike) -> NDArray[np.bool_]:
    """Where a picture shows nothing but its ground: pixels that are as those around them are."""
    low = cv2.erode(pixels, np.ones((3, 3), np.uint8))
    high = cv2.dilate(pixels, np.ones((3, 3), np.uint8))
    blue, green, red = cv2.split(cv2.subtract(high, low))
    return cv2.max(cv2.max(blue, green), red) < DETAIL


@dataclass(slots=True)
class _Room:
    """What is still free in a picture. Sums are of all pixels above and left of a place."""

    pixels: MatLike
    boxes: Sequence[Rect]
    tags: list[Rect] = field(default_factory=list[Rect])
    _things: MatLike = field(init=False)
    _details: MatLike = field(init=False)
    # Things beside which there is no room any more.
    _full: set[Rect] = field(default_factory=set[Rect], init=False)
    _taken: NDArray[np.bool_] = field(init=False)
    _holders: list[Rect] = field(init=False)
    _leaves: list[Rect] = field(init=False)
    _corners: Numbers = field(init=False)

    def __post_init__(self) -> None:
        self._leaves = leaves = _leaves(self.boxes)
        self._corners = np.array([box.corners() for box in leaves], np.int64).reshape(-1, 4)
        kept = set(leaves)
        self._holders = [box for box in self.boxes if box not in kept]
        self._taken = _painted(self.pixels.shape, leaves)
        self._things = cv2.integral(self._taken.astype(np.uint8))
        self._details = cv2.integral((~blank(self.pixels)).astype(np.uint8))

    def place(self, box: Rect, width: int, height: int) -> Rect | None:
        """The best place that is left for a tag of that size, which is taken then."""
        if box in self._full:
            return None
        found = self._beside(box, width, height) or self._far(box, width, height)
        if found is None:
            self._full.add(box)
        else:
            self.tags.append(found)
        return found

    def _beside(self, box: Rect, width: int, height: int) -> Rect | None:
        """On empty ground beside it or, failing that, in it or over its edge."""
        for places in (_around(box, width, height), _within(box, width, height)):
            free = self._free(box, places, width, height)
            hidden = _sum(self._details, *_cut(free, width, height))
            empty = free[hidden == _sum(self._details, *_cut(free, width, height, box))]
            if len(empty):
                return Rect(int(empty[0, 0]), int(empty[0, 1]), width, height)
        return None

    def _far(self, box: Rect, width: int, height: int) -> Rect | None:
        """At the end of a free line to it, as near and on as little as possible."""
        places = self._free(box, _about(box, width, height), width, height)
        away = np.hypot(
            np.maximum(0, np.maximum(box.x - places[:, 0] - width, places[:, 0] - box.right)),
            np.maximum(0, np.maximum(box.y - places[:, 1] - height, places[:, 1] - box.bottom)),
        )
        hidden = _sum(self._details, *_cut(places, width, height))
        for best in np.argsort(away + HIDING * hidden, kind="stable")[:TRIED]:
            tag = Rect(int(places[best, 0]), int(places[best, 1]), width, height)
            if self._in_sight(box, tag):
                return tag
        return None

    def _free(self, box: Rect, places: Numbers, width: int, height: int) -> Numbers:
        """Those of the places that lie in the picture and touch no other tag and nothing that is marked but the box and what holds it.

        Of the inside of these, only empty ground is free.
        """
        high, wide = self.pixels.shape[:2]
        x, y = places[:, 0], places[:, 1]
        places = places[(x >= 0) & (y >= 0) & (x + width <= wide) & (y + height <= high)]
        own = _area(*_cut(places, width, height, box)) if box not in self._holders else 0
        places = places[_sum(self._things, *_cut(places, width, height)) == own]
        for other in (box, *(other for other in self._holders if other != box and _holds(other, box))):
            places = places[_sum(self._details, *_cut(places, width, height, _inside(other))) == 0]
        barred = [*self.tags, *(other for other in self._holders if not _holds(other, box)), *self._overlapping(box)]
        if barred and len(places):
            corners = np.array([other.corners() for other in barred])
            x, y = places[:, 0, None], places[:, 1, None]
            clear_x = (x >= corners[:, 2]) | (x + width <= corners[:, 0])
            clear_y = (y >= corners[:, 3]) | (y + height <= corners[:, 1])
            places = places[(clear_x | clear_y).all(axis=1)]
        return places

    def _overlapping(self, box: Rect) -> list[Rect]:
        """Other things that lie on it, as the sum of all cannot tell them apart there."""
        if box in self._holders:
            return []
        x1, y1, x2, y2 = self._corners.T
        near = np.flatnonzero((x1 < box.right) & (x2 > box.x) & (y1 < box.bottom) & (y2 > box.y))
        others = [self._leaves[index] for index in near]
        # One of them is the box itself.
        others.remove(box)
        return others

    def _in_sight(self, box: Rect, tag: Rect) -> bool:
        """Whether the line between them crosses no other thing and no tag."""
        (x1, y1), (x2, y2) = _line(box, tag)
        steps = max(abs(x2 - x1), abs(y2 - y1), 1)
        x = np.rint(np.linspace(x1, x2, steps + 1)).astype(int)
        y = np.rint(np.linspace(y1, y2, steps + 1)).astype(int)
        outside = ~((x >= box.x) & (x < box.right) & (y >= box.y) & (y < box.bottom))
        if (self._taken[y, x] & outside).any():
            return False
        return not any(
            ((x >= other.x) & (x < other.right) & (y >= other.y) & (y < other.bottom)).any() for other in self.tags
        )


def _around(box: Rect, width: int, height: int) -> Numbers:
    """Places beside it: above, below, right and left of it, each side from its first corner on."""
    across = _steps(box.x, box.right - width, box.x - width + STEP, box.right - STEP)
    down = _steps(box.y, box.bottom - height, box.y - height + STEP, box.bottom - STEP)
    above = [(x, box.y - height - 1) for x in across]
    below = [(x, box.bottom + 1) for x in across]
    right = [(box.right + 1, y) for y in down]
    left = [(box.x - width - 1, y) for y in down]
    return np.array([*above, *below, *right, *left], np.int64)


def _within(box: Rect, width: int, height: int) -> Numbers:
    """Places in it or over its edge, those at its upper left and right corner first."""
    step = max(FINE, box.width // 40)
    across = _steps(box.x, box.right - width, box.x - width // 2, box.right - width // 2, step)
    lowest = min(box.y + DEPTH * height, box.bottom - height // 2)
    return _crossed(across, _steps(box.y, box.bottom - height, box.y - height // 2, lowest, 1))


def _about(box: Rect, width: int, height: int) -> Numbers:
    """Places further away."""
    across = np.arange(box.x - width - FAR, box.right + FAR, COARSE)
    down = np.arange(box.y - height - FAR, box.bottom + FAR, COARSE)
    places = _crossed(across, down)
    return places[_area(*_cut(places, width, height, box)) == 0]


def _crossed(across: ArrayLike, down: ArrayLike) -> Numbers:
    return np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2).astype(np.int64)


def _steps(first: int, second: int, low: int, high: int, step: int = STEP) -> list[int]:
    """The two best places on a side, then the others from `low` to `high`."""
    return list(dict.fromkeys((first, second, *range(low, high + 1, step))))


def _cut(places: Numbers, width: int, height: int, to: Rect | None = None) -> Corners:
    """The corners of tags at the places, or of their parts in a rectangle; where there is no such part, the corners are one point."""
    left, top = places[:, 0], places[:, 1]
    right, bottom = left + width, top + height
    if to is None:
        return left, top, right, bottom
    left, right = (np.minimum(np.maximum(x, to.x), to.right) for x in (left, right))
    top, bottom = (np.minimum(np.maximum(y, to.y), to.bottom) for y in (top, bottom))
    return left, top, right, bottom


def _sum(sums: MatLike, left: Numbers, top: Numbers, right: Numbers, bottom: Numbers) -> Numbers:
    total = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return total.astype(np.int64)


def _area(left: Numbers, top: Numbers, right: Numbers, bottom: Numbers) -> Numbers:
    return (right - left) * (bottom - top)


def _inside(box: Rect) -> Rect:
    """What is within its edge, which shows nothing of what it is."""
    x, y = min(EDGE, box.width // 2), min(EDGE, box.height // 2)
    return Rect(box.x + x, box.y + y, box.width - 2 * x, box.height - 2 * y)


def _size(id: str) -> tuple[int, int]:
    (width, height), _ = cv2.getTextSize(id, FONT, FONT_SCALE, 1)
    return width + 2 * PADDING, height + 2 * PADDING


def _leaves(boxes: Sequence[Rect]) -> list[Rect]:
    """Those that hold no other."""
    hold = _holding(boxes)
    return [box for box, holds in zip(boxes, hold, strict=True) if not holds]


def _holding(boxes: Sequence[Rect]) -> list[bool]:
    """For each, whether it holds another one that is not its equal."""
    corners = np.array([box.corners() for box in boxes], np.int64).reshape(-1, 4)
    outer, inner = corners[:, None], corners[None]
    beyond = (outer[..., :2] > inner[..., :2]).any(axis=2) | (outer[..., 2:] < inner[..., 2:]).any(axis=2)
    return np.any(~beyond & (outer != inner).any(axis=2), axis=1).tolist()


def _painted(shape: tuple[int, ...], boxes: Iterable[Rect]) -> NDArray[np.bool_]:
    covered = np.zeros(shape[:2], bool)
    for box in boxes:
        covered[box.y : box.bottom, box.x : box.right] = True
    return covered


def _line(box: Rect, tag: Rect) -> tuple[tuple[int, int], tuple[int, int]]:
    """From the tag to the nearest point of the box."""
    x, y = tag.center
    ends = min(max(x, box.x), box.right - 1), min(max(y, box.y), box.bottom - 1)
    return (min(max(ends[0], tag.x), tag.right - 1), min(max(ends[1], tag.y), tag.bottom - 1)), ends


def _distance(box: Rect, tag: Rect) -> float:
    x = max(0, box.x - tag.right, tag.x - box.right)
    y = max(0, box.y - tag.bottom, tag.y - box.bottom)
    return math.hypot(x, y)


def _colours() -> Iterator[tuple[int, int, int]]:
    while True:
        yield from COLOURS


def _holds(outer: Rect, inner: Rect) -> bool:
    return outer.intersect(inner) == inner
