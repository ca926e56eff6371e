"""Pictures for models: scaled, passwords covered, as JPEG. Blocking; a few milliseconds."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import Downstream, Element, Frame, Transform
from handrail_gui.platforms.opencv import cv2

if TYPE_CHECKING:
    from cv2.typing import MatLike

JPEG_QUALITY = 80

COVER_COLOUR = (90, 90, 90)


def scale_frame(frame: Frame, transform: Transform) -> MatLike:
    """Return the frame's pixels at the transform's size: the frame's own array if no scaling is needed."""
    pixels: MatLike = frame.pixels
    height, width = pixels.shape[:2]
    if (width, height) == (transform.width, transform.height):
        return pixels
    return cv2.resize(pixels, (transform.width, transform.height), interpolation=cv2.INTER_AREA)


def cover_passwords(pixels: MatLike, elements: Iterable[Element], transform: Transform) -> MatLike:
    """Return the pixels with every password field painted over: a copy if there are any, else the same array."""
    boxes = [transform.to_image(e.rect) for e in elements if "password" in e.states and e.rect is not None]
    if not boxes:
        return pixels
    covered = pixels.copy()
    for box in boxes:
        cv2.rectangle(covered, (box.x, box.y), (box.right, box.bottom), COVER_COLOUR, cv2.FILLED)
    return covered


def encode_jpeg(pixels: MatLike) -> str:
    """Encode the picture as a base64 JPEG."""
    done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not done:
        raise Downstream("the picture could not be encoded")
    return base64.b64encode(data.tobytes()).decode("ascii")
