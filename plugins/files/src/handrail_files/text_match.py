r"""Search for a text in a file: exactly, or else by complete lines that differ only in whitespace.

Each strategy has a name, which the result reports. Texts here have plain `\n` line ends; `edit` restores the file's
own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from handrail import InvalidArguments
from handrail_files.file_content import MAX_FILE_BYTES
from handrail_files.time_limit import TimeLimit

_INDENT = re.compile(r"[^\S\n]*")
_BLANKS = re.compile(r"\s+")
_WORDS = re.compile(r"\w+")
# Places of a text that occurs more than once, as an error tells them.
MOST_SHOWN = 20
# Places that are changed at once.
MOST_CHANGED = 1_000_000
# Letters whose lines are compared between two looks at the clock.
BLOCK = 262_144


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A stretch of the text, `start` to `end`, and what takes its place."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class MatchSet:
    """Places where a text occurs by the first strategy that finds any, in their order.

    `matches` are the first `MOST_SHOWN`, which may overlap, or all that do not overlap; `count` says how many there are.
    """

    strategy: str
    matches: tuple[TextMatch, ...]
    count: int


def find_matches(text: str, old: str, new: str, limit: TimeLimit, *, several: bool = False) -> MatchSet | None:
    """Return the occurrences of `old` with their replacements made from `new`; None if nothing matches closely enough.

    `several`: all occurrences are to be replaced. Raises `TimedOut` past the limit, `InvalidArguments` if there are too
    many occurrences to replace.
    """
    exact = _every_occurrence(text, old, new) if several else _first_occurrences(text, old, new)
    if exact.count or not old.strip():
        return exact if exact.count else None
    from handrail.sanitize import envelope as untrusted

    lines = _LineIndex(text, limit)
    for strategy, key, certain, fitted in _STRATEGIES:
        if strategy == "as_shown" and untrusted.is_plain_text(text):
            continue
        if certain is not None and certain(old) not in text:
            continue
        matches, count = lines.matches(old, new, key, fitted, several=several)
        if count:
            return MatchSet(strategy, tuple(matches), count)
    return None


def _first_occurrences(text: str, old: str, new: str) -> MatchSet:
    matches: list[TextMatch] = []
    at = text.find(old)
    while at >= 0 and len(matches) < MOST_SHOWN:
        matches.append(TextMatch(at, at + len(old), new))
        at = text.find(old, at + 1)
    return MatchSet("exact", tuple(matches), len(matches) + (text.count(old, at) if at >= 0 else 0))


def _every_occurrence(text: str, old: str, new: str) -> MatchSet:
    count = text.count(old) if old else 0
    _check_size(text, count, count * (len(new) - len(old)))
    found = (match.start() for match in re.finditer(re.escape(old), text)) if count else ()
    return MatchSet("exact", tuple(TextMatch(at, at + len(old), new) for at in found), count)


def _check_size(text: str, count: int, growth: int) -> None:
    if count > MOST_CHANGED:
        raise InvalidArguments(
            f"edit_file: old_string occurs {count} times; at most {MOST_CHANGED} are changed at once"
        )
    check_length(len(text) + growth)


def check_length(size: int) -> None:
    """Raise `InvalidArguments` if a file of that size is not written."""
    if size > MAX_FILE_BYTES:
        raise InvalidArguments(f"edit_file: the file would have {size} bytes; at most {MAX_FILE_BYTES} are written")


LineKey = Callable[[str], str]
# The lines that take the place of others: of the old text, of the file, and of the new text.
LineFitter = Callable[[list[str], list[str], list[str], TimeLimit], list[str]]


class _LineIndex:
    """A text as lines, to be compared by a key of each."""

    def __init__(self, text: str, limit: TimeLimit) -> None:
        self._text = text
        self._limit = limit

    def matches(
        self, old: str, new: str, key: LineKey, fitted: LineFitter, *, several: bool
    ) -> tuple[list[TextMatch], int]:
        """Return the matches, as `MatchSet` has them, and how many there are."""
        old_lines = old.removesuffix("\n").split("\n")
        wanted = list(map(key, old_lines))
        if not any(wanted):
            return [], 0
        matches: list[TextMatch] = []
        count = growth = 0
        for start, end in self._spans(wanted, key, apart=several):
            count += 1
            if several or count <= MOST_SHOWN:
                match = self._match(start, end, old, old_lines, new, fitted)
                matches.append(match)
                growth += len(match.new) - (match.end - match.start)
                _check_size(self._text, len(matches), growth)
        return matches, count

    def _spans(self, wanted: list[str], key: LineKey, *, apart: bool) -> Iterator[tuple[int, int]]:
        """Yield where lines with these keys start and end, in a time that grows with both texts only (Knuth, Morris, Pratt)."""
        numbers: dict[str, int] = {}
        pattern = [numbers.setdefault(line, len(numbers)) for line in wanted]
        back = _borders(pattern)
        starts = [0] * len(pattern)
        fitting = index = at = 0
        for lines in self._blocks():
            for line, number in zip(lines, map(numbers.get, map(key, lines)), strict=True):
                starts[index] = at
                index = index + 1 if index + 1 < len(pattern) else 0
                at += len(line) + 1
                if number is None:
                    fitting = 0
                    continue
                while fitting and pattern[fitting] != number:
                    fitting = back[fitting - 1]
                if pattern[fitting] == number:
                    fitting += 1
                if fitting == len(pattern):
                    # The oldest start that is kept is that of the first line.
                    yield starts[index], at - 1
                    fitting = 0 if apart else back[fitting - 1]

    def _blocks(self) -> Iterator[list[str]]:
        """Yield all lines, some at a time: those of a large text would take many times its size."""
        at = 0
        while (end := self._text.find("\n", at + BLOCK)) >= 0:
            self._limit.check()
            yield self._text[at:end].split("\n")
            at = end + 1
        self._limit.check()
        yield self._text[at:].split("\n")

    def _match(self, start: int, end: int, old: str, old_lines: list[str], new: str, fitted: LineFitter) -> TextMatch:
        self._limit.check()
        ended = old.endswith("\n")
        there = self._text[start:end].split("\n")
        closed = ended and end < len(self._text)
        if ended and not new:
            return TextMatch(start, end + closed, "")
        body = new.removesuffix("\n") if ended else new
        made = "\n".join(_keep_unchanged_ends(old_lines, there, body.split("\n"), fitted, self._limit))
        return TextMatch(start, end + closed, made + "\n" if closed and new.endswith("\n") else made)


def _borders(pattern: list[int]) -> list[int]:
    """Return for each beginning of the pattern how long the longest shorter one is that it also ends with."""
    borders = [0] * len(pattern)
    length = 0
    for at in range(1, len(pattern)):
        while length and pattern[at] != pattern[length]:
            length = borders[length - 1]
        if pattern[at] == pattern[length]:
            length += 1
        borders[at] = length
    return borders


def _keep_unchanged_ends(
    old: list[str], there: list[str], new: list[str], fitted: LineFitter, limit: TimeLimit
) -> list[str]:
    """Return the new lines, keeping the file's own lines where the old and the new text begin and end alike.

    Those lines were not meant to change.
    """
    head = _count_common_lines(old, new)
    tail = _count_common_lines(old[head:][::-1], new[head:][::-1])
    middle = fitted(old, there, new, limit)[head : len(new) - tail]
    return [*there[:head], *middle, *there[len(there) - tail :]]


def _count_common_lines(some: list[str], others: list[str]) -> int:
    """Return the number of lines in the common prefix."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(some), len(others)))


