"""Coordinate dialects of vision models, and the only conversion from their numbers to pixels.

A backend sends a picture of some size (`Size`), asks, and gets numbers in its model's dialect. `Dialect.point` and
`Dialect.box` convert them to pixels of the picture that was sent; `Transform` maps those to the screen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from handrail.api.observation import Rect
from handrail.errors import OutOfRange

__all__ = ["build_smart_dialect", "compute_smart_size", "fit_size"]

# Pictures longer than this many times their width are refused by the models that want whole patches.
MAX_ASPECT_RATIO: Final = 200


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height of a picture, in pixels."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Dialect:
    """Coordinate system of a model: `extent` returns the coordinates of the right and bottom edges of a picture.

    `top` is the largest number the model may return; None if it may return the edge itself.
    """

    name: str
    extent: Callable[[Size], tuple[float, float]]
    top: float | None = None

    def point(self, x: float, y: float, sent: Size) -> tuple[int, int]:
        """Return the pixel of the sent picture; the far edge counts as its last pixel.

        Raises `OutOfRange` for coordinates beyond that or invalid numbers.
        """
        wide, high = self.extent(sent)
        return self._pixel(x, wide, sent.width), self._pixel(y, high, sent.height)

    def box(self, x1: float, y1: float, x2: float, y2: float, sent: Size) -> Rect:
        """Return the rectangle in the sent picture, at least one pixel wide and high; corners may come in any order."""
        wide, high = self.extent(sent)
        left, right = sorted((self._edge(x1, wide, sent.width), self._edge(x2, wide, sent.width)))
        upper, lower = sorted((self._edge(y1, high, sent.height), self._edge(y2, high, sent.height)))
        x, y = min(math.floor(left), sent.width - 1), min(math.floor(upper), sent.height - 1)
        return Rect(x, y, max(1, math.ceil(right) - x), max(1, math.ceil(lower) - y))

    def say(self, x: float, y: float, sent: Size) -> tuple[float, float]:
        """Return the center of a pixel of the picture in the model's coordinates."""
        wide, high = self.extent(sent)
        return (x + 0.5) * wide / sent.width, (y + 0.5) * high / sent.height

    def _pixel(self, value: float, extent: float, length: int) -> int:
        return min(math.floor(self._edge(value, extent, length)), length - 1)

    def _edge(self, value: float, extent: float, length: int) -> float:
        top = extent if self.top is None else self.top
        if isinstance(value, bool) or not 0 <= value <= top:
            raise OutOfRange(f"the model named {value!r}, and {self.name} coordinates go from 0 to {top:g}")
        # A ratio times what it was divided by is off by a last digit, which is no pixel more.
        return round(value * length / extent, 6)


def _thousand_extent(size: Size) -> tuple[float, float]:
    return 1000.0, 1000.0


# Pixels of the picture that was sent.
PIXELS: Final = Dialect("pixel", lambda size: (size.width, size.height))
# Parts of the whole width and height.
UNIT: Final = Dialect("0 to 1", lambda size: (1.0, 1.0))
# Gemini divides a picture into a thousand steps, counted from 0.
TO_999: Final = Dialect("0 to 999", _thousand_extent, top=999.0)
# Thousandths of the width and height, the far edge among them.
TO_1000: Final = Dialect("0 to 1000", _thousand_extent)


def build_smart_dialect(
    *, factor: int = 28, min_pixels: int = 100 * 28 * 28, max_pixels: int = 16384 * 28 * 28
) -> Dialect:
    """Build the dialect of Qwen-VL models, which count in pixels of the picture as they resize it."""

    def extent(size: Size) -> tuple[float, float]:
        seen = compute_smart_size(size, factor=factor, min_pixels=min_pixels, max_pixels=max_pixels)
        return seen.width, seen.height

    return Dialect("resized", extent)


def compute_smart_size(
    size: Size, *, factor: int = 28, min_pixels: int = 100 * 28 * 28, max_pixels: int = 16384 * 28 * 28
) -> Size:
    """Return the size to which a Qwen-VL model resizes a picture.

    The sides are multiples of `factor`, the area lies between the two limits, and the aspect ratio is kept. Source:
    `smart_resize` of qwen-vl-utils. Raises `OutOfRange` if one side is more than 200 times the other.
    """
    short, long = sorted((size.width, size.height))
    if short <= 0 or long / short > MAX_ASPECT_RATIO:
        raise OutOfRange(f"a picture of {size.width} x {size.height} pixels is too long for the model")
    width, height = (max(factor, round(side / factor) * factor) for side in (size.width, size.height))
    if width * height > max_pixels:
        shrink = math.sqrt(size.width * size.height / max_pixels)
        width, height = (max(factor, math.floor(s / shrink / factor) * factor) for s in (size.width, size.height))
    elif width * height < min_pixels:
        grow = math.sqrt(min_pixels / (size.width * size.height))
        width, height = (math.ceil(side * grow / factor) * factor for side in (size.width, size.height))
    return Size(width, height)


def fit_size(size: Size, *, longest: int | None = None, pixels: int | None = None) -> Size:
    """Return the picture size for a model with a limit on the longer side or on the total, both in pixels.

    The picture is never enlarged, and its aspect ratio is kept.
    """
    scale = 1.0
    if longest is not None:
        scale = min(scale, longest / max(size.width, size.height))
    if pixels is not None:
        scale = min(scale, math.sqrt(pixels / (size.width * size.height)))
    if scale >= 1:
        return size
    return Size(max(1, math.floor(size.width * scale)), max(1, math.floor(size.height * scale)))
