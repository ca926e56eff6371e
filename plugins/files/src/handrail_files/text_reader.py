"""Lines out of files of any size: read in blocks, decoded by what the file begins with, never more kept than is shown."""

from __future__ import annotations

import codecs
import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

# Small enough to be taken from memory that is used again and again.
BLOCK_BYTES = 65_536
SAMPLE = 65_536
HOLE_BLOCK = b"\0" * 4_096
MAX_LINE_LETTERS = 2_000
# Letters that tell UTF-16 from bytes with a few NULs in them.
WIDE_LETTERS = 4
# No character has more bytes than four in any encoding here.
LINE_BYTES = MAX_LINE_LETTERS * 4 + 4
CUT_SUFFIX = " … [line cut]"
# What numbers make of two bytes, and writers do not.
CONTROL_CHARS = re.compile("[\x01-\x06\x0e-\x1a\ufffd]")

# A letter beyond ASCII in UTF-8, and how many of them there are at least for each mistake.
LETTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
RIGHT = 4

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class LineSlice:
    """A stretch of a file. `more`: there are lines behind it. `total`: how many there are in all, where that is known."""

    lines: tuple[str, ...]
    more: bool
    total: int | None


class ByteSource(Protocol):
    """Source of bytes, called for one block after another."""

    def __call__(self) -> bytes:
        """Return the next bytes; empty at the end."""
        ...


def detect_encoding_name(sample: bytes) -> str | None:
    """Return the encoding of a file that begins with `sample`; None for binary data."""
    for mark, name in BOMS:
        if sample.startswith(mark):
            return name
    whole = len(sample) < SAMPLE
    # A file with a hole behind its text is still text.
    sample = sample.rstrip(b"\0") or sample
    if b"\0" in sample:
        return _detect_utf16(sample)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
    except UnicodeDecodeError:
        if _is_mostly_utf8(sample, whole=whole):
            return "utf-8"
        # Few files need it, and it takes a while to import.
        from handrail_files.encoding_guess import guess_encoding

        return guess_encoding(sample)
    return "utf-8"


def _is_mostly_utf8(sample: bytes, *, whole: bool) -> bool:
    """Return True if the invalid bytes are errors in text that is otherwise UTF-8.

    In any other encoding, hardly any character would look like valid UTF-8.
    """
    mistakes = codecs.getincrementaldecoder("utf-8")("replace").decode(sample, final=whole).count("\ufffd")
    return len(LETTER.findall(sample)) >= RIGHT * mistakes


def _detect_utf16(sample: bytes) -> str | None:
    """Detect UTF-16 without a byte order mark; None if the sample does not look like it.

    Text of mostly Western letters has NUL in every second byte and in hardly any other.
    """
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if max(even, odd) < max(WIDE_LETTERS, half * 0.4) or min(even, odd) > half * 0.05:
        return None
    encoding = "utf-16-le" if odd > even else "utf-16-be"
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    return None if CONTROL_CHARS.search(text) else encoding


def read_blocks(fd: int, first: bytes, go_on: Callable[[], None]) -> ByteSource:
    """Return a source of the file's bytes: `first`, which has been read already, and then the rest.

    `go_on` raises to stop between two blocks.
    """
    waiting = [first]

    def following() -> bytes:
        if waiting:
            return waiting.pop() or following()
        go_on()
        data = os.read(fd, BLOCK_BYTES)
        if data.startswith(HOLE_BLOCK):
            _skip_hole(fd)
        return data

    return following


def _skip_hole(fd: int) -> None:
    """Go on where there is data again: a hole of gigabytes holds no line's end."""
    if not hasattr(os, "SEEK_DATA"):
        return
    try:
        os.lseek(fd, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_DATA)
    except OSError as exc:
        if exc.errno == errno.ENXIO:
            os.lseek(fd, 0, os.SEEK_END)


def decode_to_utf8(source: ByteSource, encoding: str) -> ByteSource:
    """Return a source of the same text in UTF-8, for encodings in which a line end is more than one byte."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")

    def following() -> bytes:
        while True:
            data = source()
            text = decoder.decode(data, final=not data)
            if text or not data:
                return text.encode("utf-8", "replace")

    return following


def is_cr_terminated(sample: bytes, encoding: str) -> bool:
    """Return True if carriage returns alone end the lines of a file that begins with `sample`, as on old Macs."""
    # What follows the last one is not known.
    if b"\r" not in sample or (encoding in ("utf-8", "latin-1") and b"\n" in sample):
        return False
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    return "\r" in text[:-1] and "\n" not in text


def replace_carriage_returns(source: ByteSource) -> ByteSource:
    r"""Return a source of the same bytes with `\n` for each carriage return."""
    return lambda: source().replace(b"\r", b"\n")


def read_lines(source: ByteSource, *, offset: int, limit: int, count_all: bool, encoding: str = "utf-8") -> LineSlice:
    """Up to `limit` lines after the first `offset`, without their ends; each at most 2,000 characters and then marked.

    `count_all`: read on to the end for the total. `encoding` has one byte for a line's end.
    """
    skipped, rest, ended = _skip_lines(source, offset)
    found: list[bytes] = []
    carry = b""
    while len(found) < limit and not ended:
        data = rest or source()
        rest = b""
        if not data:
            ended = True
            break
        if len(carry) == LINE_BYTES and b"\n" not in data:
            continue
        parts = data.split(b"\n", limit - len(found))
        parts[0] = carry + parts[0]
        # What is behind the last wanted line stays unread; of a line without end only its beginning is kept.
        last = parts.pop()
        found.extend(parts)
        if len(found) == limit:
            rest = last
            carry = b""
        else:
            carry = last if len(last) <= LINE_BYTES else last[:LINE_BYTES]
    if ended and carry:
        found.append(carry)
    behind, partial = 0, False
    more = False
    if not ended:
        behind, partial, more = _count_remaining(source, rest, count_all=count_all)
    total = skipped + len(found) + behind + partial if ended or count_all or not more else None
    return LineSlice(tuple(_decode_lines(found, encoding)), more, total)


def _skip_lines(source: ByteSource, offset: int) -> tuple[int, bytes, bool]:
    """Skip lines; return how many were skipped, the bytes read after them, and True if the end was reached."""
    skipped = 0
    ends_open = False
    while skipped < offset:
        data = source()
        if not data:
            return skipped + ends_open, b"", True
        here = data.count(b"\n")
        ends_open = not data.endswith(b"\n")
        if skipped + here < offset:
            skipped += here
            continue
        at = -1
        for _ in range(offset - skipped):
            at = data.index(b"\n", at + 1)
        return offset, data[at + 1 :], False
    return skipped, b"", False


def _count_remaining(source: ByteSource, rest: bytes, *, count_all: bool) -> tuple[int, bool, bool]:
    """Complete lines behind, whether an incomplete one follows, and whether there is anything."""
    data = rest or source()
    if not count_all or not data:
        return 0, False, bool(data)
    lines, last = 0, b""
    while data:
        lines += data.count(b"\n")
        last = data[-1:]
        data = source()
    return lines, last != b"\n", True


def _decode_lines(found: list[bytes], encoding: str) -> list[str]:
    if not found:
        return []
    text = b"\n".join(found).decode(encoding, "replace")
    if "\r" in text:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    lines = text.split("\n")
    if max(map(len, lines)) > MAX_LINE_LETTERS:
        return [line if len(line) <= MAX_LINE_LETTERS else line[:MAX_LINE_LETTERS] + CUT_SUFFIX for line in lines]
    return lines
