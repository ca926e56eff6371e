"""Detection of the format of program output: text in a certain encoding, or binary data.

Programs do not declare their encoding. ASCII counts as UTF-8; otherwise byte order marks and patterns of UTF-16 are
checked first, then UTF-8, then the encoding of the locale the program was given, then Western European.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping

UTF_8, WESTERN = "utf-8", "cp1252"
# So much of an output is looked at.
SAMPLE_BYTES = 8_192
# Of text, at most one byte in so many is a control character that no text has.
CONTROLS_ONE_IN = 50
# NUL ends names in lists (`find -print0`); where one follows another, nothing was named.
CONTROL_CHARACTER = re.compile(rb"[\x01-\x06\x0e-\x1a\x1c-\x1f\x7f]|(?<=\0)\0")
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What Windows-1252 has beside ASCII that stands in texts: letters, quotation marks, dashes, and signs such as the section's.
OF_TEXT = re.compile(
    rb"[\t\n\r\x0c\x1b\x20-\x7e\x80\x84\x85\x8a\x8c\x8e\x91-\x97\x9a\x9c\x9e\x9f\xa0-\xd6\xd8-\xf6\xf8-\xff]*"
)


def detect_charset(data: bytes, *, locale: str | None = None, cut: bool = False) -> str:
    """Return the name of the most likely encoding of the text at the start of `data`. `cut`: text follows `data`."""
    if data.isascii() and b"\0" not in data:
        return UTF_8
    sample = data[:SAMPLE_BYTES]
    for mark, name in BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return name
    if (wide := _detect_utf_16(sample)) is not None:
        return wide
    if _is_utf_8(data, cut=cut):
        return UTF_8
    if locale is not None:
        return locale
    return WESTERN if OF_TEXT.fullmatch(data) and not _has_utf_8(data) else UTF_8


def is_binary_output(data: bytes, charset: str) -> bool:
    """Return True if the data is binary (pictures, archives, programs) rather than text."""
    if charset not in (UTF_8, WESTERN):
        return False
    sample = data[:SAMPLE_BYTES]
    return len(CONTROL_CHARACTER.findall(sample)) * CONTROLS_ONE_IN > len(sample)


def find_locale_charset(environment: Mapping[str, str]) -> str | None:
    """Return the encoding that the environment requests from programs; None if it is UTF-8, ASCII or unknown."""
    said = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    name = said.partition(".")[2].partition("@")[0]
    if not name:
        return None
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return None
    return None if found in (UTF_8, "ascii") else found


def _detect_utf_16(sample: bytes) -> str | None:
    """Return the name of the UTF-16 variant of text without a byte order mark, or None.

    In UTF-16, every second byte of ASCII letters is NUL.
    """
    pairs = len(sample) // 2
    if pairs < 2:
        return None
    first, second = sample[: pairs * 2 : 2], sample[1 : pairs * 2 : 2]
    for low, high, name in ((first, second, "utf-16-le"), (second, first, "utf-16-be")):
        if high.count(0) * 10 > pairs * 7 and low.count(0) * 50 < pairs and not CONTROL_CHARACTER.search(low):
            return name
    return None


def _is_utf_8(data: bytes, *, cut: bool) -> bool:
    try:
        codecs.getincrementaldecoder(UTF_8)().decode(data, final=not cut)
    except UnicodeDecodeError:
        return False
    return True


def _has_utf_8(data: bytes) -> bool:
    """Return True if the data has any UTF-8 character beyond ASCII.

    Bytes that are not valid UTF-8 are then errors, not text in another encoding.
    """
    return any(
        len(letter) > 1
        for letter in re.findall(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}", data[:SAMPLE_BYTES])
    )
