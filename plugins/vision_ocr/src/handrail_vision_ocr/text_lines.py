"""Text lines in a picture, by RapidOCR's models (PP-OCR), on the processor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from handrail_vision_ocr.line_split import is_one_text, iter_items, measure_spacing, split_box
from handrail_vision_ocr.worker_protocol import FoundItem

if TYPE_CHECKING:
    from handrail_vision_ocr.incremental_ocr import PixelBox
    from handrail_vision_ocr.worker_protocol import Picture

# The models look for text in pictures at least so high and wide; smaller ones are set on a larger ground of their own colour.
MIN_SIDE = 64
# Pixels on the longer side beyond which a picture is made smaller before text is looked for; it is read as it is.
MAX_SIDE = 2000
# Text that is so much higher than wide is on its side.
UPRIGHT_RATIO = 1.5


class TextLineReader:
    """The models, loaded with the first picture."""

    def __init__(self, *, threads: int, confidence: float) -> None:
        self._threads = threads
        self._confidence = confidence
        self._models: Any = None

    def read(self, pixels: Picture) -> list[FoundItem]:
        """Return the lines of text from top to bottom; adjacent items are separate lines."""
        if int(pixels.min()) == int(pixels.max()):
            # One colour: nothing is written there.
            return []
        boxes = [piece for line in self._lines(pixels) for piece in split_box(pixels, line)]
        found = [_create_text(*read) for read in self._read(pixels, boxes)]
        sure = [line for line in found if line.text.strip() and (line.confidence or 0) >= self._confidence]
        return sorted(_split_items(pixels, sure), key=lambda line: (line.box[1] // 8, line.box[0]))

    def _lines(self, pixels: Picture) -> list[PixelBox]:
        """Return the boxes that contain text."""
        height, width = pixels.shape[:2]
        seen = self._loaded()(_pad_to_minimum(pixels), use_det=True, use_cls=False, use_rec=False)
        corners = () if seen.boxes is None else seen.boxes
        return [box for each in corners if (box := _find_bounding_box(each, width, height)) is not None]

    def _read(self, pixels: Picture, boxes: list[PixelBox]) -> Iterable[tuple[PixelBox, str, float]]:
        """Return the text in each box with its confidence."""
        if not boxes:
            return ()
        read = self._loaded().recognize_txt([_crop_upright(pixels, box) for box in boxes])
        return zip(boxes, read.txts, map(float, read.scores), strict=True)

    def _loaded(self) -> Any:
        if self._models is None:
            from rapidocr import RapidOCR

            self._models = RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "Global.use_cls": False,
                    "Global.max_side_len": MAX_SIDE,
                    # A picture is never enlarged: a part of the screen is read as it is in the whole.
                    "Det.limit_type": "max",
                    "Det.limit_side_len": MAX_SIDE,
                    "EngineConfig.onnxruntime.intra_op_num_threads": self._threads,
                    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                }
            )
        return self._models


def _create_text(box: PixelBox, text: str, score: float) -> FoundItem:
    return FoundItem("text", text, box, confidence=round(score, 3))


def _split_items(pixels: Picture, lines: Iterable[FoundItem]) -> Iterator[FoundItem]:
    """Yield the lines, split into items where a line is more than one."""
    looked_at = [(line, measure_spacing(pixels, line.box, line.text)) for line in lines]
    loose = [each for _, each in looked_at if each]
    for line, each in looked_at:
        if each is None or is_one_text(each, loose):
            yield line
        else:
            yield from (replace(line, text=text, box=box) for text, box in iter_items(each, line.box))


def _pad_to_minimum(pixels: Picture) -> Picture:
    height, width = pixels.shape[:2]
    if height >= MIN_SIDE and width >= MIN_SIDE:
        return pixels
    ground = np.empty((max(height, MIN_SIDE), max(width, MIN_SIDE), 3), np.uint8)
    ground[:] = pixels[0, 0]
    ground[:height, :width] = pixels
    return ground


def _crop_upright(pixels: Picture, box: PixelBox) -> Picture:
    left, top, width, height = box
    cut = pixels[top : top + height, left : left + width]
    return np.ascontiguousarray(np.rot90(cut) if height >= UPRIGHT_RATIO * width else cut)


def _find_bounding_box(corners: Picture, width: int, height: int) -> tuple[int, int, int, int] | None:
    """Return the bounding box of four corners, clipped to the picture; None if no part is inside."""
    left, top = (max(0, int(v)) for v in np.floor(corners.min(axis=0)))
    right, bottom = (int(v) for v in np.ceil(corners.max(axis=0)))
    right, bottom = min(right, width), min(bottom, height)
    return (left, top, right - left, bottom - top) if right > left and bottom > top else None
