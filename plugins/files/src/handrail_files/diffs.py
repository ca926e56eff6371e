"""Unified diffs, made of the changed stretch alone: kept short for a result, longer for a question."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

CONTEXT = 3
# Lines of a changed stretch that are compared each with each; beyond, each with the one in its place, or all of the one side is replaced by all
# of the other where they are not as many.
MAX_COMPARED_LINES = 2_000
# Lines of both contents that are taken apart; of more, the beginning and the end are shown.
SPLIT = 400_000
MAX_LINES = 400
MAX_LETTERS = 20_000
MAX_DIFF_LINE = 500
# Letters of a diff for a question; of a longer one, the beginning and the end. What a question shows of it is core's to choose.
MAX_ASKED_LETTERS = 100_000

OpcodeTag = Literal["replace", "delete", "insert", "equal"]


@dataclass(frozen=True, slots=True)
class ChangedSpan:
    """Span in which two contents differ.

    It is `start` to `old_end` in the old content and `start` to `new_end` in the new one, in characters or bytes.
    """

    start: int
    old_end: int
    new_end: int


@dataclass(frozen=True, slots=True)
class RenderedDiff:
    """A change in two lengths; both are empty where nothing changes."""

    result: str = ""
    """At most some 20,000 characters: the beginning of the diff, and of each of its lines."""
    asked: str = ""
    """At most some 100,000 characters: all of the diff, or its beginning and its end."""


def diff_contents(before: str, after: str, name: str) -> RenderedDiff:
    """Return the diff between two contents of a file."""
    if before == after:
        return RenderedDiff()
    start = _common_prefix_length(before, after)
    rest = min(len(before), len(after)) - start
    end = _common_prefix_length(before[::-1][:rest], after[::-1][:rest]) if rest else 0
    return diff_text_span(before, after, ChangedSpan(start, len(before) - end, len(after) - end), name)


def diff_bytes_span(
    before: bytes, after: bytes, stretch: ChangedSpan, name: str, *, first: int, mark: int
) -> RenderedDiff:
    """Return the diff of two UTF-8 contents that differ only in one span, decoding only the part that is shown.

    `first` is the number of the line in which the span begins; `mark` is the length in bytes of the byte order mark.
    """
    start, old_end, new_end = stretch.start, stretch.old_end, stretch.new_end
    top = before.rfind(b"\n", 0, start) + 1
    for _ in range(CONTEXT):
        top = before.rfind(b"\n", 0, max(top - 1, 0)) + 1
    top = max(top, mark)
    bottom = old_end
    # The line that the change ends in, and one more, which the change may have joined to it.
    for _ in range(CONTEXT + 2):
        bottom = before.find(b"\n", bottom) + 1 or len(before)
    old = before[top:start], before[start:old_end], before[old_end:bottom]
    head, middle, tail = (piece.decode("utf-8", "surrogateescape") for piece in old)
    made = after[start:new_end].decode("utf-8", "surrogateescape")
    above = first - 1 - head.count("\n")
    shown = ChangedSpan(len(head), len(head) + len(middle), len(head) + len(made))
    return diff_text_span(head + middle + tail, head + made + tail, shown, name, above=above)


def diff_text_span(before: str, after: str, stretch: ChangedSpan, name: str, *, above: int = 0) -> RenderedDiff:
    """Return the diff of two texts that differ only in one span; `above` is the number of lines before both texts."""
    old_end, new_end = stretch.old_end, stretch.new_end
    start = before.rfind("\n", 0, stretch.start) + 1
    if not (_is_at_line_start(before, old_end) and _is_at_line_start(after, new_end)):
        # What follows is alike from the next line on.
        behind = before.find("\n", old_end) + 1
        old_end, new_end = (behind, new_end + behind - old_end) if behind else (len(before), len(after))
    return _diff_lines(before, after, ChangedSpan(start, old_end, new_end), name, above)


def _is_at_line_start(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _diff_lines(before: str, after: str, stretch: ChangedSpan, name: str, above: int) -> RenderedDiff:
    """Return the diff of two texts that differ only in one span of whole lines."""
    top = stretch.start
    for _ in range(CONTEXT):
        top = before.rfind("\n", 0, max(top - 1, 0)) + 1 if top else 0
    old_bottom, new_bottom = _find_context_end(before, stretch.old_end), _find_context_end(after, stretch.new_end)
    old_text, new_text = before[top:old_bottom], after[top:new_bottom]
    if _is_all_crlf(old_text) and _is_all_crlf(new_text):
        # Where every line ends alike, its end says nothing.
        old_text, new_text = old_text.replace("\r\n", "\n"), new_text.replace("\r\n", "\n")
    skipped = above + before.count("\n", 0, top)
    if old_text.count("\n") + new_text.count("\n") > SPLIT:
        return _of_ends(old_text, new_text, name, skipped + 1)
    old, new = _split_lines(old_text), _split_lines(new_text)
    many = len(old) + len(new) > MAX_COMPARED_LINES
    if many and len(old) != len(new):
        head = [*_format_header(name), f"@@ -{skipped + 1},{len(old)} +{skipped + 1},{len(new)} @@"]
        removed, added = [f"-{line}" for line in old], [f"+{line}" for line in new]
        some = [*removed[: MAX_LINES // 2], *added[: MAX_LINES // 2]]
        shown = _shorten_for_result([*head, *some], len(removed) + len(added) - len(some))
        return RenderedDiff(shown, _shorten_middle([*head, *removed, *added]))
    matcher = _InPlaceMatcher(old, new) if many else difflib.SequenceMatcher(None, old, new, autojunk=False)
    found = matcher.get_grouped_opcodes(CONTEXT)
    lines: list[str] = _format_header(name)
    for group in found:
        first, last = group[0], group[-1]
        old_at, old_count = first[1] + skipped, last[2] - first[1]
        new_at, new_count = first[3] + skipped, last[4] - first[3]
        lines.append(f"@@ -{_format_range(old_at, old_count)} +{_format_range(new_at, new_count)} @@")
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i:j]]
            else:
                lines += [f"-{line}" for line in old[i:j]] + [f"+{line}" for line in new[k:m]]
    return RenderedDiff(_shorten_for_result(lines, 0), _shorten_middle(lines))


def _of_ends(old: str, new: str, name: str, first: int) -> RenderedDiff:
    """Return the diff of two texts that are too long to compare: the old text replaced by the new one, abbreviated."""
    half = MAX_ASKED_LETTERS // 2
    old_count, new_count = old.count("\n"), new.count("\n")
    head = [*_format_header(name), f"@@ -{first},{old_count} +{first},{new_count} @@"]
    removed, added, ended = old[:half].split("\n"), new[:half].split("\n"), new[-half:].split("\n")
    removed, added, ended = _marked("-", removed), _marked("+", added), _marked("+", ended)
    some = [*removed[: MAX_LINES // 2], *added[: MAX_LINES // 2]]
    left_out = max(len(old) - half, 0) + max(len(new) - half, 0)
    told = f"… [{left_out} characters of this diff are not shown]"
    shown = _shorten_for_result([*head, *some], old_count + new_count - len(some))
    return RenderedDiff(shown, "\n".join([*head, *removed, told, *ended]))


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [mark + line.replace("\r", "␍") for line in lines]


class _InPlaceMatcher(difflib.SequenceMatcher[str]):
    """Compares each line with the one in its place, of as many."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        super().__init__(None, (), ())
        self._alike = [before == after for before, after in zip(old, new, strict=True)]

    def get_opcodes(self) -> list[tuple[OpcodeTag, int, int, int, int]]:
        made: list[tuple[OpcodeTag, int, int, int, int]] = []
        at = 0
        for same, lines in groupby(self._alike):
            end = at + sum(1 for _ in lines)
            made.append(("equal" if same else "replace", at, end, at, end))
            at = end
        return made


