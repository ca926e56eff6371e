"""Encoding detection for text that has no byte order mark and is not Unicode.

Equal bytes always give the same answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch

# Bytes that are looked at, from the line of the first one that is no ASCII.
SAMPLE_LIMIT = 16_384
# Those in which files are found, of each family first the one that holds the others.
CODECS = (
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
    *("cp1251", "koi8_r", "iso8859_5", "cp866", "cp1253", "cp1255", "cp1256", "cp1254", "cp1250", "iso8859_2"),
    *("cp1252", "latin_1"),
)
# Fewer bytes beyond ASCII tell nothing.
MIN_HIGH_BYTES = 3
# By how much another encoding may seem worse or better than a Western one, which most files have, without being taken for that.
CHAOS, COHERENCE = 0.02, 0.05
HIGH_BYTE = re.compile(rb"[\x80-\xff]")
# What Latin-1 has controls for, and Windows letters.
WINDOWS_BYTE = re.compile(rb"[\x80-\x9f]")


def guess_encoding(sample: bytes) -> str:
    """Return the name of the codec: `latin-1` by default, `cp1252`, or what charset-normalizer detects."""
    first = HIGH_BYTE.search(sample)
    assert first is not None
    start = sample.rfind(b"\n", 0, first.start()) + 1
    looked_at = sample[start : start + SAMPLE_LIMIT]
    if len(looked_at) == SAMPLE_LIMIT and (end := looked_at.rfind(b"\n") + 1):
        # No character is cut in two.
        looked_at = looked_at[:end]
    western = _guess_western(looked_at)
    if len(HIGH_BYTE.findall(looked_at)) < MIN_HIGH_BYTES:
        return western
    from charset_normalizer import from_bytes

    matches = from_bytes(looked_at, cp_isolation=list(CODECS), enable_fallback=False)
    best = matches.best()
    if best is None or str(best) == looked_at.decode(western):
        return western
    if _is_close_rival(best, next((match for match in matches if _is_encoding(match, western)), None)):
        return western
    if best.encoding == "cp1250" and WINDOWS_BYTE.search(looked_at) is None:
        # Its own letters lie among those bytes; elsewhere the two differ in few.
        return "iso8859_2" if any(match.encoding == "iso8859_2" for match in matches) else "cp1250"
    return best.encoding


def _is_close_rival(best: CharsetMatch, other: CharsetMatch | None) -> bool:
    return other is not None and other.chaos <= best.chaos + CHAOS and other.coherence + COHERENCE >= best.coherence


def _guess_western(sample: bytes) -> str:
    if WINDOWS_BYTE.search(sample) is None:
        return "latin-1"
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"


def _is_encoding(match: CharsetMatch, western: str) -> bool:
    names = {name.replace("_", "-") for name in match.could_be_from_charset}
    return bool({western, "cp1252"} & names)
