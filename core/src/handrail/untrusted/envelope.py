"""What tools give back is data from a world that nobody vouches for: cleaned, kept to a size, and put where nothing can be mistaken for it.

`clean` and `shown` give text as a person would see it. `envelope` marks what a model is given as data, by a boundary that no text can know.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from handrail.results.values import Source
from handrail.untrusted.renderings import neutralised
from handrail.untrusted.terminal import STEERING, as_seen
from handrail.untrusted.unseen import ORDINARY_BYTES, RARE, made_visible

# Bytes of one text that a model is shown. Of lines, there may be as many as have this length.
SHOWN = 51_200
SHORT_LINE = 5
# What a text may have above the limit when its tool has cut it already, with a word on it.
SLACK = 256
# Of a text longer than so many limits, only the ends are looked at.
FAR = 8


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Text that may be shown. `removed`: what was taken out of it or made visible in it, by stable codes, and how often."""

    text: str
    removed: Mapping[str, int] = field(default_factory=dict[str, int])


def plain(text: str) -> bool:
    """Whether there is nothing to clean in a text: only letters and signs of most texts. Told faster than by cleaning it."""
    return _ordinary(text) or (text.isascii() and STEERING.search(text) is None)


def _ordinary(text: str) -> bool:
    # Most of a text has one byte a letter: without these there is little to look at.
    rest = text.encode("utf-8", "surrogatepass").translate(None, ORDINARY_BYTES)
    return RARE.search(rest.decode("utf-8", "surrogatepass")) is None


def clean(text: str, *, foreign: bool = True) -> Cleaned:
    """The text as a person would see it, without what steers terminals, hides, or is no text; in linear time.

    `foreign`: it is a third party's, so that pictures and links that would carry data away are made inert too. In a file of the workspace
    they stay, as an edit has to find them.
    """
    removed: Counter[str] = Counter()
    if not plain(text):
        text = made_visible(as_seen(text, removed), removed)
    if foreign:
        text = neutralised(text, removed)
    return Cleaned(text, dict(sorted(removed.items())))


def shown(text: str, *, limit: int = SHOWN, foreign: bool = True) -> Cleaned:
    """The cleaned text within `limit` bytes of UTF-8 and a fifth as many lines: its head and its tail, and between them how much is left out."""
    if len(text) <= FAR * limit:
        cleaned = clean(text, foreign=foreign)
        return _within(cleaned.text, limit, cleaned.removed)
    reach = FAR // 2 * limit
    beside = len(text[reach:-reach].encode("utf-8", "surrogatepass"))
    head, tail = clean(text[:reach], foreign=foreign), clean(text[-reach:], foreign=foreign)
    removed = Counter(head.removed)
    removed.update(tail.removed)
    return _cut(head.text, tail.text, limit, removed, beside=beside)


def _within(text: str, limit: int, removed: Mapping[str, int]) -> Cleaned:
    size = len(text) if text.isascii() else len(text.encode())
    if size <= limit + SLACK and text.count("\n") <= limit // SHORT_LINE + 2:
        return Cleaned(text, removed)
    return _cut(text, text, limit, removed)


def _cut(head: str, tail: str, limit: int, removed: Mapping[str, int], *, beside: int = 0) -> Cleaned:
    """The beginning of one text and the end of another, or of the same. `beside`: bytes that neither holds."""
    half, lines = limit // 2, limit // SHORT_LINE // 2
    first = head[:half].encode()[:half].decode(errors="ignore")
    last = tail[-half:].encode()[-half:].decode(errors="ignore")
    first = "\n".join(first.split("\n", lines)[:lines])
    last = "\n".join(last.rsplit("\n", lines)[-lines:])
    whole = beside + len(head.encode()) + (0 if head is tail else len(tail.encode()))
    gap = whole - len(first.encode()) - len(last.encode())
    text = f"{first}\n[… {gap} bytes left out …]\n{last}"
    return Cleaned(text, dict(sorted({**removed, "truncated": gap}.items())))


@dataclass(frozen=True, slots=True)
class Envelope:
    """Text between two lines that it cannot forge: both have `boundary`, and the first names the source if there is one."""

    text: str
    boundary: str


def envelope(text: str, *, source: Source) -> Envelope:
    """The text as a model is given it: data from `source`, between lines with a boundary that was drawn for this text alone."""
    boundary = secrets.token_hex(6)
    while boundary in text:
        boundary = secrets.token_hex(6)
    return Envelope(f"{_opening(boundary, source)}\n{text}\n</untrusted {boundary}>", boundary)


def _opening(boundary: str, source: Source) -> str:
    told = {"tool": source.tool, "call": source.call_id, "from": source.origin or ""}
    words = [f'{key}="{_quoted(value)}"' for key, value in told.items() if value]
    return f"<{' '.join(['untrusted', boundary, *words])}>"


@lru_cache(maxsize=256)
def _quoted(value: str) -> str:
    """The value as it may stand in quotes on one line."""
    said = " ".join(clean(value).text.split())[:80]
    return said.replace('"', "'").replace("<", "‹").replace(">", "›")
