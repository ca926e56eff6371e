"""Detection of boxes and icons by edges alone: click targets without text of their own, or with a frame around it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import cv2
import numpy as np

from handrail_vision_ocr.incremental_ocr import PixelBox, is_touching
from handrail_vision_ocr.worker_protocol import FoundItem

if TYPE_CHECKING:
    from handrail_vision_ocr.worker_protocol import Picture

# Pixels.
MIN_SIDE = 8
LARGEST_ICON = 72
LOWEST_BOX, HIGHEST_BOX = 16, 90
# Two are the same when they share so much of the area that they cover together.
SAME_OVERLAP = 0.6
MAX_CONTROLS = 300


def find_controls(pixels: Picture, texts: Iterable[FoundItem]) -> list[FoundItem]:
    """Find boxes that may be buttons, fields or tabs, named by the text in them, and icons without text."""
    texts = list(texts)
    found: list[FoundItem] = []
    for shape in _find_shapes(pixels):
        within = [text for text in texts if _has_box_inside(shape, text.box)]
        if not within and any(is_touching(shape, text.box) for text in texts):
            # Letters, or a piece of a line.
            continue
        if not within and _is_icon(shape):
            found.append(FoundItem("icon", "", shape, look=_compute_fingerprint(pixels, shape)))
        elif len(within) <= 1 and _is_box(shape):
            found.append(
                FoundItem("box", within[0].text if within else "", shape, look=_compute_fingerprint(pixels, shape))
            )
    # Of a large empty table, cells are left out before anything else is.
    return sorted(found, key=lambda control: control.role == "box" and not control.text)[:MAX_CONTROLS]


def _find_shapes(pixels: Picture) -> list[PixelBox]:
    """Return the bounding boxes of all outlines, largest first, without duplicates."""
    gray = cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY)
    edges = cv2.morphologyEx(cv2.Canny(gray, 30, 90), cv2.MORPH_CLOSE, np.ones((3, 5), np.uint8))
    outlines, _ = cv2.findContours(edges, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    boxes = [tuple(int(v) for v in cv2.boundingRect(outline)) for outline in outlines]
    large = [(x, y, w, h) for x, y, w, h in boxes if min(w, h) >= MIN_SIDE and h <= HIGHEST_BOX]
    return _drop_duplicates(sorted(large, key=lambda box: -box[2] * box[3])[: 4 * MAX_CONTROLS])


def _drop_duplicates(boxes: list[PixelBox]) -> list[PixelBox]:
    """Remove boxes that are almost the same as an earlier one."""
    sides = np.array(boxes, np.int64).reshape(-1, 4)
    starts, ends = sides[:, :2], sides[:, :2] + sides[:, 2:]
    kept: list[int] = []
    for at in range(len(boxes)):
        first, last = starts[kept], ends[kept]
        both = (np.minimum(ends[at], last) - np.maximum(starts[at], first)).clip(0).prod(axis=1)
        around = (np.maximum(ends[at], last) - np.minimum(starts[at], first)).prod(axis=1)
        if not (both > SAME_OVERLAP * around).any():
            kept.append(at)
    return [boxes[at] for at in kept]


def _is_box(shape: PixelBox) -> bool:
    _, _, width, height = shape
    return LOWEST_BOX <= height <= HIGHEST_BOX and width >= height


def _is_icon(shape: PixelBox) -> bool:
    _, _, width, height = shape
    return max(width, height) <= LARGEST_ICON and 0.4 <= width / height <= 2.5


def _has_box_inside(outer: PixelBox, inner: PixelBox) -> bool:
    """Return True if the center and most of the width of the inner box are inside the outer one."""
    x, y = inner[0] + inner[2] / 2, inner[1] + inner[3] / 2
    inside = outer[0] <= x < outer[0] + outer[2] and outer[1] <= y < outer[1] + outer[3]
    return inside and inner[2] <= outer[2] * 1.1


def _compute_fingerprint(pixels: Picture, shape: PixelBox) -> str:
    """Return a short visual fingerprint, equal while the look stays the same.

    It records which of 64 parts are lighter than average.
    """
    x, y, width, height = shape
    small = cv2.resize(
        cv2.cvtColor(pixels[y : y + height, x : x + width], cv2.COLOR_BGR2GRAY), (8, 8), interpolation=cv2.INTER_AREA
    )
    bits = (small > small.mean()).flatten()
    return f"{int(''.join('1' if bit else '0' for bit in bits), 2):016x}"
