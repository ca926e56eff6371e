"""Differences between two lists of lines, found in bounded time: `difflib` alone may take time with the product of their numbers."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Literal

__all__ = ["BoundedMatcher", "format_unified_diff"]

CONTEXT_LINES = 3
# Product of the numbers of lines that are compared each with each; beyond, all of the one side is replaced by all of the other.
MAX_LINE_PAIRS = 1_000_000

OpcodeTag = Literal["replace", "delete", "insert", "equal"]
DiffOpcode = tuple[OpcodeTag, int, int, int, int]


class BoundedMatcher(difflib.SequenceMatcher[str]):
    """Matcher of lines that compares only what lies between the beginning and the end which both have."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        # What the base class would index here is not needed.
        super().__init__(None, (), ())
        self._before, self._after = before, after

    def get_opcodes(self) -> list[DiffOpcode]:
        before, after = self._before, self._after
        least = min(len(before), len(after))
        head = next((n for n in range(least) if before[n] != after[n]), least)
        tail = next((n for n in range(least - head) if before[-1 - n] != after[-1 - n]), least - head)
        old_end, new_end = len(before) - tail, len(after) - tail
        made: list[DiffOpcode] = [("equal", 0, head, 0, head)] if head else []
        for tag, i, j, k, m in _diff_opcodes(before[head:old_end], after[head:new_end]):
            made.append((tag, i + head, j + head, k + head, m + head))
        if tail:
            made.append(("equal", old_end, len(before), new_end, len(after)))
        return made


def _diff_opcodes(before: Sequence[str], after: Sequence[str]) -> list[DiffOpcode]:
    if len(before) * len(after) > MAX_LINE_PAIRS:
        return [("replace", 0, len(before), 0, len(after))]
    return difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()


def format_unified_diff(before: Sequence[str], after: Sequence[str], old_name: str, new_name: str) -> Iterator[str]:
    """Yield the lines of a unified diff; none where nothing differs."""
    if list(before) == list(after):
        return
    yield from (f"--- {old_name}", f"+++ {new_name}")
    for group in BoundedMatcher(before, after).get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        yield f"@@ -{_format_range(first[1], last[2])} +{_format_range(first[3], last[4])} @@"
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[i:j])
            else:
                yield from (f"-{line}" for line in before[i:j])
                yield from (f"+{line}" for line in after[k:m])


def _format_range(start: int, stop: int) -> str:
    # As `difflib` writes it: an empty range begins at the line before.
    count = stop - start
    return f"{start + 1}" if count == 1 else f"{start + 1 if count else start},{count}"