def _is_all_crlf(text: str) -> bool:
    return text.count("\r\n") == text.count("\n")


def _format_header(name: str) -> list[str]:
    return [f"--- {name}", f"+++ {name}"]


def _format_range(at: int, count: int) -> str:
    return f"{at + 1 if count else at},{count}"


def _split_lines(text: str) -> list[str]:
    """Split a text into lines without their ends.

    Carriage returns are made visible, and a last line without a line end is marked as such.
    """
    shown = text.replace("\r", "␍").split("\n")
    last = shown.pop()
    return [*shown, f"{last}\n\\ No newline at end of file"] if last else shown


def _find_context_end(text: str, at: int) -> int:
    """Return the offset of the end of the context lines after a changed span, which ends at a line end at `at`."""
    for _ in range(CONTEXT):
        at = text.find("\n", at) + 1 or len(text)
    return at


def _shorten_for_result(lines: list[str], left_out: int) -> str:
    shown: list[str] = []
    size = 0
    for line in lines:
        size += min(len(line), MAX_DIFF_LINE) + 1
        if len(shown) >= MAX_LINES or size > MAX_LETTERS:
            left_out += len(lines) - len(shown)
            break
        shown.append(
            line
            if len(line) <= MAX_DIFF_LINE
            else f"{line[:MAX_DIFF_LINE]} … [{len(line) - MAX_DIFF_LINE} characters more]"
        )
    if left_out:
        shown.append(f"… [{left_out} lines of this diff are not shown]")
    return "\n".join(shown)


def _shorten_middle(lines: list[str]) -> str:
    text = "\n".join(lines)
    left_out = len(text) - MAX_ASKED_LETTERS
    half = MAX_ASKED_LETTERS // 2
    return (
        f"{text[:half]}\n… [{left_out} characters of this diff are not shown]\n{text[-half:]}" if left_out > 0 else text
    )


def _common_prefix_length(a: str, b: str) -> int:
    """Return the length in characters of the common prefix of two texts."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def format_diff_name(path: str) -> str:
    """Return a path on one line, for the header of a diff."""
    return os.fsencode(path).decode("utf-8", "replace").replace("\n", "␊")
