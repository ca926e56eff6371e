"""Pictures, made ready for a model to look at. Runs in the worker."""

from __future__ import annotations

import os
from collections.abc import Mapping
from io import BytesIO
from typing import IO, Any

from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from handrail.workers.parse_refusal import ParseRefused

# Pictures of several cameras (MPO) are opened as JPEG.
ACCEPTED_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "DIB")
# Formats that are made for photographs.
LOSSY_FORMATS = frozenset({"JPEG", "MPO"})
MAX_SIDE = 2_000
# Known from the header. Decoded they take up to 400 MB.
MAX_PIXELS = 100_000_000
# Above it, what came without loss is made a JPEG as well.
MAX_PNG_BYTES = 2_000_000
QUALITY = 85
WHITE = (255, 255, 255)


def read_image(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the image upright and at most 2,000 pixels wide and high, as PNG or JPEG in the bytes. `args`: none."""
    assert fd is not None
    # The limit of our own is told with numbers and a cure.
    Image.MAX_IMAGE_PIXELS = None
    with os.fdopen(os.dup(fd), "rb") as file:
        original = _open_image(file).size
        image, notes = _decode_image(file)
        kind, frames = image.format or "", _count_frames(file)
    if frames > 1:
        notes.append(_first_frame_note(frames, kind))
    shown = _fit_image(image)
    data, mime_type = _encode_image(shown, lossy=kind in LOSSY_FORMATS)
    result: dict[str, Any] = {"width": shown.width, "height": shown.height, "mime_type": mime_type, "format": kind}
    if shown.size != original:
        result |= {"original_width": original[0], "original_height": original[1]}
    if notes:
        result["note"] = "; ".join(notes)
    return result, data


def load_image(file: IO[bytes]) -> tuple[Image.Image, list[str]]:
    """Return the first frame of the image in full size, upright, in 8 bits, RGB or with transparency; and notes."""
    Image.MAX_IMAGE_PIXELS = None
    image, notes = _decode_image(file, fitted=False)
    if (frames := _count_frames(file)) > 1:
        notes.append(_first_frame_note(frames, image.format or ""))
    return _normalize_image(image), notes


def _first_frame_note(frames: int, kind: str) -> str:
    return f"it has {frames} {'pages' if kind == 'TIFF' else 'frames'}; the first is shown"


def _decode_image(file: IO[bytes], *, fitted: bool = True) -> tuple[Image.Image, list[str]]:
    """Return the first frame of the image, decoded, and notes about it."""
    image = _open_image(file)
    if fitted:
        # A JPEG is decoded at a half or a quarter of its size where that is enough.
        image.draft("RGB", (MAX_SIDE, MAX_SIDE))
    try:
        image.load()
    except (OSError, SyntaxError) as exc:
        return _salvage_image(file, exc), ["the file is damaged or cut off, and a part of the picture is missing"]
    return image, []


def _open_image(file: IO[bytes]) -> Image.Image:
    file.seek(0)
    try:
        image = Image.open(file, formats=ACCEPTED_FORMATS)
    except UnidentifiedImageError:
        raise ParseRefused(
            "unreadable",
            "it is no picture of a kind that is read here",
            hint="PNG, JPEG, BMP, GIF, TIFF and WebP are; convert it, or open it and use observe_screen",
        ) from None
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ParseRefused(
            "limit",
            f"it has {width} x {height} pixels, and at most {MAX_PIXELS:,} are decoded",
            hint="make a smaller copy first: `vipsthumbnail` and `convert -define jpeg:size=2000x2000` take little memory",
        )
    return image


def _salvage_image(file: IO[bytes], damage: Exception) -> Image.Image:
    """Return what remains of a damaged image. Raises `ParseRefused` if nothing does."""
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        image = _open_image(file)
        image.load()
    except (OSError, SyntaxError, ValueError) as exc:
        raise ParseRefused("unreadable", f"the picture is damaged: {damage}") from exc
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    return image


def _count_frames(file: IO[bytes]) -> int:
    """Count the frames.

    Counting seeks to the last one, and a later one may be damaged; so it does not use the image that is shown.
    """
    try:
        return int(getattr(_open_image(file), "n_frames", 1))
    except (OSError, SyntaxError, ValueError, EOFError):
        return 1


def _fit_image(image: Image.Image) -> Image.Image:
    """Upright, in 8 bits, RGB or with transparency, within the size shown."""
    image = _normalize_image(image)
    image.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return image


def _normalize_image(image: Image.Image) -> Image.Image:
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith(("I", "F")):
        image = _reduce_to_eight_bits(image)
    if image.mode in ("L", "RGB", "RGBA"):
        return image
    if image.mode == "1":
        return image.convert("L")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _reduce_to_eight_bits(image: Image.Image) -> Image.Image:
    """Reduce 16-bit integers to their upper 8 bits, and stretch any other values from the minimum to the maximum."""
    low, high = 0.0, 65_535.0
    if not image.mode.startswith("I;16"):
        found: Any = image.getextrema()
        low, high = float(found[0]), float(found[1])
    values = image.convert("F")
    scale = 255.0 / ((high - low) or 1.0)
    return values.point(lambda value: value * scale - low * scale).convert("L")


def _encode_image(image: Image.Image, *, lossy: bool) -> tuple[bytes, str]:
    if not lossy or image.mode == "RGBA":
        out = BytesIO()
        image.save(out, "PNG")
        if len(out.getvalue()) <= MAX_PNG_BYTES:
            return out.getvalue(), "image/png"
    if image.mode == "RGBA":
        ground = Image.new("RGB", image.size, WHITE)
        ground.paste(image, mask=image.getchannel("A"))
        image = ground
    out = BytesIO()
    image.save(out, "JPEG", quality=QUALITY)
    return out.getvalue(), "image/jpeg"
