"""Splitting of detected lines: adjacent items are detected as one line, but each must be clickable separately."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from handrail_vision_ocr.incremental_ocr import PixelBox
    from handrail_vision_ocr.worker_protocol import Picture

# Columns of a line: the first, and the one after the last.
ColumnSpan = tuple[int, int]

# How much lighter or darker than its ground something is that is written, and a rule between two cells.
INK, RULE = 24, 8
# Pixels that a rule is wide at most. Unlike a stroke of a letter it takes most of the line's height and of what is above and below, so many heights.
THIN, WHOLE, BEYOND = 3, 0.85, 0.25
# A row of which so much is inked is a line below the text.
LINE = 0.85
# In heights of what is written. A wider gap is between two items, whatever they are; letters of one width leave almost as much between words.
APART = 1.15
# A wider one is between two items where the letters are not of one width.
LOOSE = 0.6
# Between words there is at least so much.
SPACE = 0.2
# In widths of one letter: how far from its column a word of letters of one width may begin.
OFF = 0.45
# Lines whose heights differ by less may be of the same size: not each has letters that reach above and below.
SAME_SIZE = 0.4


@dataclass(frozen=True, slots=True)
class SpacedLine:
    """A line of several words, some of them far apart: where each word is, and how high what is written."""

    words: tuple[str, ...]
    spans: tuple[ColumnSpan, ...]
    height: float

    @property
    def gaps(self) -> list[float]:
        """Between the words, in heights."""
        return [(begin - end) / self.height for (_, end), (begin, _) in pairwise(self.spans)]

    @property
    def one_width(self) -> bool:
        """True if every word begins where a monospaced font would place it, with a full-width space between words."""
        first = self.spans[0][0]
        pitch = (self.spans[-1][1] - first) / len(" ".join(self.words))
        letters = 0
        for word, (begin, _) in zip(self.words, self.spans, strict=True):
            if abs(begin - first - letters * pitch) > OFF * pitch:
                return False
            letters += len(word) + 1
        return min(self.gaps) >= LOOSE


def split_box(pixels: Picture, box: PixelBox) -> list[PixelBox]:
    """Split the box of a line that has not been read yet, at rules and at gaps too wide for any text."""
    left, top, width, height = box
    if width < 2 * height:
        return [box]
    line = _measure_ink(pixels, box)
    cuts = [gap for gap in line.gaps if gap[1] - gap[0] >= APART * line.height]
    cuts += [rule for rule in line.rules if not any(_is_overlapping(rule, cut) for cut in cuts)]
    if not cuts:
        return [box]
    ends = [0, *(at for cut in sorted(cuts) for at in cut), width]
    spans = [line.trimmed(begin, end) for begin, end in zip(ends[::2], ends[1::2], strict=True)]
    return [(left + span[0], top, span[1] - span[0], height) for span in spans if span]


def measure_spacing(pixels: Picture, box: PixelBox, text: str) -> SpacedLine | None:
    """Measure the spacing of a line that may be more than one item; return None if it is one."""
    words = tuple(text.split())
    if len(words) < 2:
        return None
    line = _measure_ink(pixels, box)
    gaps = [gap for gap in line.gaps if gap[1] - gap[0] >= SPACE * line.height]
    between = sorted(sorted(gaps, key=lambda gap: gap[0] - gap[1])[: len(words) - 1])
    whole = line.trimmed(0, box[2])
    if whole is None or len(between) < len(words) - 1:
        return None
    ends = [whole[0], *(at for gap in between for at in gap), whole[1]]
    found = SpacedLine(words, tuple(zip(ends[::2], ends[1::2], strict=True)), line.height)
    return found if max(found.gaps) >= LOOSE else None


def is_one_text(line: SpacedLine, others: list[SpacedLine]) -> bool:
    """Return True if the line is loosely spaced only because its font is monospaced.

    Two words are too few to decide; then other lines of the same size are examined.
    """
    if len(line.words) > 2:
        return line.one_width
    alike = (other for other in others if len(other.words) > 2 and abs(other.height / line.height - 1) < SAME_SIZE)
    return any(other.one_width for other in alike)


def iter_items(line: SpacedLine, box: PixelBox) -> Iterator[tuple[str, PixelBox]]:
    """Yield the items between the line's wide gaps."""
    left, top, _, height = box
    ends = [0, *(at for at, gap in enumerate(line.gaps, start=1) if gap >= LOOSE), len(line.words)]
    for first, after in pairwise(ends):
        begin, end = line.spans[first][0], line.spans[after - 1][1]
        yield " ".join(line.words[first:after]), (left + begin, top, end - begin, height)


