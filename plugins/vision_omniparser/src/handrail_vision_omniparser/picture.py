"""Pictures for the server. Blocking; a few hundredths of a second."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from handrail import Size

# Pixels of a line of text that every reader finds.
HEIGHT, WIDTH = 64, 320
LETTERS = 28
LINE = "A line of text"


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG of some size, whose upper left part, `shown`, is of the screen."""

    png: bytes
    size: Size
    shown: Size


def picture(pixels: Any) -> Picture:
    """The pixels (height x width x 3, BGR) as they are."""
    size = Size(pixels.shape[1], pixels.shape[0])
    return Picture(_png(_image(pixels)), size, size)


def with_a_line(pixels: Any) -> Picture:
    """The pixels with a line of text below them."""
    shown = Size(pixels.shape[1], pixels.shape[0])
    size = Size(max(shown.width, WIDTH), shown.height + HEIGHT)
    ground = Image.new("RGB", (size.width, size.height), "white")
    ground.paste(_image(pixels), (0, 0))
    ImageDraw.Draw(ground).text((16, shown.height + 16), LINE, fill="black", font=ImageFont.load_default(LETTERS))
    return Picture(_png(ground), size, shown)


def sample() -> Picture:
    """A line of text alone, to begin with."""
    ground = Image.new("RGB", (WIDTH, HEIGHT), "white")
    ImageDraw.Draw(ground).text((16, 16), LINE, fill="black", font=ImageFont.load_default(LETTERS))
    return Picture(_png(ground), Size(WIDTH, HEIGHT), Size(WIDTH, HEIGHT))


def _image(pixels: Any) -> Image.Image:
    return Image.fromarray(pixels[:, :, ::-1])


def _png(image: Image.Image) -> bytes:
    buffer = BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
