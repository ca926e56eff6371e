"""Annotation of screenshots: a frame around each interactive element, with its id beside it.

No marked element is hidden. Frames lie outside the elements and are cut where another element is. An id lies beside its
element and on no other marked one; failing that, on an empty part of its own element, or further away at the end of a
line; if none of these has room, it is left out. Blocking; takes a few milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from handrail import Element, Rect, Transform
from handrail_gui.platforms.opencv import cv2

if TYPE_CHECKING:
    from cv2.typing import MatLike
    from numpy.typing import ArrayLike, NDArray

    IntArray = NDArray[np.int64]
    # Left, top, right, bottom of each.
    CornerArrays = tuple[IntArray, IntArray, IntArray, IntArray]

TAG_FONT = cv2.FONT_HERSHEY_SIMPLEX
TAG_FONT_SCALE = 0.36
# Pixels of an id's tag around its letters.
TAG_PADDING = 1
# From a thing to a tag that needs no line to it, and to one at the end of a line.
MAX_BESIDE_DISTANCE = 2
MAX_TAG_DISTANCE = 90
# Between two places that are tried: in a thing of its own, beside it, further away.
FINE_STEP = 2
SIDE_STEP = 3
COARSE_STEP = 6
# Lines of its size that a tag may be moved down in its own thing.
MAX_INSIDE_LINES = 4
# How much further away a tag may be for each pixel that it hides less, and how many places are looked at.
HIDING_COST = 3
MAX_TRIED_PLACES = 24
# Of a thing, the edge of its frame or shadow.
EDGE_WIDTH = 3
# A pixel is a part of something when it differs so much from one beside it.
DETAIL_THRESHOLD = 24

# Neighbours get different colours (BGR), all dark enough for white letters.
MARK_COLOURS = ((180, 60, 0), (40, 40, 200), (30, 120, 20), (150, 30, 130), (0, 95, 170), (120, 100, 0))
# What was seen in a picture and not told by a program: what can be done with it is not known.
VISION_SOURCES = frozenset({"ocr", "vision"})


@dataclass(frozen=True, slots=True)
class ElementMark:
    """A thing that is marked, in image pixels; `tag` is where its id is written, None where there was no room."""

    id: str
    box: Rect
    tag: Rect | None = None


def is_interactive(element: Element) -> bool:
    """Return True if, as far as is known, a user would click the element or type into it."""
    able = bool(element.actions) or "editable" in element.states or element.source in VISION_SOURCES
    return able and not element.states & {"disabled", "offscreen"}


def place_marks(pixels: MatLike, elements: Iterable[Element], transform: Transform) -> list[ElementMark]:
    """Return every interactive element with the position of its id.

    Elements that contain others and cannot be typed into are left out: in Chromium every part of a page can be clicked.
    """
    found = [(e, transform.to_image(e.rect)) for e in elements if e.rect and is_interactive(e)]
    found = [(element, box) for element, box in found if not box.empty]
    hold = _find_holders([box for _, box in found])
    kept = [(e.id, box) for (e, box), holds in zip(found, hold, strict=True) if "editable" in e.states or not holds]
    room = _FreeSpace(pixels, [box for _, box in kept])
    return [ElementMark(id, box, room.place(box, *_tag_size(id))) for id, box in kept]


def draw_marks(pixels: MatLike, marked: Sequence[ElementMark]) -> MatLike:
    """Return a copy of the pixels with the marks drawn on it."""
    picture = pixels.copy()
    for mark, colour in zip(marked, _cycle_colours(), strict=False):
        box = mark.box
        cv2.rectangle(picture, (box.x - 1, box.y - 1), (box.right, box.bottom), colour, 1)
        if mark.tag is not None and _tag_distance(box, mark.tag) > MAX_BESIDE_DISTANCE:
            cv2.line(picture, *_connecting_line(box, mark.tag), colour, 1)
    for box in _find_leaves([mark.box for mark in marked]):
        shown = slice(box.y, box.bottom), slice(box.x, box.right)
        picture[shown] = pixels[shown]
    for mark, colour in zip(marked, _cycle_colours(), strict=False):
        if (tag := mark.tag) is not None:
            cv2.rectangle(picture, (tag.x, tag.y), (tag.right - 1, tag.bottom - 1), colour, cv2.FILLED)
            at = (tag.x + TAG_PADDING, tag.bottom - TAG_PADDING - 1)
            cv2.putText(picture, mark.id, at, TAG_FONT, TAG_FONT_SCALE, (255, 255, 255), 1, cv2.LINE_AA)
    return picture


def find_blank_pixels(pixels: MatLike) -> NDArray[np.bool_]:
    """Return a mask of the background of a picture: pixels that do not differ from those around them."""
    low = cv2.erode(pixels, np.ones((3, 3), np.uint8))
    high = cv2.dilate(pixels, np.ones((3, 3), np.uint8))
    blue, green, red = cv2.split(cv2.subtract(high, low))
    return cv2.max(cv2.max(blue, green), red) < DETAIL_THRESHOLD


@dataclass(slots=True)
class _FreeSpace:
    """Remaining free space in a picture. Sums (integral images) are of all pixels above and left of a point."""

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
    _corners: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self._leaves = leaves = _find_leaves(self.boxes)
        self._corners = np.array([box.corners() for box in leaves], np.int64).reshape(-1, 4)
        kept = set(leaves)
        self._holders = [box for box in self.boxes if box not in kept]
        self._taken = _coverage_mask(self.pixels.shape, leaves)
        self._things = cv2.integral(self._taken.astype(np.uint8))
        self._details = cv2.integral((~find_blank_pixels(self.pixels)).astype(np.uint8))

    def place(self, box: Rect, width: int, height: int) -> Rect | None:
        """Reserve and return the best remaining place for a tag of that size, or None."""
        if box in self._full:
            return None
        found = self._beside(box, width, height) or self._far(box, width, height)
        if found is None:
            self._full.add(box)
        else:
            self.tags.append(found)
        return found

    def _beside(self, box: Rect, width: int, height: int) -> Rect | None:
        """Return a place on empty background beside the box or, failing that, inside it or over its edge."""
        for places in (_places_beside(box, width, height), _places_inside(box, width, height)):
            free = self._free(box, places, width, height)
            hidden = _integral_sum(self._details, *_tag_corners(free, width, height))
            empty = free[hidden == _integral_sum(self._details, *_tag_corners(free, width, height, box))]
            if len(empty):
                return Rect(int(empty[0, 0]), int(empty[0, 1]), width, height)
        return None

    def _far(self, box: Rect, width: int, height: int) -> Rect | None:
        """At the end of a free line to it, as near and on as little as possible."""
        places = self._free(box, _places_further_away(box, width, height), width, height)
        away = np.hypot(
            np.maximum(0, np.maximum(box.x - places[:, 0] - width, places[:, 0] - box.right)),
            np.maximum(0, np.maximum(box.y - places[:, 1] - height, places[:, 1] - box.bottom)),
        )
        hidden = _integral_sum(self._details, *_tag_corners(places, width, height))
        for best in np.argsort(away + HIDING_COST * hidden, kind="stable")[:MAX_TRIED_PLACES]:
            tag = Rect(int(places[best, 0]), int(places[best, 1]), width, height)
            if self._in_sight(box, tag):
                return tag
        return None

    def _free(self, box: Rect, places: IntArray, width: int, height: int) -> IntArray:
        """Return the places inside the picture that touch no other tag.

        They also touch no marked element but the box and its containers; inside these, only empty background is free.
        """
        high, wide = self.pixels.shape[:2]
        x, y = places[:, 0], places[:, 1]
        places = places[(x >= 0) & (y >= 0) & (x + width <= wide) & (y + height <= high)]
        own = _corner_area(*_tag_corners(places, width, height, box)) if box not in self._holders else 0
        places = places[_integral_sum(self._things, *_tag_corners(places, width, height)) == own]
        for other in (box, *(other for other in self._holders if other != box and _is_containing(other, box))):
            places = places[
                _integral_sum(self._details, *_tag_corners(places, width, height, _shrink_by_edge(other))) == 0
            ]
        barred = [
            *self.tags,
            *(other for other in self._holders if not _is_containing(other, box)),
            *self._overlapping(box),
        ]
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
        """Return True if the line between box and tag crosses no other element and no tag."""
        (x1, y1), (x2, y2) = _connecting_line(box, tag)
        steps = max(abs(x2 - x1), abs(y2 - y1), 1)
        x = np.rint(np.linspace(x1, x2, steps + 1)).astype(int)
        y = np.rint(np.linspace(y1, y2, steps + 1)).astype(int)
        outside = ~((x >= box.x) & (x < box.right) & (y >= box.y) & (y < box.bottom))
        if (self._taken[y, x] & outside).any():
            return False
        return not any(
            ((x >= other.x) & (x < other.right) & (y >= other.y) & (y < other.bottom)).any() for other in self.tags
        )


def _places_beside(box: Rect, width: int, height: int) -> IntArray:
    """Return places beside the box: above, below, right and left of it, each side starting from its first corner."""
    across = _candidate_steps(box.x, box.right - width, box.x - width + SIDE_STEP, box.right - SIDE_STEP)
    down = _candidate_steps(box.y, box.bottom - height, box.y - height + SIDE_STEP, box.bottom - SIDE_STEP)
    above = [(x, box.y - height - 1) for x in across]
    below = [(x, box.bottom + 1) for x in across]
    right = [(box.right + 1, y) for y in down]
    left = [(box.x - width - 1, y) for y in down]
    return np.array([*above, *below, *right, *left], np.int64)


def _places_inside(box: Rect, width: int, height: int) -> IntArray:
    """Return places inside the box or over its edge, those at its upper left and upper right corner first."""
    step = max(FINE_STEP, box.width // 40)
    across = _candidate_steps(box.x, box.right - width, box.x - width // 2, box.right - width // 2, step)
    lowest = min(box.y + MAX_INSIDE_LINES * height, box.bottom - height // 2)
    return _combine_axes(across, _candidate_steps(box.y, box.bottom - height, box.y - height // 2, lowest, 1))


def _places_further_away(box: Rect, width: int, height: int) -> IntArray:
    """Return places at a greater distance from the box."""
    across = np.arange(box.x - width - MAX_TAG_DISTANCE, box.right + MAX_TAG_DISTANCE, COARSE_STEP)
    down = np.arange(box.y - height - MAX_TAG_DISTANCE, box.bottom + MAX_TAG_DISTANCE, COARSE_STEP)
    places = _combine_axes(across, down)
    return places[_corner_area(*_tag_corners(places, width, height, box)) == 0]


def _combine_axes(across: ArrayLike, down: ArrayLike) -> IntArray:
    return np.stack(np.meshgrid(across, down), axis=-1).reshape(-1, 2).astype(np.int64)


def _candidate_steps(first: int, second: int, low: int, high: int, step: int = SIDE_STEP) -> list[int]:
    """Return the two best positions on a side, then the others from `low` to `high`."""
    return list(dict.fromkeys((first, second, *range(low, high + 1, step))))


def _tag_corners(places: IntArray, width: int, height: int, to: Rect | None = None) -> CornerArrays:
    """Return the corners of tags at the places, or of their parts inside a rectangle.

    Where there is no such part, the corners are one point.
    """
    left, top = places[:, 0], places[:, 1]
    right, bottom = left + width, top + height
    if to is None:
        return left, top, right, bottom
    left, right = (np.minimum(np.maximum(x, to.x), to.right) for x in (left, right))
    top, bottom = (np.minimum(np.maximum(y, to.y), to.bottom) for y in (top, bottom))
    return left, top, right, bottom


def _integral_sum(sums: MatLike, left: IntArray, top: IntArray, right: IntArray, bottom: IntArray) -> IntArray:
    total = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return total.astype(np.int64)


def _corner_area(left: IntArray, top: IntArray, right: IntArray, bottom: IntArray) -> IntArray:
    return (right - left) * (bottom - top)


def _shrink_by_edge(box: Rect) -> Rect:
    """Return the inside of a box without its edge, which shows none of its content."""
    x, y = min(EDGE_WIDTH, box.width // 2), min(EDGE_WIDTH, box.height // 2)
    return Rect(box.x + x, box.y + y, box.width - 2 * x, box.height - 2 * y)


def _tag_size(id: str) -> tuple[int, int]:
    (width, height), _ = cv2.getTextSize(id, TAG_FONT, TAG_FONT_SCALE, 1)
    return width + 2 * TAG_PADDING, height + 2 * TAG_PADDING


def _find_leaves(boxes: Sequence[Rect]) -> list[Rect]:
    """Return the boxes that contain no other box."""
    hold = _find_holders(boxes)
    return [box for box, holds in zip(boxes, hold, strict=True) if not holds]


def _find_holders(boxes: Sequence[Rect]) -> list[bool]:
    """Return for each box True if it contains another box that is not equal to it."""
    corners = np.array([box.corners() for box in boxes], np.int64).reshape(-1, 4)
    outer, inner = corners[:, None], corners[None]
    beyond = (outer[..., :2] > inner[..., :2]).any(axis=2) | (outer[..., 2:] < inner[..., 2:]).any(axis=2)
    return np.any(~beyond & (outer != inner).any(axis=2), axis=1).tolist()


def _coverage_mask(shape: tuple[int, ...], boxes: Iterable[Rect]) -> NDArray[np.bool_]:
    covered = np.zeros(shape[:2], bool)
    for box in boxes:
        covered[box.y : box.bottom, box.x : box.right] = True
    return covered


def _connecting_line(box: Rect, tag: Rect) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the line from the tag to the nearest point of the box."""
    x, y = tag.center
    ends = min(max(x, box.x), box.right - 1), min(max(y, box.y), box.bottom - 1)
    return (min(max(ends[0], tag.x), tag.right - 1), min(max(ends[1], tag.y), tag.bottom - 1)), ends


def _tag_distance(box: Rect, tag: Rect) -> float:
    x = max(0, box.x - tag.right, tag.x - box.right)
    y = max(0, box.y - tag.bottom, tag.y - box.bottom)
    return math.hypot(x, y)


def _cycle_colours() -> Iterator[tuple[int, int, int]]:
    while True:
        yield from MARK_COLOURS


def _is_containing(outer: Rect, inner: Rect) -> bool:
    return outer.intersect(inner) == inner