@dataclass(frozen=True, slots=True)
class _InkProfile:
    """Ink in a box: the columns with ink, the height of the ink, and the rules in between."""

    inked: tuple[int, ...]
    height: float
    rules: tuple[ColumnSpan, ...]

    @property
    def gaps(self) -> list[ColumnSpan]:
        """Where nothing is written, between two places where something is."""
        return [(a + 1, b) for a, b in pairwise(self.inked) if b - a > 1]

    def trimmed(self, begin: int, end: int) -> ColumnSpan | None:
        """Return the inked span within these bounds, slightly enlarged; None without ink."""
        inked = [column for column in self.inked if begin <= column < end]
        room = int(self.height / 4)
        return (max(begin, inked[0] - room), min(end, inked[-1] + 1 + room)) if inked else None


def _measure_ink(pixels: Picture, box: PixelBox) -> _InkProfile:
    _, top, width, height = box
    beyond = int(BEYOND * height)
    above = min(beyond, top)
    around = _compute_contrast(pixels, box, above, beyond)
    ruled = ((around >= RULE).mean(axis=0) >= WHOLE) | ((around <= -RULE).mean(axis=0) >= WHOLE)
    ink = np.abs(around[above : above + height]) * ~ruled
    dark = (ink >= 2 * INK).mean(axis=1)
    rows = _find_text_rows((dark > 0) & (dark < LINE))
    columns = np.flatnonzero((ink[rows] >= INK).any(axis=0)).tolist()
    rules = tuple((begin, end) for begin, end in _iter_runs(ruled) if end - begin <= THIN)
    tall = max(rows.stop - rows.start, height / 2)
    return _InkProfile(tuple(_drop_cut_letters(columns, width, tall)), tall, rules)


def _compute_contrast(pixels: Picture, box: PixelBox, above: int, below: int) -> NDArray[np.int16]:
    """Return how much each pixel differs from the median of the box.

    The result covers the box and the given number of rows above and below it.
    """
    left, top, width, height = box
    cut = pixels[top - above : top + height + below, left : left + width]
    gray = cv2.cvtColor(cut, cv2.COLOR_BGR2GRAY).astype(np.int16)
    return gray - np.int16(np.median(gray[above : above + height]))


def _find_text_rows(inked: NDArray[np.bool_]) -> slice:
    """Return the rows of the text, without a frame above or below it; all but the margins if the middle is empty."""
    rows = len(inked)
    found = (slice(begin, end) for begin, end in _iter_runs(inked) if begin <= rows / 2 < end)
    return next(found, slice(rows // 7, rows - rows // 7))


def _drop_cut_letters(columns: list[int], width: int, height: float) -> list[int]:
    """Remove a letter of a neighboring item cut off by an end of the box."""
    loose = [at for at, (a, b) in enumerate(pairwise(columns), start=1) if b - a > LOOSE * height]
    if loose and columns[-1] >= width - 2 and columns[-1] - columns[loose[-1]] < height / 2:
        columns = columns[: loose[-1]]
    if loose and columns[0] <= 1 and columns[loose[0] - 1] - columns[0] < height / 2:
        columns = columns[loose[0] :]
    return columns


def _iter_runs(mask: NDArray[np.bool_]) -> Iterator[ColumnSpan]:
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False)).tolist()
    yield from zip(edges[::2], edges[1::2], strict=True)


def _is_overlapping(one: ColumnSpan, other: ColumnSpan) -> bool:
    return one[0] < other[1] and other[0] < one[1]
