"""Cells as a Markdown table that says where each of them stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from handrail_documents.cell_ranges import CellRange, column_letters

MAX_TEXT = 200_000
MAX_CELL = 2_000
CUT_MARK = " … [cut]"
# A pipe with the backslashes before it, which would take its escape away.
PIPE = re.compile(r"(\\*)\|")
LINE_BREAK = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")

TableRow = Mapping[int, str]


@dataclass(slots=True)
class SheetCells:
    """Cells of a sheet: text by row and column, with notes.

    `more` is True if there are rows after the area. `total_rows` and `total_columns` are the extent of the sheet, None
    if it was not determined.
    """

    rows: dict[int, TableRow] = field(default_factory=dict[int, TableRow])
    more: bool = False
    total_rows: int | None = None
    total_columns: int | None = None
    formulas: dict[str, str] = field(default_factory=dict[str, str])
    merged: list[CellRange] = field(default_factory=list[CellRange])
    notes: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class RenderedTable:
    """A table, and how much of the cells it shows."""

    text: str
    rows: int
    columns: int
    # The last row in it, 0 for none.
    last_row: int
    whole: bool


def render_markdown(cells: SheetCells, area: CellRange, *, columns_asked: bool) -> RenderedTable:
    """Render the rows that are not empty, by number, under the letters of their columns.

    Empty columns are included only if columns were requested.
    """
    rows = {number: row for number, row in sorted(cells.rows.items()) if any(row.values())}
    if not rows:
        return RenderedTable("(no cells with anything in them)", 0, 0, 0, whole=True)
    used = {column for row in rows.values() for column, text in row.items() if text}
    columns = list(range(area.first_column, area.last_column + 1)) if columns_asked else sorted(used)
    lines = [f"| | {' | '.join(map(column_letters, columns))} |", "|---" * (len(columns) + 1) + "|"]
    left = MAX_TEXT - sum(map(len, lines)) - 2
    last = 0
    for number, row in rows.items():
        line = f"| {number} | {' | '.join(escape_table_cell(row.get(column, '')) for column in columns)} |"
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
        last = number
    shown = len(lines) - 2
    return RenderedTable("\n".join(lines), shown, len(columns), last, whole=shown == len(rows))


def escape_table_cell(text: str) -> str:
    """Format the text of a cell on one line, with characters that would end the cell escaped."""
    if len(text) > MAX_CELL:
        text = text[:MAX_CELL] + CUT_MARK
    if "|" in text:
        text = PIPE.sub(r"\1\1\\|", text)
    return LINE_BREAK.sub("<br>", text).replace("\t", " ").strip()
