"""Where a text occurs in a file: exactly, or else by whole lines whose whitespace differs. Each way has a name, which the result tells.

Texts here have plain `\\n` line ends; `edit` puts the file's own back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

_INDENT = re.compile(r"[^\S\n]*")
_BLANKS = re.compile(r"\s+")
# Blanks beside what is no part of a word mean nothing in most languages.
_LOOSE = re.compile(r"\s+(?=[^\w\s])|(?<=[^\w\s])\s+")


@dataclass(frozen=True, slots=True)
class Match:
    """A stretch of the text, `start` to `end`, and what takes its place."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Found:
    """All places where a text occurs by the first strategy that finds any; they may overlap."""

    strategy: str
    matches: tuple[Match, ...]


def find(text: str, old: str, new: str) -> Found | None:
    """Where `old` occurs, and what `new` would be there; None where nothing comes near enough to be changed."""
    if (exact := tuple(_occurrences(text, old, new))) or not old.strip():
        return Found("exact", exact) if exact else None
    from handrail.untrusted import envelope as untrusted

    lines = _Lines(text)
    for strategy, key, fitted in _STRATEGIES:
        if strategy == "as_shown" and untrusted.plain(text):
            continue
        if matches := tuple(lines.matches(old, new, key, fitted)):
            return Found(strategy, matches)
    return None


def apart(matches: tuple[Match, ...]) -> tuple[Match, ...]:
    """Those of the matches that do not overlap, from the first on."""
    chosen: list[Match] = []
    for match in matches:
        if not chosen or match.start >= chosen[-1].end:
            chosen.append(match)
    return tuple(chosen)


def _occurrences(text: str, old: str, new: str) -> Iterator[Match]:
    at = text.find(old)
    while at >= 0:
        yield Match(at, at + len(old), new)
        at = text.find(old, at + 1)


Key = Callable[[str], str]
# The lines that take the place of others: of the old text, of the file, and of the new text.
Fitting = Callable[[list[str], list[str], list[str]], list[str]]


class _Lines:
    """A text as lines, to be compared by a key of each."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.split("\n")
        self._starts: list[int] | None = None

    def matches(self, old: str, new: str, key: Key, fitted: Fitting) -> Iterator[Match]:
        ended = old.endswith("\n")
        old_lines = old.removesuffix("\n").split("\n")
        wanted = list(map(key, old_lines))
        keys = list(map(key, self._lines))
        # The longest line is the one that occurs least often.
        anchor = max(range(len(wanted)), key=lambda index: len(wanted[index]))
        if not wanted[anchor]:
            return
        for at in _indexes(keys, wanted[anchor]):
            first = at - anchor
            if first >= 0 and keys[first : first + len(wanted)] == wanted:
                yield self._match(first, old_lines, new, fitted, ended=ended)

    def _match(self, first: int, old_lines: list[str], new: str, fitted: Fitting, *, ended: bool) -> Match:
        last = first + len(old_lines) - 1
        there = self._lines[first : last + 1]
        start = self._start(first)
        end = self._start(last) + len(self._lines[last])
        closed = ended and last + 1 < len(self._lines)
        if ended and not new:
            return Match(start, end + closed, "")
        body = new.removesuffix("\n") if ended else new
        made = "\n".join(_kept(old_lines, there, body.split("\n"), fitted))
        return Match(start, end + closed, made + "\n" if closed and new.endswith("\n") else made)

    def _start(self, index: int) -> int:
        if self._starts is None:
            starts = [0]
            for line in self._lines:
                starts.append(starts[-1] + len(line) + 1)
            self._starts = starts
        return self._starts[index]


def _indexes(keys: list[str], wanted: str) -> Iterator[int]:
    at = -1
    while True:
        try:
            at = keys.index(wanted, at + 1)
        except ValueError:
            return
        yield at


def _kept(old: list[str], there: list[str], new: list[str], fitted: Fitting) -> list[str]:
    """The new lines, with the file's own where old and new text begin and end alike: nobody meant to change these."""
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    middle = fitted(old, there, new)[head : len(new) - tail]
    return [*there[:head], *middle, *there[len(there) - tail :]]


def _alike(some: list[str], others: list[str]) -> int:
    """How many lines both begin with."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(some), len(others)))


def _as_given(old: list[str], there: list[str], new: list[str]) -> list[str]:
    return new


def _reindented(old: list[str], there: list[str], new: list[str]) -> list[str]:
    """The new lines, indented as the file is where the old text's indentation differs from it."""
    pairs = [(_indent(ours), _indent(theirs)) for ours, theirs in zip(old, there, strict=True) if ours.strip()]
    known = dict(reversed(pairs))
    alike = all(known[ours] == theirs for ours, theirs in pairs)
    if alike and _one_shift(pairs):
        return [_moved(line, known) for line in new]
    if alike and any(ours != theirs for ours, theirs in pairs[1:]) and (step := _step(known)) is not None:
        return [_moved(line, known, step) for line in new]
    # Only the first line was given without its indentation; or all were, one way or another.
    first, base = pairs[0]
    rest = [line for line in new[1:] if line.strip()]
    if all(_indent(line).startswith(base) for line in rest):
        return [_moved(new[0], {first: base}), *new[1:]]
    return [_moved(line, {first: base}) for line in new]


def _one_shift(pairs: list[tuple[str, str]]) -> bool:
    """Whether the old text is the file's, moved as a whole or with other letters for a level."""
    return len({len(theirs) - len(ours) for ours, theirs in pairs}) == 1 or all(
        "\t" in theirs or not theirs or "\t" in ours for ours, theirs in pairs
    )


def _step(known: dict[str, str]) -> float | None:
    """How wide a blank of the old text's indentation is in the file, where both have the same levels in blanks of another number."""
    levels = sorted((len(ours), len(theirs)) for ours, theirs in known.items())
    deeper = all(here[1] < there[1] for here, there in pairwise(levels))
    if len(levels) < 2 or not deeper or any(set(indent) - {" "} for pair in known.items() for indent in pair):
        return None
    (shallow, base), (deep, top) = levels[0], levels[-1]
    return (top - base) / (deep - shallow)


def _moved(line: str, known: dict[str, str], step: float = 1) -> str:
    indent = _indent(line)
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
    further = _converted(more, known) if step == 1 else " " * round(len(more) * step)
    return known[nearest] + further + line[len(indent) :]


def _converted(more: str, known: dict[str, str]) -> str:
    """Further levels of indentation, in tabs where the file has a tab for so many blanks, and the other way round."""
    for ours, theirs in known.items():
        if ours and set(ours) == {" "} and theirs and set(theirs) == {"\t"} and set(more) == {" "}:
            return "\t" * (len(more) * len(theirs) // len(ours))
        if ours and set(ours) == {"\t"} and theirs and set(theirs) == {" "} and set(more) == {"\t"}:
            return " " * (len(more) * len(theirs) // len(ours))
    return more


def _indent(line: str) -> str:
    found = _INDENT.match(line)
    return found[0] if found else ""


def _squeezed(line: str) -> str:
    return _BLANKS.sub(" ", _LOOSE.sub("", line.strip()))


def _shown(line: str) -> str:
    from handrail.untrusted import envelope as untrusted

    return line if untrusted.plain(line) else untrusted.clean(line, foreign=False).text.rstrip()


_STRATEGIES: tuple[tuple[str, Key, Fitting], ...] = (
    ("trailing_whitespace", str.rstrip, _as_given),
    ("indentation", str.strip, _reindented),
    ("whitespace", _squeezed, _reindented),
    # What a reader was shown lacks what nobody can see.
    ("as_shown", _shown, _as_given),
)
