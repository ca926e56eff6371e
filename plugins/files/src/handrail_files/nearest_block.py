"""Nearest match for a text that does not occur in a file, shown so that the difference is visible."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass
from heapq import nlargest
from time import monotonic

# Seconds, and letters of a line, that looking may take.
COMPARE_TIMEOUT_S = 2.0
MAX_COMPARED_LETTERS = 400
CHECKED = 20_000
# Letters of the file that are looked through.
SEARCHED = 8_388_608
# Letters of both texts that are compared one by one: the time grows with their product.
LIKE_LETTERS = 1_000
# Lines of both texts that are compared one by one to show how they differ.
MAX_COMPARED_LINES = 200
# Lines and letters that are shown.
LINES = 20
MAX_SHOWN_LINE = 200
CONTEXT = 3
CANDIDATES = 12
MIN_SIMILARITY = 0.5
_WORD = re.compile(r"\w{2,}")
_ODD_BLANK = re.compile(r"[^\S \t\n]|[\u200b-\u200f\u2060\ufeff]")


@dataclass(frozen=True, slots=True)
class NearestBlock:
    """Lines `first` to `last` (from 1) of the file; in `diff` `-` is the text that was looked for, `+` what the file has, from where they differ."""

    first: int
    last: int
    diff: str


def find_nearest_block(text: str, old: str) -> NearestBlock | None:
    """Return the most similar block, or None if nothing is similar enough.

    The time is bounded: only the beginning of a huge file is searched.
    """
    lines = text[:SEARCHED].split("\n")
    wanted = old.removesuffix("\n").split("\n")
    over = monotonic() + COMPARE_TIMEOUT_S
    starts = _rank_by_same_lines(lines, wanted, over) or _rank_by_words(lines, wanted, over)
    best, score = None, MIN_SIMILARITY
    for start in starts:
        block = lines[max(start, 0) : max(start, 0) + len(wanted)]
        like = _compute_similarity(wanted, block)
        if like > score:
            best, score = max(start, 0), like
        if monotonic() > over:
            break
    if best is None:
        return None
    block = lines[best : best + len(wanted)]
    return NearestBlock(best + 1, best + len(block), _format_diff(wanted, block, best + 1))


def _rank_by_same_lines(lines: list[str], wanted: list[str], over: float) -> list[int]:
    """Return the line indexes at which blocks with the most lines in common begin, ignoring whitespace and case."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(wanted):
        if key := _strip_whitespace(line):
            places.setdefault(key, []).append(index)
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        for index in places.get(_strip_whitespace(line), ())[:4]:
            votes[number - index] += 1
        if number % CHECKED == 0 and monotonic() > over:
            break
    return [start for start, _ in votes.most_common(CANDIDATES)]


def _rank_by_words(lines: list[str], wanted: list[str], over: float) -> list[int]:
    """Return the line indexes at which blocks begin that share the most words with the longest line of the text."""
    index = max(range(len(wanted)), key=lambda at: len(wanted[at].strip()))
    words = set(_WORD.findall(wanted[index][:MAX_COMPARED_LETTERS]))
    shared: list[tuple[float, int]] = []
    for number, line in enumerate(lines):
        if words and (common := len(words.intersection(theirs := _WORD.findall(line[:MAX_COMPARED_LETTERS])))):
            shared.append((common - len(theirs) / 100, number - index))
        if number % CHECKED == 0 and monotonic() > over:
            break
    return [start for _, start in nlargest(CANDIDATES, shared)]


def _strip_whitespace(line: str) -> str:
    return "".join(line[:MAX_COMPARED_LETTERS].split()).casefold()


def _compute_similarity(wanted: list[str], block: list[str]) -> float:
    """Return the similarity of the first lines of both, from 0 to 1."""
    ours = "\n".join(line[:MAX_COMPARED_LETTERS].strip() for line in wanted[:LINES])
    theirs = "\n".join(line[:MAX_COMPARED_LETTERS].strip() for line in block[:LINES])
    return difflib.SequenceMatcher(None, ours[:LIKE_LETTERS], theirs[:LIKE_LETTERS], autojunk=False).ratio()


def _format_diff(wanted: list[str], block: list[str], first: int) -> str:
    shown: list[str] = []
    alike = next((n for n, (ours, theirs) in enumerate(zip(wanted, block, strict=False)) if ours != theirs), 0)
    # Comparing takes time with the square of the lines, and only the first ones that differ are shown.
    start = max(alike - CONTEXT, 0)
    left_out = max(len(wanted), len(block)) - start - MAX_COMPARED_LINES
    wanted, block, first = (
        wanted[start : start + MAX_COMPARED_LINES],
        block[start : start + MAX_COMPARED_LINES],
        first + start,
    )
    pairs = difflib.SequenceMatcher(None, wanted, block, autojunk=False).get_opcodes()
    for tag, i, j, k, m in pairs:
        if tag == "equal":
            shown += [f"  {first + k + n}\t{_truncate_line(line)}" for n, line in enumerate(block[k:m])]
            continue
        spaces = [_strip_whitespace(line) for line in wanted[i:j]] == [_strip_whitespace(line) for line in block[k:m]]
        shown += [f"-\t{_truncate_line(_show_whitespace(line, spaces=spaces))}" for line in wanted[i:j]]
        shown += [
            f"+ {first + k + n}\t{_truncate_line(_show_whitespace(line, spaces=spaces))}"
            for n, line in enumerate(block[k:m])
        ]
    more = len(shown) - 2 * LINES + max(left_out, 0)
    return "\n".join([*shown[: 2 * LINES], f"… [{more} lines more]"] if more > 0 else shown)


def _show_whitespace(line: str, *, spaces: bool) -> str:
    """Make whitespace visible: spaces as `·`, tabs as `→`, other blanks as their code points.

    With `spaces`, all spaces and tabs are shown, else only leading and trailing ones; other blanks always are.
    """
    line = _ODD_BLANK.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", line)
    if spaces:
        return line.replace("\t", "→").replace(" ", "·")
    bare = line.strip(" \t")
    start = len(line) - len(line.lstrip(" \t"))
    ends = (line[:start], line[start + len(bare) :])
    before, behind = (end.replace("\t", "→").replace(" ", "·") for end in ends)
    return before + bare + behind


def _truncate_line(line: str) -> str:
    return line if len(line) <= MAX_SHOWN_LINE else f"{line[:MAX_SHOWN_LINE]} …"
