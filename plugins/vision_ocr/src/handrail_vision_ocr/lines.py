"""Text lines in a picture, by RapidOCR's models (PP-OCR), on the processor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from handrail_vision_ocr.pieces import items, one_text, pieces, spaced
from handrail_vision_ocr.wire import Found

if TYPE_CHECKING:
    from handrail_vision_ocr.changes import Box
    from handrail_vision_ocr.wire import Picture

# The models look for text in pictures at least so high and wide; smaller ones are set on a larger ground of their own colour.
SMALLEST = 64
# Pixels on the longer side beyond which a picture is made smaller before text is looked for; it is read as it is.
LONGEST = 2000
# Text that is so much higher than wide is on its side.
UPRIGHT = 1.5


class Lines:
    """The models, loaded with the first picture."""

    def __init__(self, *, threads: int, confidence: float) -> None:
        self._threads = threads
        self._confidence = confidence
        self._models: Any = None

    def read(self, pixels: Picture) -> list[Found]:
        """The lines that are written there, from top to bottom; items that stand side by side are lines of their own."""
        if int(pixels.min()) == int(pixels.max()):
            # One colour: nothing is written there.
            return []
        boxes = [piece for line in self._lines(pixels) for piece in pieces(pixels, line)]
        found = [_found(*read) for read in self._read(pixels, boxes)]
        sure = [line for line in found if line.text.strip() and (line.confidence or 0) >= self._confidence]
        return sorted(_apart(pixels, sure), key=lambda line: (line.box[1] // 8, line.box[0]))

    def _lines(self, pixels: Picture) -> list[Box]:
        """Where something is written."""
        height, width = pixels.shape[:2]
        seen = self._loaded()(_grounded(pixels), use_det=True, use_cls=False, use_rec=False)
        corners = () if seen.boxes is None else seen.boxes
        return [box for each in corners if (box := _box(each, width, height)) is not None]

    def _read(self, pixels: Picture, boxes: list[Box]) -> Iterable[tuple[Box, str, float]]:
        """What is written in each box, and how sure that is."""
        if not boxes:
            return ()
        read = self._loaded().recognize_txt([_cut(pixels, box) for box in boxes])
        return zip(boxes, read.txts, map(float, read.scores), strict=True)

    def _loaded(self) -> Any:
        if self._models is None:
            from rapidocr import RapidOCR

            self._models = RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "Global.use_cls": False,
                    "Global.max_side_len": LONGEST,
                    # A picture is never enlarged: a part of the screen is read as it is in the whole.
                    "Det.limit_type": "max",
                    "Det.limit_side_len": LONGEST,
                    "EngineConfig.onnxruntime.intra_op_num_threads": self._threads,
                    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                }
            )
        return self._models


def _found(box: Box, text: str, score: float) -> Found:
    return Found("text", text, box, confidence=round(score, 3))


def _apart(pixels: Picture, lines: Iterable[Found]) -> Iterator[Found]:
    """The lines, and of those that are more than one item each item."""
    looked_at = [(line, spaced(pixels, line.box, line.text)) for line in lines]
    loose = [each for _, each in looked_at if each]
    for line, each in looked_at:
        if each is None or one_text(each, loose):
            yield line
        else:
            yield from (replace(line, text=text, box=box) for text, box in items(each, line.box))


def _grounded(pixels: Picture) -> Picture:
    height, width = pixels.shape[:2]
    if height >= SMALLEST and width >= SMALLEST:
        return pixels
    ground = np.empty((max(height, SMALLEST), max(width, SMALLEST), 3), np.uint8)
    ground[:] = pixels[0, 0]
    ground[:height, :width] = pixels
    return ground


def _cut(pixels: Picture, box: Box) -> Picture:
    left, top, width, height = box
    cut = pixels[top : top + height, left : left + width]
    return np.ascontiguousarray(np.rot90(cut) if height >= UPRIGHT * width else cut)


def _box(corners: Picture, width: int, height: int) -> tuple[int, int, int, int] | None:
    """The upright rectangle around four corners, cut to the picture; None where nothing of it is in the picture."""
    left, top = (max(0, int(v)) for v in np.floor(corners.min(axis=0)))
    right, bottom = (int(v) for v in np.ceil(corners.max(axis=0)))
    right, bottom = min(right, width), min(bottom, height)
    return (left, top, right - left, bottom - top) if right > left and bottom > top else None
