"""Cleaning, truncation and marking of untrusted tool output.

`clean_text` and `clean_and_truncate` return text as it would be displayed. `wrap_untrusted` marks what a model receives
as data, with a boundary that the text cannot predict.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from handrail.api.result import TextSource
from handrail.sanitize.active_markup import neutralize_markup
from handrail.sanitize.invisible_chars import ORDINARY_BYTES, RARE_CHARS, remove_invisible
from handrail.sanitize.terminal import STEERING_CHARS, render_terminal_text

__all__ = ["clean_text", "is_plain_text", "wrap_untrusted"]

# Bytes of one text that a model is shown. Of lines, there may be as many as have this length.
MAX_SHOWN_BYTES = 51_200
BYTES_PER_LINE = 5
# What a text may have above the limit when its tool has cut it already, with a word on it.
SLACK_BYTES = 256
# Of a text longer than so many limits, only the ends are looked at.
CLEAN_FACTOR = 8


@dataclass(frozen=True, slots=True)
class CleanedText:
    """Text that may be shown. `removed`: what was taken out of it or made visible in it, by stable codes, and how often."""

    text: str
    removed: Mapping[str, int] = field(default_factory=dict[str, int])


def is_plain_text(text: str) -> bool:
    """Return True if there is nothing to clean in a text, only ordinary characters; faster than cleaning it."""
    return _is_ordinary_text(text) or (text.isascii() and STEERING_CHARS.search(text) is None)


def _is_ordinary_text(text: str) -> bool:
    # Most of a text has one byte a letter: without these there is little to look at.
    rest = text.encode("utf-8", "surrogatepass").translate(None, ORDINARY_BYTES)
    return RARE_CHARS.search(rest.decode("utf-8", "surrogatepass")) is None


def clean_text(text: str, *, foreign: bool = True) -> CleanedText:
    """Return the text as displayed, without terminal control, hidden or invalid characters; in linear time.

    `foreign`: the text is a third party's, and pictures and links that would carry data away are made inert, too. In a
    workspace file they stay, since an edit must match them.
    """
    removed: Counter[str] = Counter()
    if not is_plain_text(text):
        text = remove_invisible(render_terminal_text(text, removed), removed)
    if foreign:
        text = neutralize_markup(text, removed)
    return CleanedText(text, dict(sorted(removed.items())))


def clean_and_truncate(text: str, *, limit: int = MAX_SHOWN_BYTES, foreign: bool = True) -> CleanedText:
    """Return the cleaned text within `limit` bytes of UTF-8, and a fifth as many lines: its head and tail.

    Between them is a notice of how much is omitted.
    """
    if len(text) <= CLEAN_FACTOR * limit:
        cleaned = clean_text(text, foreign=foreign)
        return _limit_text(cleaned.text, limit, cleaned.removed)
    reach = CLEAN_FACTOR // 2 * limit
    beside = len(text[reach:-reach].encode("utf-8", "surrogatepass"))
    head, tail = clean_text(text[:reach], foreign=foreign), clean_text(text[-reach:], foreign=foreign)
    removed = Counter(head.removed)
    removed.update(tail.removed)
    return _join_head_and_tail(head.text, tail.text, limit, removed, beside=beside)


def _limit_text(text: str, limit: int, removed: Mapping[str, int]) -> CleanedText:
    size = len(text) if text.isascii() else len(text.encode())
    if size <= limit + SLACK_BYTES and text.count("\n") <= limit // BYTES_PER_LINE + 2:
        return CleanedText(text, removed)
    return _join_head_and_tail(text, text, limit, removed)


def _join_head_and_tail(
    head: str, tail: str, limit: int, removed: Mapping[str, int], *, beside: int = 0
) -> CleanedText:
    """Join the beginning of one text and the end of another, or of the same. `beside`: bytes in neither of them."""
    half, lines = limit // 2, limit // BYTES_PER_LINE // 2
    first = head[:half].encode()[:half].decode(errors="ignore")
    last = tail[-half:].encode()[-half:].decode(errors="ignore")
    first = "\n".join(first.split("\n", lines)[:lines])
    last = "\n".join(last.rsplit("\n", lines)[-lines:])
    whole = beside + len(head.encode()) + (0 if head is tail else len(tail.encode()))
    gap = whole - len(first.encode()) - len(last.encode())
    text = f"{first}\n[… {gap} bytes left out …]\n{last}"
    return CleanedText(text, dict(sorted({**removed, "truncated": gap}.items())))


@dataclass(frozen=True, slots=True)
class UntrustedEnvelope:
    """Text between two lines that it cannot forge: both have `boundary`, and the first names the source if there is one."""

    text: str
    boundary: str


def wrap_untrusted(text: str, *, source: TextSource) -> UntrustedEnvelope:
    """Return the text as data from `source`, between lines with a boundary generated for this text alone."""
    boundary = secrets.token_hex(6)
    while boundary in text:
        boundary = secrets.token_hex(6)
    return UntrustedEnvelope(f"{_build_opening_line(boundary, source)}\n{text}\n</untrusted {boundary}>", boundary)


def _build_opening_line(boundary: str, source: TextSource) -> str:
    told = {"tool": source.tool, "call": source.call_id, "from": source.origin or ""}
    words = [f'{key}="{_quote_attribute(value)}"' for key, value in told.items() if value]
    return f"<{' '.join(['untrusted', boundary, *words])}>"


@lru_cache(maxsize=256)
def _quote_attribute(value: str) -> str:
    """Return the value in a form that is safe in quotes on one line."""
    said = " ".join(clean_text(value).text.split())[:80]
    return said.replace('"', "'").replace("<", "‹").replace(">", "›")
