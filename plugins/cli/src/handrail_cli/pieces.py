"""A text for bash that is too much to be read as a whole, in pieces that each can be."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from handrail_cli.outline import Outline, outline

# Where commands end, are joined or nested, outside quotes.
MARK = re.compile(r"[;&|()<\n]")
# So many of them a piece has, and every other one begins in the middle of the one before: what stands together is together in one of them.
MARKS = 120
# Words before a long text that make code of it.
SHELL = re.compile(r"(?<![\w.-])(?:eval|(?:ba|da|a|z|k)?sh)(?![\w.-])")
# Quoted text from this length on is cut off where words are folded, so it is looked into by itself.
LONG = 8_000
# What stands before a command in a part of a longer statement. A line feed begins another one.
KEYWORDS = re.compile(r"(\A|[;&|()\n])(?:[^\S\n]*(?:then|do|else|elif|if|while|until|time|!|\{)(?=\s))+")


def pieces(text: str) -> Iterator[str]:
    """The pieces in the order of the text, each once. Quotes and here-documents stay whole where it is certain where they end."""
    seen = outline(text)
    found = dict.fromkeys(_windows(text, _spans(seen), _bodies(seen)))
    if seen.strange is not None:
        # What is taken for quoted may be none: here-documents apart, every mark counts.
        found |= dict.fromkeys(_windows(text, seen.bodies, _bodies(seen)))
    found |= dict.fromkeys(_long_code(text, seen))
    yield from filter(None, found)


def _spans(seen: Outline) -> list[tuple[int, int]]:
    return sorted((*seen.literal, *seen.double, *seen.comments, *seen.bodies))


def _bodies(seen: Outline) -> Mapping[int, int]:
    return dict(seen.bodies)


def _windows(text: str, spans: list[tuple[int, int]], bodies: Mapping[int, int]) -> Iterator[str]:
    marks = [match.start() for match in MARK.finditer(text) if not _inside(match.start(), spans)]
    for first in range(0, len(marks) + 1, MARKS // 2):
        start = marks[first - 1] if first else 0
        # A here-document whose command stands in the piece before is no code.
        start = bodies.get(start + 1, start)
        end = marks[first + MARKS] if first + MARKS < len(marks) else len(text)
        piece = text[start:end].lstrip(" \t\n;&|()<")
        yield piece
        yield KEYWORDS.sub(r"\1", piece)


def _inside(at: int, spans: list[tuple[int, int]]) -> bool:
    number = bisect_right(spans, (at, len(spans) and spans[-1][1])) - 1
    return number >= 0 and at < spans[number][1]


def _long_code(text: str, seen: Outline) -> Iterator[str]:
    """Long quoted texts and here-documents that a shell is given."""
    for start, end in _spans(seen):
        if end - start > LONG:
            begin = max(text.rfind(letter, 0, max(start - 1, 0)) for letter in ";&|\n")
            if SHELL.search(text, begin + 1, start):
                yield text[start:end].strip("'\"")
