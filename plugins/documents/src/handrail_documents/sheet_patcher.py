"""Cells put into the XML of a sheet, with every other byte of it left as it is. Runs in the worker."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

from handrail.workers.parse_refusal import ParseRefused
from handrail_documents.cell_ranges import (
    MAX_COLUMNS,
    MAX_ROWS,
    CellRange,
    column_number,
    format_cell_name,
    parse_cell_name,
)
from handrail_documents.formula_check import find_formula_flaw
from handrail_documents.xlsx_package import create_xml_parser, feed_xml_parser

MAX_LETTERS = 32_767
# Larger whole numbers lose their last digits in a spreadsheet.
EXACT_INTEGER_LIMIT = 10**15
UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff\ud800-\udfff]|_x(?=[0-9A-Fa-f]{4}_)")
SPANS = re.compile(rb"\s+spans=(\"[^\"]*\"|'[^']*')")
XML_TAG = re.compile(rb"<[^\s<>/]+(?:\s+[^\s=<>]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*/?>")
DIMENSION = re.compile(rb"(<(?:\w+:)?dimension\b[^>]*?\sref=[\"'])([^\"']*)")

# A text, a number, a truth value, a formula as {"formula": "=…"}, or None for an empty cell.
CellValue = str | int | float | bool | Mapping[str, str] | None
SheetEdits = Mapping[int, Mapping[int, CellValue]]


@dataclass(slots=True)
class CellSpan:
    """Position of a cell in the XML, in bytes, and what may be lost with it."""

    start: int
    open_end: int
    style: str
    end: int = 0
    # The cells that its formula is for as well.
    shared: CellRange | None = None


@dataclass(slots=True)
class RowSpan:
    """Position of a row in the XML, in bytes, and its cells. `open_end` is the end of its start tag."""

    number: int
    start: int
    open_end: int
    end: int = 0
    cells: dict[int, CellSpan] = field(default_factory=dict[int, CellSpan])


class SheetLayout:
    """A sheet's XML, measured."""

    def __init__(self, xml: bytes) -> None:
        if xml[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise ParseRefused("unreadable", "a sheet of it is in UTF-16, which is not changed here")
        self.xml = xml
        self.lines: list[RowSpan] = []
        self.last_used = 0
        self.merged: list[CellRange] = []
        self.arrays: list[CellRange] = []
        self.protected = False
        self.prefix = ""
        self.data_start = self.data_close = self.data_end = self._data_open_end = 0
        self._cell: CellSpan | None = None
        self._column = 0
        self._parser = create_xml_parser(self._start, self._end)
        feed_xml_parser(self._parser, xml, final=True)
        if not self.data_end:
            raise ParseRefused("unreadable", "a sheet of it has no cells")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        prefix, _, tag = name.rpartition(":")
        at = self._parser.CurrentByteIndex
        if tag == "row":
            number = int(attributes["r"]) if "r" in attributes else self.lines[-1].number + 1 if self.lines else 1
            self.lines.append(RowSpan(number, at, self._open_end(at)))
            self._column = 0
        elif tag == "c" and self.lines:
            reference = attributes.get("r")
            self._column = column_number(reference.rstrip("0123456789")) if reference else self._column + 1
            self._cell = CellSpan(at, self._open_end(at), attributes.get("s", ""))
            self.lines[-1].cells[self._column] = self._cell
        elif tag in ("v", "is", "f") and self._cell is not None:
            self.last_used = self.lines[-1].number
            if tag == "f":
                self._formula(self._cell, attributes)
        elif tag == "sheetData":
            self.prefix = f"{prefix}:" if prefix else ""
            self.data_start, self._data_open_end = at, self._open_end(at)
        elif tag == "mergeCell":
            self.merged.append(_parse_range(attributes.get("ref", "")))
        elif tag == "sheetProtection":
            self.protected = attributes.get("sheet") in ("1", "true")

    @property
    def last_row(self) -> int:
        """The last row with anything in it, or covered by merged cells that begin above its end."""
        below = (area.last_row for area in self.merged if area.first_row <= self.last_used)
        return max((self.last_used, *below))

    def _formula(self, cell: CellSpan, attributes: Mapping[str, str]) -> None:
        area = _parse_range(attributes["ref"]) if "ref" in attributes else None
        if area is not None and area.first_row == area.last_row and area.first_column == area.last_column:
            return
        if attributes.get("t") == "shared":
            cell.shared = area
        elif area is not None:
            self.arrays.append(area)

    def _open_end(self, at: int) -> int:
        match = XML_TAG.match(self.xml, at)
        if match is None:
            raise ParseRefused("unreadable", f"a sheet of it is not understood at byte {at}")
        return match.end()

    def _whole_end(self, open_end: int) -> int:
        """Behind the element that ends now. One without content ends with its only tag, and the parser is there already."""
        if self.xml[open_end - 2 : open_end] == b"/>":
            return open_end
        return self.xml.index(b">", self._parser.CurrentByteIndex) + 1

    def _end(self, name: str) -> None:
        tag = name.rpartition(":")[2]
        if tag == "c" and self._cell is not None:
            self._cell.end, self._cell = self._whole_end(self._cell.open_end), None
        elif tag == "row":
            self.lines[-1].end = self._whole_end(self.lines[-1].open_end)
        elif tag == "sheetData":
            self.data_end = self._whole_end(self._data_open_end)
            alone = self.data_end == self._data_open_end
            self.data_close = self.data_start if alone else self._parser.CurrentByteIndex


def _parse_range(ref: str) -> CellRange:
    first, _, last = ref.partition(":")
    (row, column), (last_row, last_column) = (
        parse_cell_name(first, "unreadable"),
        parse_cell_name(last or first, "unreadable"),
    )
    return CellRange(row, last_row, column, last_column)


def check_edits(layout: SheetLayout, edits: SheetEdits, headers: list[CellRange], sheet: str) -> None:
    """Raise `ParseRefused`, naming what would be lost, when the edits cannot be made without it."""
    if layout.protected:
        raise ParseRefused(
            "protected", f"the sheet {sheet!r} is protected against changes", hint="ask the person to unprotect it"
        )
    lines = {line.number: line for line in layout.lines}
    for row, values in edits.items():
        for column in values:
            if not (1 <= row <= MAX_ROWS and 1 <= column <= MAX_COLUMNS):
                raise ParseRefused("arguments", "a sheet goes from A1 to XFD1048576, and the data go further")
            name = f"{format_cell_name(row, column)} of {sheet!r}"
            cell = lines[row].cells.get(column) if row in lines else None
            if cell is not None and cell.shared is not None:
                raise _data_loss_refusal(f"{name} holds the formula that {cell.shared} share")
            for area in layout.merged:
                if (row, column) in area and (row, column) != (area.first_row, area.first_column):
                    first = format_cell_name(area.first_row, area.first_column)
                    raise _data_loss_refusal(
                        f"{name} is covered by the merged cells {area}; their value is that of {first}"
                    )
            for area in layout.arrays:
                if (row, column) in area:
                    raise _data_loss_refusal(f"{name} is a part of the array formula of {area}")
            for area in headers:
                if (row, column) in area:
                    raise _data_loss_refusal(
                        f"{name} is a head of the table whose heads are {area}; the table would be damaged"
                    )


def _data_loss_refusal(what: str) -> ParseRefused:
    return ParseRefused(
        "loss", what, hint="nothing was written; leave this cell out, or change it in a spreadsheet program"
    )


def patch_sheet(layout: SheetLayout, edits: SheetEdits) -> bytes:
    """Return the XML of the sheet with the edits applied. Raises `ParseRefused` if its rows are not in order."""
    numbers = [line.number for line in layout.lines]
    if numbers != sorted(set(numbers)):
        raise ParseRefused("unreadable", "the rows of a sheet are not in order")
    pieces: list[tuple[int, int, bytes]] = []
    for row, values in sorted(edits.items()):
        at = bisect_left(numbers, row)
        if at < len(numbers) and numbers[at] == row:
            pieces.append(_patch_row(layout, layout.lines[at], values))
        else:
            empty = layout.data_close == layout.data_start
            place = layout.lines[at].start if at < len(numbers) else layout.data_close if not empty else layout.data_end
            pieces.append((place, place, _build_row(layout.prefix, row, values)))
    return _extend_dimension(_splice_pieces(layout, pieces), edits)


def _splice_pieces(layout: SheetLayout, pieces: list[tuple[int, int, bytes]]) -> bytes:
    xml, prefix = layout.xml, layout.prefix.encode()
    if pieces and layout.data_close == layout.data_start:
        # `<sheetData/>` has no room between tags yet.
        rows = b"".join(piece for _, _, piece in pieces)
        inside = b"<%bsheetData>%b</%bsheetData>" % (prefix, rows, prefix)
        return xml[: layout.data_start] + inside + xml[layout.data_end :]
    out: list[bytes] = []
    last = 0
    for start, end, piece in pieces:
        out += (xml[last:start], piece)
        last = end
    return b"".join((*out, xml[last:]))


def _build_row(prefix: str, row: int, values: Mapping[int, CellValue]) -> bytes:
    cells = b"".join(_format_cell(prefix, row, column, value, "") for column, value in sorted(values.items()))
    return b'<%brow r="%d">%b</%brow>' % (prefix.encode(), row, cells, prefix.encode())


def _patch_row(layout: SheetLayout, line: RowSpan, values: Mapping[int, CellValue]) -> tuple[int, int, bytes]:
    xml, prefix = layout.xml, layout.prefix
    cells = {column: xml[cell.start : cell.end] for column, cell in line.cells.items()}
    for column, value in values.items():
        style = line.cells[column].style if column in line.cells else ""
        cells[column] = _format_cell(prefix, line.number, column, value, style)
    tag = SPANS.sub(b"", xml[line.start : line.open_end])
    # Cells may stand without their names, and have to be counted then.
    tag = tag[:-2].rstrip() + b">" if tag.endswith(b"/>") else tag
    inside = b"".join(cells[column] for column in sorted(cells))
    return line.start, line.end, tag + inside + b"</%brow>" % prefix.encode()


def _format_cell(prefix: str, row: int, column: int, value: CellValue, style: str) -> bytes:
    head = f'<{prefix}c r="{format_cell_name(row, column)}"' + (f' s="{style}"' if style else "")
    if value is None:
        return f"{head}/>".encode() if style else b""
    if isinstance(value, Mapping):
        formula = value["formula"].removeprefix("=")
        if flaw := find_formula_flaw(formula):
            raise ParseRefused(
                "arguments",
                f"the formula {value['formula'][:200]!r} of {format_cell_name(row, column)} {flaw}",
                hint="spreadsheet programs would take the file for damaged; write it as in a cell",
            )
        return f"{head}><{prefix}f>{_escape_text(formula)}</{prefix}f></{prefix}c>".encode()
    if isinstance(value, bool):
        return f'{head} t="b"><{prefix}v>{int(value)}</{prefix}v></{prefix}c>'.encode()
    if (isinstance(value, int | float) and abs(value) < EXACT_INTEGER_LIMIT) or isinstance(value, float):
        if not math.isfinite(value):
            raise ParseRefused("arguments", f"{format_cell_name(row, column)} is to be {value}, which no cell can hold")
        return f"{head}><{prefix}v>{value!r}</{prefix}v></{prefix}c>".encode()
    text = str(value)
    if len(text) > MAX_LETTERS:
        raise ParseRefused(
            "arguments",
            f"{format_cell_name(row, column)} is to hold {len(text):,} characters; at most {MAX_LETTERS:,} fit",
        )
    inside = f'<{prefix}is><{prefix}t xml:space="preserve">{_escape_text(text)}</{prefix}t></{prefix}is>'
    return f'{head} t="inlineStr">{inside}</{prefix}c>'.encode()


def _escape_text(text: str) -> str:
    """Text for XML; what XML has no place for is written as spreadsheets do."""
    return escape(UNWRITABLE.sub(_encode_match, text))


def _encode_match(match: re.Match[str]) -> str:
    return "_x005F_x" if match[0] == "_x" else f"_x{ord(match[0]):04X}_"


def _extend_dimension(xml: bytes, edits: SheetEdits) -> bytes:
    """Return the XML of the sheet with its declared dimension enlarged, if necessary, to include the edits."""
    columns = [column for values in edits.values() for column in values]
    if not columns:
        return xml

    def grown(match: re.Match[bytes]) -> bytes:
        old = _parse_range(match[2].decode())
        rows = (*edits, old.first_row, old.last_row)
        every = (*columns, old.first_column, old.last_column)
        return match[1] + str(CellRange(min(rows), max(rows), min(every), max(every))).encode()

    return DIMENSION.sub(grown, xml, count=1)


def classify_value(value: Any) -> tuple[bool, bool]:
    """Return whether a value is text that a spreadsheet would take for a formula, and whether it is too long a number.

    A number that is too long cannot be stored as one: an integer of 10**15 or more in magnitude is written as text.
    """
    formula_like = isinstance(value, str) and value.lstrip()[:1] in ("=", "+", "-", "@") and len(value.strip()) > 1
    too_long = isinstance(value, int) and not isinstance(value, bool) and abs(value) >= EXACT_INTEGER_LIMIT
    return formula_like, too_long
