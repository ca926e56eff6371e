"""Division of a text for bash that is too long to be parsed at once into pieces that can be parsed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from handrail_cli.shell.bash.lexical_crosscheck import LexicalOutline, scan_outline

# Where commands end, are joined or nested, outside quotes.
COMMAND_SEPARATOR = re.compile(r"[;&|()<\n]")
# So many of them a piece has, and every other one begins in the middle of the one before: what stands together is together in one of them.
SEPARATORS_PER_CHUNK = 120
# Words before a long text that make code of it.
SHELL_NAME = re.compile(r"(?<![\w.-])(?:eval|(?:ba|da|a|z|k)?sh)(?![\w.-])")
# Quoted text from this length on is cut off where words are folded, so it is looked into by itself.
LONG_TEXT = 8_000
# What stands before a command in a part of a longer statement. A line feed begins another one.
LEADING_KEYWORDS = re.compile(r"(\A|[;&|()\n])(?:[^\S\n]*(?:then|do|else|elif|if|while|until|time|!|\{)(?=\s))+")


def split_into_chunks(text: str) -> Iterator[str]:
    """Yield the pieces in the order of the text, each once.

    Quotes and here-documents are not divided if their end is certain.
    """
    seen = scan_outline(text)
    found = dict.fromkeys(_iter_windows(text, _list_quoted_spans(seen), _map_bodies(seen)))
    if seen.strange is not None:
        # What is taken for quoted may be none: here-documents apart, every mark counts.
        found |= dict.fromkeys(_iter_windows(text, seen.bodies, _map_bodies(seen)))
    found |= dict.fromkeys(_iter_long_code(text, seen))
    yield from filter(None, found)


def _list_quoted_spans(seen: LexicalOutline) -> list[tuple[int, int]]:
    return sorted((*seen.literal, *seen.double, *seen.comments, *seen.bodies))


def _map_bodies(seen: LexicalOutline) -> Mapping[int, int]:
    return dict(seen.bodies)


def _iter_windows(text: str, spans: list[tuple[int, int]], bodies: Mapping[int, int]) -> Iterator[str]:
    marks = [match.start() for match in COMMAND_SEPARATOR.finditer(text) if not _is_inside(match.start(), spans)]
    for first in range(0, len(marks) + 1, SEPARATORS_PER_CHUNK // 2):
        start = marks[first - 1] if first else 0
        # A here-document whose command stands in the piece before is no code.
        start = bodies.get(start + 1, start)
        end = marks[first + SEPARATORS_PER_CHUNK] if first + SEPARATORS_PER_CHUNK < len(marks) else len(text)
        piece = text[start:end].lstrip(" \t\n;&|()<")
        yield piece
        yield LEADING_KEYWORDS.sub(r"\1", piece)


def _is_inside(at: int, spans: list[tuple[int, int]]) -> bool:
    number = bisect_right(spans, (at, len(spans) and spans[-1][1])) - 1
    return number >= 0 and at < spans[number][1]


def _iter_long_code(text: str, seen: LexicalOutline) -> Iterator[str]:
    """Long quoted texts and here-documents that a shell is given."""
    for start, end in _list_quoted_spans(seen):
        if end - start > LONG_TEXT:
            begin = max(text.rfind(letter, 0, max(start - 1, 0)) for letter in ";&|\n")
            if SHELL_NAME.search(text, begin + 1, start):
                yield text[start:end].strip("'\"")
