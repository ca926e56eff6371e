"""Bytes as text, by the marks that servers and pages set. Runs in the worker.

The order is that of https://html.spec.whatwg.org/#determining-the-character-encoding: a byte order mark, what the server says, what the page says.
"""

from __future__ import annotations

import codecs
import re

BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
# What browsers take for other names, by https://encoding.spec.whatwg.org/#names-and-labels
CODEC_ALIASES = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}
# Text that is a program's own spelling of other text, and nothing that pages are written in.
REJECTED_CODECS = re.compile(r"utf-7|idna|punycode|.*unicode.escape|mbcs|oem|undefined|unicode-internal")
META_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
XML_ENCODING = re.compile(rb"\s{0,99}<\?xml[^>]{0,200}encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9_:.-]{1,40})")
HEAD_BYTES = 4_096


def decode_text(data: bytes, declared: str | None, *, markup: bool) -> str:
    """Decode the text, with � in place of invalid bytes.

    `declared` is the charset named by the server; with `markup`, the text may name one itself.
    """
    for mark, name in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    head = data[:HEAD_BYTES]
    inside = (XML_ENCODING.match(head) or META_CHARSET.search(head)) if markup else None
    within = inside[1].decode() if inside else None
    # A page that can be read this far is not in what only takes two bytes a letter.
    if within is not None and within.lower().startswith(("utf-16", "ucs-2")):
        within = "utf-8"
    for named in (declared, within):
        if named is not None and (codec := _find_codec(named)) is not None:
            return data.decode(codec, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        # A letter that was cut off at the end is no sign of anything else.
        return data.decode("utf-8" if exc.start > len(data) - 4 else "cp1252", "replace")


def _find_codec(named: str) -> str | None:
    """Return the name of the codec; None if it is unknown or does not decode text."""
    try:
        name = codecs.lookup(named.strip().strip("\"'")).name
        b"".decode(name)
    except (LookupError, ValueError):
        return None
    return None if REJECTED_CODECS.fullmatch(name) else CODEC_ALIASES.get(name, name)
