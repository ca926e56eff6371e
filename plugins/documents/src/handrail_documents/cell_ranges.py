"""Cells by their names: columns by letters, rows from 1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from handrail.workers.parse_refusal import ParseRefused, RefusalKind

MAX_ROWS = 1_048_576
MAX_COLUMNS = 16_384
CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([1-9]\d{0,6})")
END = r"\$?([A-Za-z]{1,3})?\$?([1-9]\d{0,6})?"
AREA = re.compile(rf"{END}(?::{END})?")


@dataclass(frozen=True, slots=True)
class CellRange:
    """A rectangle of cells, both ends included, rows and columns from 1."""

    first_row: int = 1
    last_row: int = MAX_ROWS
    first_column: int = 1
    last_column: int = MAX_COLUMNS

    def __contains__(self, cell: tuple[int, int]) -> bool:
        row, column = cell
        return self.first_row <= row <= self.last_row and self.first_column <= column <= self.last_column

    def meets(self, other: CellRange) -> bool:
        """Return True if the ranges have a cell in common."""
        return (
            self.first_row <= other.last_row
            and other.first_row <= self.last_row
            and self.first_column <= other.last_column
            and other.first_column <= self.last_column
        )

    def __str__(self) -> str:
        first = format_cell_name(self.first_row, self.first_column)
        last = format_cell_name(self.last_row, self.last_column)
        return first if first == last else f"{first}:{last}"


@lru_cache(MAX_COLUMNS)
def column_letters(column: int) -> str:
    """Return the letters of a column: 1 is A, 27 is AA."""
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


@lru_cache(MAX_COLUMNS)
def column_number(letters: str) -> int:
    """Return the number of a column: A is 1."""
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def format_cell_name(row: int, column: int) -> str:
    """Return the name of a cell: `B3` for 3, 2."""
    return f"{column_letters(column)}{row}"


def parse_cell_name(name: str, kind: RefusalKind = "arguments") -> tuple[int, int]:
    """Row and column of a cell by its name; `ParseRefused`, of that kind, for what names none."""
    match = CELL.fullmatch(name.strip())
    row, column = (int(match[2]), column_number(match[1])) if match else (0, 0)
    if not (1 <= row <= MAX_ROWS and 1 <= column <= MAX_COLUMNS):
        raise ParseRefused(kind, f"{name[:40]!r} names no cell", hint="cells are A1 to XFD1048576")
    return row, column


def parse_cell_range(text: str) -> CellRange:
    """Parse a range: `B2:D10`, `B2`, `A:C`, `2:10`, `B2:D`. Raises `ParseRefused` if `text` is not a range."""
    match = AREA.fullmatch(text.strip())
    if match is None or (not match[1] and not match[2]) or (":" in text and not match[3] and not match[4]):
        raise ParseRefused("arguments", f"range is {text[:80]!r}", hint='write "B2:D10", "B2", "A:C" or "2:10"')
    single = ":" not in text
    ends = (match[1], match[2]), (match[1], match[2]) if single else (match[3], match[4])
    columns = sorted(column_number(letters) for letters, _ in ends if letters) or [1, MAX_COLUMNS]
    rows = sorted(int(digits) for _, digits in ends if digits) or [1, MAX_ROWS]
    # `B2:D` goes down to the last row.
    last_row = rows[-1] if len(rows) > 1 else MAX_ROWS
    last_column = columns[-1] if len(columns) > 1 else MAX_COLUMNS
    if rows[0] > MAX_ROWS or columns[0] > MAX_COLUMNS:
        raise ParseRefused("arguments", f"range is {text[:80]!r}", hint="a sheet goes from A1 to XFD1048576")
    return CellRange(rows[0], min(last_row, MAX_ROWS), columns[0], min(last_column, MAX_COLUMNS))