def _return_as_given(old: list[str], there: list[str], new: list[str], limit: TimeLimit) -> list[str]:
    return new


def _reindent_lines(old: list[str], there: list[str], new: list[str], limit: TimeLimit) -> list[str]:
    """Return the new lines, reindented to match the file if the old text's indentation differs from it."""
    pairs = [(_get_indent(ours), _get_indent(theirs)) for ours, theirs in zip(old, there, strict=True) if ours.strip()]
    known = dict(reversed(pairs))
    alike = all(known[ours] == theirs for ours, theirs in pairs)
    if alike and _is_uniform_shift(pairs):
        return [_shift_line(line, known, limit) for line in new]
    if (
        alike
        and any(ours != theirs for ours, theirs in pairs[1:])
        and (step := _compute_indent_step(known)) is not None
    ):
        return [_shift_line(line, known, limit, step) for line in new]
    # Only the first line was given without its indentation; or all were, one way or another.
    first, base = pairs[0]
    rest = [line for line in new[1:] if line.strip()]
    if all(_get_indent(line).startswith(base) for line in rest):
        return [_shift_line(new[0], {first: base}, limit), *new[1:]]
    return [_shift_line(line, {first: base}, limit) for line in new]


def _is_uniform_shift(pairs: list[tuple[str, str]]) -> bool:
    """Return True if the old text is the file's, shifted uniformly or with other characters per indentation level."""
    return len({len(theirs) - len(ours) for ours, theirs in pairs}) == 1 or all(
        "\t" in theirs or not theirs or "\t" in ours for ours, theirs in pairs
    )


