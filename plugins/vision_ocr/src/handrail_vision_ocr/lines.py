"""Text lines in a picture, by RapidOCR's models (PP-OCR), on the processor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from handrail_vision_ocr.wire import Found

if TYPE_CHECKING:
    from handrail_vision_ocr.wire import Picture

# The models look for text in pictures at least so high and wide; smaller ones are set on a larger ground of their own colour.
SMALLEST = 64
# Pixels on the longer side beyond which a picture is made smaller before it is read.
LONGEST = 2000


class Lines:
    """The models, loaded with the first picture."""

    def __init__(self, *, threads: int, confidence: float) -> None:
        self._threads = threads
        self._confidence = confidence
        self._models: Any = None

    def read(self, pixels: Picture) -> list[Found]:
        """The lines that are written there, from top to bottom."""
        height, width = pixels.shape[:2]
        if int(pixels.min()) == int(pixels.max()):
            # One colour: nothing is written there.
            return []
        seen = self._loaded()(_grounded(pixels), use_cls=False)
        if seen.boxes is None:
            return []
        found = [
            Found("text", text, box, confidence=round(float(score), 3))
            for corners, text, score in zip(seen.boxes, seen.txts, seen.scores, strict=True)
            if text.strip() and (box := _box(corners, width, height)) is not None
        ]
        return sorted(found, key=lambda line: (line.box[1] // 8, line.box[0]))

    def _loaded(self) -> Any:
        if self._models is None:
            from rapidocr import RapidOCR

            self._models = RapidOCR(
                params={
                    "Global.log_level": "critical",
                    "Global.use_cls": False,
                    "Global.max_side_len": LONGEST,
                    "Global.text_score": self._confidence,
                    # A picture is never enlarged: a part of the screen is read as it is in the whole.
                    "Det.limit_type": "max",
                    "Det.limit_side_len": LONGEST,
                    "EngineConfig.onnxruntime.intra_op_num_threads": self._threads,
                    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                }
            )
        return self._models


def _grounded(pixels: Picture) -> Picture:
    height, width = pixels.shape[:2]
    if height >= SMALLEST and width >= SMALLEST:
        return pixels
    ground = np.empty((max(height, SMALLEST), max(width, SMALLEST), 3), np.uint8)
    ground[:] = pixels[0, 0]
    ground[:height, :width] = pixels
    return ground


def _box(corners: Picture, width: int, height: int) -> tuple[int, int, int, int] | None:
    """The upright rectangle around four corners, cut to the picture; None where nothing of it is in the picture."""
    left, top = (max(0, int(v)) for v in np.floor(corners.min(axis=0)))
    right, bottom = (int(v) for v in np.ceil(corners.max(axis=0)))
    right, bottom = min(right, width), min(bottom, height)
    return (left, top, right - left, bottom - top) if right > left and bottom > top else None
