"""Reading again only what has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import cv2
import numpy as np

from handrail_vision_ocr.worker_protocol import FoundItem

if TYPE_CHECKING:
    from handrail_vision_ocr.worker_protocol import Picture

PixelBox = tuple[int, int, int, int]

TILE = 16
# Of the picture, above which the whole is read at once.
MOSTLY = 0.5
# Places of the screen whose last picture is kept.
MAX_KEPT = 4
# Passes in which a changed part grows to hold the lines it touches.
GROWTH = 4


class PictureMemory:
    """The last picture of each place with its lines. `read` finds the lines of a picture without looking at what is as it was."""

    def __init__(self, reading: Callable[[Picture], list[FoundItem]]) -> None:
        self._reading = reading
        self._seen: OrderedDict[tuple[int, ...], tuple[Picture, list[FoundItem]]] = OrderedDict()

    def read(self, pixels: Picture, *, place: list[int]) -> list[FoundItem]:
        """Return all lines in the picture."""
        key = tuple(place)
        before = self._seen.pop(key, None)
        if before is None or before[0].shape != pixels.shape:
            lines = self._reading(pixels)
        else:
            lines = self._again(pixels, *before)
        self._seen[key] = pixels, lines
        while len(self._seen) > MAX_KEPT:
            self._seen.popitem(last=False)
        return lines

    def _again(self, pixels: Picture, old: Picture, lines: list[FoundItem]) -> list[FoundItem]:
        parts = [_grow_box(part, lines) for part in find_changed_boxes(old, pixels)]
        if not parts:
            return lines
        parts = list(_merge_touching(parts))
        if sum(width * height for _, _, width, height in parts) > MOSTLY * pixels.shape[0] * pixels.shape[1]:
            return self._reading(pixels)
        kept = [line for line in lines if not any(is_touching(line.box, part) for part in parts)]
        for x, y, width, height in parts:
            for line in self._reading(np.ascontiguousarray(pixels[y : y + height, x : x + width])):
                left, top, wide, high = line.box
                kept.append(replace(line, box=(x + left, y + top, wide, high)))
        return sorted(kept, key=lambda line: (line.box[1] // 8, line.box[0]))


def find_changed_boxes(old: Picture, new: Picture) -> Iterator[PixelBox]:
    """Yield rectangles that together contain all pixels that differ, each with a margin of one tile."""
    height, width = new.shape[:2]
    differs = (old != new).any(axis=2)
    rows, columns = -(-height // TILE), -(-width // TILE)
    padded = np.zeros((rows * TILE, columns * TILE), bool)
    padded[:height, :width] = differs
    tiles = np.asarray(padded.reshape(rows, TILE, columns, TILE).any(axis=(1, 3)), np.uint8)
    if not tiles.any():
        return
    tiles = cv2.dilate(tiles, np.ones((3, 3), np.uint8))
    count, _, stats, _ = cv2.connectedComponentsWithStats(tiles, connectivity=8)
    for part in stats[1:count]:
        x, y, wide, high = (int(value) for value in part[:4])
        left, top = x * TILE, y * TILE
        yield left, top, min(wide * TILE, width - left), min(high * TILE, height - top)


def is_touching(one: PixelBox, other: PixelBox) -> bool:
    """Return True if the boxes have a pixel in common."""
    return (
        one[0] < other[0] + other[2]
        and other[0] < one[0] + one[2]
        and one[1] < other[1] + other[3]
        and other[1] < one[1] + one[3]
    )


def enclosing_box(one: PixelBox, other: PixelBox) -> PixelBox:
    """Return the smallest rectangle that contains both boxes."""
    x, y = min(one[0], other[0]), min(one[1], other[1])
    return x, y, max(one[0] + one[2], other[0] + other[2]) - x, max(one[1] + one[3], other[1] + other[3]) - y


def _grow_box(part: PixelBox, lines: list[FoundItem]) -> PixelBox:
    """Extend the part to the whole of each line it touches: half a line cannot be read."""
    for _ in range(GROWTH):
        before = part
        for line in lines:
            if is_touching(part, line.box):
                part = enclosing_box(part, line.box)
        if part == before:
            break
    return part


def _merge_touching(parts: list[PixelBox]) -> Iterator[PixelBox]:
    """Yield the parts, merging those that touch."""
    left = list(parts)
    while left:
        one = left.pop()
        while touching := [other for other in left if is_touching(one, other)]:
            for other in touching:
                left.remove(other)
                one = enclosing_box(one, other)
        yield one
