"""Small pictures in a terminal, in the way that the terminal itself says it knows."""

from __future__ import annotations

import base64
import os
import select
import time
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from PIL.Image import Image

GraphicsProtocol = Literal["kitty", "iterm", "sixel"]

# Asks, one after another: for a picture by kitty's protocol, for the size of a cell by iTerm's, and what kind of terminal it is, which each answers.
# https://sw.kovidgoyal.net/kitty/graphics-protocol/#querying-support-and-available-transmission-mediums
# https://iterm2.com/documentation-escape-codes.html
TERMINAL_QUERIES = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b]1337;ReportCellSize\x07\x1b[c"
ANSWER_TIMEOUT_S = 0.5
SIXEL_ATTRIBUTE = b"4"
THUMBNAIL_SIZE = (240, 180)
COLUMNS = 24
PALETTE_SIZE = 16
# A terminal takes pictures in pieces of so much text.
KITTY_CHUNK_SIZE = 4096


def detect_protocol(terminal: str) -> GraphicsProtocol | None:
    """Return how the terminal at that path shows pictures; None if it cannot, or does not say."""
    try:
        import termios
        import tty
    # Windows has no such modules.
    except ImportError:
        return None
    try:
        descriptor = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        os.write(descriptor, TERMINAL_QUERIES)
        return parse_protocol(_read_answer(descriptor))
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
        os.close(descriptor)


def _read_answer(terminal: int) -> bytes:
    """Read until the last query is answered, or nothing has arrived for too long."""
    answer, deadline = b"", time.monotonic() + ANSWER_TIMEOUT_S
    while not _get_attributes(answer):
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        if not ready or not (some := os.read(terminal, 1024)):
            break
        answer += some
    return answer


def parse_protocol(answer: bytes) -> GraphicsProtocol | None:
    """Return the protocol that the terminal's answer to the queries indicates, or None."""
    if b"\x1b_Gi=31;OK" in answer:
        return "kitty"
    if b"\x1b]1337;ReportCellSize=" in answer:
        return "iterm"
    return "sixel" if SIXEL_ATTRIBUTE in _get_attributes(answer).split(b";") else None


def _get_attributes(answer: bytes) -> bytes:
    """Return the attributes of the terminal; empty until they have arrived completely."""
    attributes, end, _ = answer.rpartition(b"\x1b[?")[2].partition(b"c")
    return attributes if end and b"\x1b[?" in answer else b""


def render_thumbnail(data: bytes, way: GraphicsProtocol) -> bytes:
    """Return the bytes that make a terminal show the picture as a thumbnail.

    Raises OSError if the data is not a picture.
    """
    from PIL import Image

    with Image.open(BytesIO(data)) as opened:
        small = opened.convert("RGB")
    small.thumbnail(THUMBNAIL_SIZE)
    if way == "sixel":
        return b"".join(_iter_sixel_chunks(small))
    file = BytesIO()
    small.save(file, "PNG")
    text = base64.b64encode(file.getvalue())
    if way == "iterm":
        return b"\x1b]1337;File=inline=1;width=%d;size=%d:%b\x07\n" % (COLUMNS, len(file.getvalue()), text)
    return b"".join(_iter_kitty_chunks(text)) + b"\n"


def _iter_kitty_chunks(text: bytes) -> Iterator[bytes]:
    for start in range(0, len(text), KITTY_CHUNK_SIZE):
        keys = b"f=100,a=T,q=2,c=%d," % COLUMNS if start == 0 else b""
        more = start + KITTY_CHUNK_SIZE < len(text)
        yield b"\x1b_G%bm=%d;%b\x1b\\" % (keys, more, text[start : start + KITTY_CHUNK_SIZE])


def _iter_sixel_chunks(picture: Image) -> Iterator[bytes]:
    """Yield the picture in sixel format.

    https://vt100.net/docs/vt3xx-gp/chapter14.html
    """
    mapped = picture.quantize(PALETTE_SIZE)
    width, height = mapped.size
    pixels = mapped.tobytes()
    yield b'\x1bPq"1;1;%d;%d' % (width, height)
    palette = mapped.getpalette("RGB") or []
    for number in range(len(palette) // 3):
        red, green, blue = (value * 100 // 255 for value in palette[3 * number : 3 * number + 3])
        yield b"#%d;2;%d;%d;%d" % (number, red, green, blue)
    for top in range(0, height, 6):
        rows = [pixels[row * width : (row + 1) * width] for row in range(top, min(top + 6, height))]
        for colour in sorted(set(b"".join(rows))):
            bits = (sum((row[x] == colour) << bit for bit, row in enumerate(rows)) for x in range(width))
            yield b"#%d%b$" % (colour, bytes(63 + each for each in bits))
        yield b"-"
    yield b"\x1b\\\n"
