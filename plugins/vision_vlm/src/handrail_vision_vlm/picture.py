"""Pictures for models. Blocking; a few hundredths of a second."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from PIL import Image

from handrail import Size

# Bytes above which a picture is sent as a JPEG: most vendors take 5 MB.
MAX_PNG_BYTES = 4_000_000
JPEG_QUALITY = 90


@dataclass(frozen=True, slots=True)
class EncodedPicture:
    """A picture as a data URL, and its size."""

    url: str
    size: Size


def encode_picture(pixels: Any, size: Size) -> EncodedPicture:
    """Encode the pixels (height x width x 3, BGR) as a picture of that size."""
    image = Image.fromarray(pixels[:, :, ::-1])
    if image.size != (size.width, size.height):
        smaller = size.width * size.height < image.width * image.height
        image = image.resize((size.width, size.height), Image.Resampling.BOX if smaller else Image.Resampling.BICUBIC)
    data, kind = _encode_image(image, "PNG", compress_level=1), "png"
    if len(data) > MAX_PNG_BYTES:
        data, kind = _encode_image(image, "JPEG", quality=JPEG_QUALITY, subsampling=0), "jpeg"
    return EncodedPicture(f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}", size)


def _encode_image(image: Image.Image, form: str, **options: Any) -> bytes:
    buffer = BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()