def _compute_indent_step(known: dict[str, str]) -> float | None:
    """Return how many spaces in the file correspond to one space of the old text's indentation.

    Returns None unless both have the same nesting levels, indented by spaces only, and there are at least two levels.
    """
    levels = sorted((len(ours), len(theirs)) for ours, theirs in known.items())
    deeper = all(here[1] < there[1] for here, there in pairwise(levels))
    if len(levels) < 2 or not deeper or any(set(indent) - {" "} for pair in known.items() for indent in pair):
        return None
    (shallow, base), (deep, top) = levels[0], levels[-1]
    return (top - base) / (deep - shallow)


def _shift_line(line: str, known: dict[str, str], limit: TimeLimit, step: float = 1) -> str:
    limit.check()
    indent = _get_indent(line)
    if not line.strip():
        return line
    if indent in known:
        return known[indent] + line[len(indent) :]
    nearest = max((ours for ours in known if indent.startswith(ours)), key=len, default=None)
    if nearest is None:
        shallow = min(known, key=len)
        lost = round((len(shallow) - len(indent)) * step)
        return known[shallow][: max(len(known[shallow]) - lost, 0)] + line[len(indent) :]
    more = indent[len(nearest) :]
    further = _convert_indent(more, known) if step == 1 else " " * round(len(more) * step)
    return known[nearest] + further + line[len(indent) :]


def _convert_indent(more: str, known: dict[str, str]) -> str:
    """Further levels of indentation, in tabs where the file has a tab for so many blanks, and the other way round."""
    for ours, theirs in known.items():
        if ours and set(ours) == {" "} and theirs and set(theirs) == {"\t"} and set(more) == {" "}:
            return "\t" * (len(more) * len(theirs) // len(ours))
        if ours and set(ours) == {"\t"} and theirs and set(theirs) == {" "} and set(more) == {"\t"}:
            return " " * (len(more) * len(theirs) // len(ours))
    return more


def _get_indent(line: str) -> str:
    found = _INDENT.match(line)
    return found[0] if found else ""


def _squeeze_whitespace(line: str) -> str:
    bare = line.strip()
    return _BLANKS.sub(lambda blanks: _needed_blank(bare, blanks.start(), blanks.end()), bare)


def _needed_blank(line: str, start: int, end: int) -> str:
    """Return the replacement for the blanks between two offsets: one space between word characters, else nothing.

    Blanks beside other characters have no meaning in most languages.
    """
    return " " if all(letter.isalnum() or letter == "_" for letter in (line[start - 1], line[end])) else ""


def _longest_line(old: str) -> str:
    return max(map(str.strip, old.split("\n")), key=len)


def _longest_word(old: str) -> str:
    return max(_WORDS.findall(old), key=len, default="")


def _clean_line(line: str) -> str:
    from handrail.sanitize import envelope as untrusted

    return line if untrusted.is_plain_text(line) else untrusted.clean_text(line, foreign=False).text.rstrip()


# A text that is in the file wherever the strategy finds anything, as far as one can be told: looking for it costs little.
Certain = Callable[[str], str]

_STRATEGIES: tuple[tuple[str, LineKey, Certain | None, LineFitter], ...] = (
    ("trailing_whitespace", str.rstrip, _longest_line, _return_as_given),
    ("indentation", str.strip, _longest_line, _reindent_lines),
    ("whitespace", _squeeze_whitespace, _longest_word, _reindent_lines),
    # What a reader was shown lacks what nobody can see.
    ("as_shown", _clean_line, None, _return_as_given),
)
