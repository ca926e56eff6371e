"""Pictures for the server. Blocking; a few hundredths of a second."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from handrail import Size

# Pixels of a line of text that every reader finds.
SAMPLE_HEIGHT, SAMPLE_WIDTH = 64, 320
FONT_SIZE = 28
SAMPLE_TEXT = "A line of text"


@dataclass(frozen=True, slots=True)
class RequestPicture:
    """A PNG of some size, whose upper left part, `shown`, is of the screen."""

    png: bytes
    size: Size
    shown: Size


def create_picture(pixels: Any) -> RequestPicture:
    """Encode the pixels (height x width x 3, BGR) unchanged."""
    size = Size(pixels.shape[1], pixels.shape[0])
    return RequestPicture(_encode_png(_to_image(pixels)), size, size)


def add_text_line(pixels: Any) -> RequestPicture:
    """Encode the pixels with a line of text below them."""
    shown = Size(pixels.shape[1], pixels.shape[0])
    size = Size(max(shown.width, SAMPLE_WIDTH), shown.height + SAMPLE_HEIGHT)
    ground = Image.new("RGB", (size.width, size.height), "white")
    ground.paste(_to_image(pixels), (0, 0))
    ImageDraw.Draw(ground).text(
        (16, shown.height + 16), SAMPLE_TEXT, fill="black", font=ImageFont.load_default(FONT_SIZE)
    )
    return RequestPicture(_encode_png(ground), size, shown)


def create_sample() -> RequestPicture:
    """Create a picture with only a line of text, for the first request."""
    ground = Image.new("RGB", (SAMPLE_WIDTH, SAMPLE_HEIGHT), "white")
    ImageDraw.Draw(ground).text((16, 16), SAMPLE_TEXT, fill="black", font=ImageFont.load_default(FONT_SIZE))
    return RequestPicture(_encode_png(ground), Size(SAMPLE_WIDTH, SAMPLE_HEIGHT), Size(SAMPLE_WIDTH, SAMPLE_HEIGHT))


def _to_image(pixels: Any) -> Image.Image:
    return Image.fromarray(pixels[:, :, ::-1])


def _encode_png(image: Image.Image) -> bytes:
    buffer = BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
