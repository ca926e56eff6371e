"""The process in which pictures are read: `python -m handrail_vision_ocr.worker THREADS CONFIDENCE`.

It answers one request after another and ends when its input does.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from handrail_vision_ocr import worker_protocol
from handrail_vision_ocr.controls import find_controls
from handrail_vision_ocr.incremental_ocr import PictureMemory
from handrail_vision_ocr.text_lines import TextLineReader

if TYPE_CHECKING:
    from handrail_vision_ocr.worker_protocol import Picture


def serve_requests() -> None:
    """Serve until the other side is gone."""
    asked, told = sys.stdin.buffer, sys.stdout.buffer
    # What libraries print must not get between the answers.
    sys.stdout = sys.stderr
    memory = PictureMemory(TextLineReader(threads=int(sys.argv[1]), confidence=float(sys.argv[2])).read)
    while head := asked.readline():
        request = json.loads(head)
        if "warm_up" in request:
            memory.read(np.zeros((32, 32, 3), np.uint8), place=[])
            told.write(worker_protocol.format_message({"warm": True}))
        else:
            pixels = _read_pixels(asked, request["height"], request["width"])
            texts = memory.read(pixels, place=request["place"])
            told.write(
                worker_protocol.format_answer([*texts, *(find_controls(pixels, texts) if request["controls"] else [])])
            )
        told.flush()


def _read_pixels(asked: BinaryIO, height: int, width: int) -> Picture:
    size = height * width * 3
    data = asked.read(size)
    if len(data) != size:
        raise EOFError("the picture ends in the middle")
    return np.frombuffer(data, np.uint8).reshape(height, width, 3)


if __name__ == "__main__":
    serve_requests()
