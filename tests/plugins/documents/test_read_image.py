"""Pictures by `read_image`."""

from __future__ import annotations

import base64
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.plugins.documents.conftest import Call

from handrail import ToolResult

GREY = ("1", "I;16", "I", "F")
RED, BLUE = (255, 0, 0), (0, 0, 255)


def two_halves(width: int = 60, height: int = 40, mode: str = "RGB") -> Image.Image:
    """Red on the left, blue on the right."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (width // 2, 0, width, height))
    return image.convert(mode)


def shown(result: ToolResult) -> Image.Image:
    assert result.ok, result
    image = Image.open(BytesIO(base64.b64decode(result["image_b64"])))
    assert image.size == (result["width"], result["height"])
    assert Image.MIME[image.format or ""] == result["mime_type"]
    return image.convert("RGB")


def near(found: Any, wanted: tuple[int, int, int]) -> bool:
    return all(abs(a - b) < 40 for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP"])
async def test_each_format_is_shown(call: Call, folder: Path, kind: str) -> None:
    two_halves().save(folder / "a", kind)
    result = await call("read_image", "a")
    image = shown(result)
    assert image.size == (60, 40)
    assert near(image.getpixel((5, 20)), RED)
    assert near(image.getpixel((55, 20)), BLUE)
    assert result["format"] == kind
    assert result["mime_type"] == ("image/jpeg" if kind == "JPEG" else "image/png")


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "CMYK", "I;16", "I", "F"])
async def test_each_mode_is_shown(call: Call, folder: Path, mode: str) -> None:
    if mode in GREY:
        image = Image.new(mode, (60, 40), 0)
        image.paste(65_535, (30, 0, 60, 40))
    else:
        image = two_halves(mode=mode)
    image.save(folder / "a.tif")
    seen = shown(await call("read_image", "a.tif"))
    left, right = seen.getpixel((5, 20)), seen.getpixel((55, 20))
    if mode in GREY:
        assert near(left, (0, 0, 0))
        assert near(right, (255, 255, 255))
    else:
        assert left != right


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize(
    ("orientation", "size", "red_at"), [(1, (60, 40), (5, 20)), (3, (60, 40), (55, 20)), (6, (40, 60), (20, 5))]
)
async def test_a_picture_is_shown_upright(
    call: Call, folder: Path, kind: str, orientation: int, size: tuple[int, int], red_at: tuple[int, int]
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    two_halves().save(folder / "a", kind, exif=exif)
    image = shown(await call("read_image", "a"))
    assert image.size == size
    assert near(image.getpixel(red_at), RED)


@pytest.mark.parametrize(
    ("size", "fitted"),
    [
        ((6_000, 3_000), (2_000, 1_000)),
        ((8_000, 6_000), (2_000, 1_500)),
        ((100, 8_000), (25, 2_000)),
        ((2_000, 2), (2_000, 2)),
    ],
)
@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
async def test_a_large_picture_is_fitted(
    call: Call, folder: Path, kind: str, size: tuple[int, int], fitted: tuple[int, int]
) -> None:
    Image.new("RGB", size).save(folder / "a", kind)
    result = await call("read_image", "a")
    assert shown(result).size == fitted
    assert (result.get("original_width"), result.get("original_height")) == (size if size != fitted else (None, None))


async def test_of_an_animation_the_first_frame_is_shown_and_said(call: Call, folder: Path) -> None:
    frames = [Image.new("RGB", (20, 20), color) for color in (RED, BLUE, (0, 255, 0))]
    frames[0].save(folder / "a.gif", save_all=True, append_images=frames[1:], duration=50)
    result = await call("read_image", "a.gif")
    assert near(shown(result).getpixel((9, 9)), RED)
    assert result["note"] == "it has 3 frames; the first is shown"


async def test_transparency_stays(call: Call, folder: Path) -> None:
    Image.new("RGBA", (20, 20), (255, 0, 0, 0)).save(folder / "a.png")
    data = base64.b64decode((await call("read_image", "a.png"))["image_b64"])
    assert Image.open(BytesIO(data)).convert("RGBA").getpixel((3, 3)) == (255, 0, 0, 0)


async def test_a_picture_full_of_noise_does_not_swell(call: Call, folder: Path) -> None:
    Image.effect_noise((2_000, 2_000), 90).convert("RGBA").save(folder / "a.png")
    result = await call("read_image", "a.png")
    assert result["mime_type"] == "image/jpeg"
    assert len(result["image_b64"]) < 8_000_000


async def test_where_it_was_taken_is_not_passed_on(call: Call, folder: Path) -> None:
    exif = Image.Exif()
    exif[0x010E] = "at home"
    two_halves().save(folder / "a.jpg", exif=exif)
    assert b"at home" not in base64.b64decode((await call("read_image", "a.jpg"))["image_b64"])


def png_of(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(50_000, 50_000), (2_147_483_647, 1), (100_001, 1_000)])
async def test_a_bomb_is_refused_by_its_header(call: Call, folder: Path, size: tuple[int, int]) -> None:
    (folder / "a.png").write_bytes(png_of(*size, zlib.compress(b"\0" * 1_000)))
    result = await call("read_image", "a.png")
    assert result["error"]["details"] == {"reason": "limit"}
    assert f"{size[0]} x {size[1]} pixels" in result["error"]["message"]


async def test_a_small_picture_that_inflates_without_end_is_shown(call: Call, folder: Path) -> None:
    (folder / "a.png").write_bytes(png_of(10, 10, zlib.compress(b"\0" * 300_000_000)))
    assert (await call("read_image", "a.png"))["width"] == 10


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "TIFF", "BMP"])
async def test_of_a_picture_that_is_cut_off_the_rest_is_shown_and_said(call: Call, folder: Path, kind: str) -> None:
    out = BytesIO()
    Image.effect_noise((200, 200), 90).convert("RGB").save(out, kind)
    (folder / "a").write_bytes(out.getvalue()[: len(out.getvalue()) // 2])
    result = await call("read_image", "a")
    if result.ok:
        assert "missing" in result["note"]
    else:
        assert "damaged" in result["error"]["message"]


@pytest.mark.parametrize(
    "data", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"<svg/>", b"\xff\xd8\xff", b"%!PS-Adobe\nshowpage", b"BM" * 99]
)
async def test_what_is_no_picture_is_refused(call: Call, folder: Path, data: bytes) -> None:
    (folder / "a.png").write_bytes(data)
    result = await call("read_image", "a.png")
    assert result.error_code == "downstream_error"
    message = result["error"]["message"]
    assert "a.png': it is no picture of a kind that is read here; PNG, JPEG" in message or "is damaged" in message
    assert "KeyError" not in message
