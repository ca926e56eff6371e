"""Order in which a person reads a page: column by column, even if a file draws the columns line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pypdf import PageObject

# Points by which the beginnings of a column's lines may differ.
POSITION_TOLERANCE = 3.0
# Lines in which two columns must stand side by side to be taken for columns.
MIN_LINES = 4
# Characters that a line of a column has at least, on average: a table's cells are shorter.
MIN_LETTERS = 18
# Of its size, the least width that letters have on average.
NARROW = 0.35


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Text as it is drawn: from `x` on, at height `y`, in points."""

    x: float
    y: float
    size: float
    text: str

    @property
    def end(self) -> float:
        """The coordinate that it certainly reaches."""
        return self.x + len(self.text) * self.size * NARROW


def extract_ordered_text(page: PageObject) -> str:
    """Return the text of a page in file order, with columns that alternate line by line placed one after the other."""
    pieces: list[TextPiece] = []

    def note(text: str, cm: Sequence[float], tm: Sequence[float], _font: object, size: float) -> None:
        if words := text.strip():
            x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
            y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
            pieces.append(TextPiece(x, y, abs(size * tm[3] * cm[3]) or abs(size), words))

    plain = page.extract_text(visitor_text=note)
    lines = [list(line) for _, line in groupby(pieces, key=lambda piece: round(piece.y))]
    gutter = _find_gutter(lines)
    return plain if gutter is None else "\n".join(_separate_columns(lines, gutter))


def _find_gutter(lines: Sequence[Sequence[TextPiece]]) -> float | None:
    """Return the x position of the right one of two columns whose lines alternate, or None."""
    both = [line for line in lines if len(line) > 1]
    starts = Counter(round(piece.x / POSITION_TOLERANCE) for line in both for piece in line[1:])
    if not starts:
        return None
    x = (
        max(starts, key=lambda start: starts[start] + starts[start + 1] + starts[start - 1]) * POSITION_TOLERANCE
        - POSITION_TOLERANCE
    )
    split = [
        (_join_side(line, right=False, x=x), _join_side(line, right=True, x=x))
        for line in both
        if not _crosses_gutter(line, x)
    ]
    split = [(left, right) for left, right in split if left and right]
    if len(split) < max(MIN_LINES, 0.6 * len(both)):
        return None
    long_enough = all(sum(map(len, side)) >= MIN_LETTERS * len(side) for side in zip(*split, strict=True))
    return x if long_enough else None


def _crosses_gutter(line: Sequence[TextPiece], x: float) -> bool:
    return any(piece.x < x < piece.end for piece in line)


def _join_side(line: Sequence[TextPiece], *, right: bool, x: float) -> str:
    return " ".join(piece.text for piece in line if (piece.x >= x) is right)


def _separate_columns(lines: Sequence[Sequence[TextPiece]], x: float) -> Iterator[str]:
    """Yield the lines, the left column of each two-column block before the right one.

    Lines that span both columns keep their places.
    """
    for across, stretch in groupby(lines, key=lambda line: _crosses_gutter(line, x)):
        block = list(stretch)
        if across:
            yield from (" ".join(piece.text for piece in line) for line in block)
            continue
        for right in (False, True):
            yield from filter(None, (_join_side(line, right=right, x=x) for line in block))
