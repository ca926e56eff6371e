"""Cells out of a sheet of an .xlsx, read no further than needed. Runs in the worker."""

from __future__ import annotations

import re
from collections.abc import Iterator

from handrail.workers.parse_refusal import ParseRefused
from handrail_documents.cell_ranges import CellRange, column_number, format_cell_name, parse_cell_name
from handrail_documents.markdown_table import SheetCells
from handrail_documents.number_formats import NumberMeaning, format_stored_number, read_style_meanings
from handrail_documents.xlsx_package import (
    StopParsing,
    XlsxPackage,
    create_xml_parser,
    feed_xml_parser,
    iter_xml_elements,
)

# Sheets of up to so many bytes of XML are read to their end, for what is behind the cells: merged ones, and how many there are.
TO_THE_END = 2 * 1_048_576
# Rows before the wanted ones are jumped over rather than parsed where there are more.
JUMP = 500
MAX_TAG = 1_000
MAX_FORMULAS = 200
MAX_MERGED = 100
ESCAPED_CHAR = re.compile(r"_x([0-9A-Fa-f]{4})_")
ROW = re.compile(rb"<((?:\w+:)?)row\b[^>]*?\sr=[\"'](\d+)[\"']")
END = re.compile(rb"</(?:\w+:)?sheetData\s*>")
VALUES = frozenset({"v", "t", "f"})


def read_sheet_cells(package: XlsxPackage, part: str, area: CellRange) -> SheetCells:
    """Read the cells of a sheet that lie in the area."""
    reading = _SheetHandler(package, area, to_the_end=package.names[part].file_size <= TO_THE_END)
    parser = create_xml_parser(reading.start, reading.end, reading.text)
    try:
        for block in _skip_to_row(package.blocks(part), area.first_row):
            feed_xml_parser(parser, block)
        feed_xml_parser(parser, b"", final=True)
    except StopParsing:
        pass
    return reading.done()


def _skip_to_row(blocks: Iterator[bytes], first: int) -> Iterator[bytes]:
    """Yield the sheet without the rows before the first requested one.

    Finding a row is fast, but parsing a million of them is slow.
    """
    if first < JUMP:
        yield from blocks
        return
    waiting, begun = b"", False
    for block in blocks:
        waiting += block
        match = None
        for match in ROW.finditer(waiting):
            if not begun:
                yield waiting[: match.start()]
                begun = True
            if int(match[2]) >= first:
                yield waiting[match.start() :]
                yield from blocks
                return
        if (end := END.search(waiting)) is not None:
            # No row is as far down.
            yield waiting[end.start() :] if begun else waiting
            yield from blocks
            return
        # The tag of a row may go on in the next block.
        waiting = waiting[match.start() :] if match is not None else waiting if not begun else waiting[-MAX_TAG:]
    yield waiting if not begun else b""


class _SheetHandler:
    """Handlers for the parser of one sheet."""

    def __init__(self, package: XlsxPackage, area: CellRange, *, to_the_end: bool) -> None:
        self._area = area
        self._to_the_end = to_the_end
        self._cells = SheetCells()
        self._strings = _SharedStrings(package)
        self._meanings: list[NumberMeaning] | None = None
        self._package = package
        self._row = self._column = 0
        self._last_row = self._last_column = 0
        self._stated: tuple[int, int] | None = None
        self._ended = False
        self._kind = ""
        self._style = 0
        self._wanted = self._keep = self._aloud = False
        self._value: list[str] = []
        self._formula: list[str] = []
        self._shared: dict[str, str] = {}
        self._formula_of = ""
        self._into: list[str] | None = None
        self._texts: dict[int, str] = {}
        self._hidden_rows: list[str] = []
        self._hidden_columns: list[str] = []
        self._uncomputed = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2] if ":" in name else name
        if tag == "c":
            self._start_cell(attributes)
        elif tag in VALUES:
            if self._keep and not self._aloud:
                self._into = self._formula if tag == "f" else self._value
                if tag == "f" and attributes.get("t") == "shared":
                    self._formula_of = attributes.get("si", "")
        elif tag == "rPh":
            # How to read it aloud is no part of the text.
            self._aloud = True
        elif tag == "row":
            self._start_row(attributes)
        else:
            self._start_other(tag, attributes)

    def _start_row(self, attributes: dict[str, str]) -> None:
        number = attributes.get("r", "")
        self._row = int(number) if number.isdecimal() else self._row + 1
        self._column = 0
        self._wanted = self._area.first_row <= self._row <= self._area.last_row
        if self._row > self._area.last_row:
            self._cells.more = True
            if not self._to_the_end:
                raise StopParsing
        if self._wanted and attributes.get("hidden") in ("1", "true"):
            self._hidden_rows.append(str(self._row))

    def _start_cell(self, attributes: dict[str, str]) -> None:
        name = attributes.get("r")
        self._column = column_number(name.rstrip("0123456789")) if name else self._column + 1
        self._last_column = max(self._last_column, self._column)
        self._last_row = self._row
        self._keep = self._wanted and self._area.first_column <= self._column <= self._area.last_column
        if self._keep:
            self._kind = attributes.get("t", "n")
            style = attributes.get("s", "0")
            self._style = int(style) if style.isdecimal() else 0
            self._value = []
            if self._formula or self._formula_of:
                self._formula, self._formula_of = [], ""

    def _start_other(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "dimension" and ":" in attributes.get("ref", ""):
            self._stated = parse_cell_name(attributes["ref"].partition(":")[2], "unreadable")
        elif tag == "col" and attributes.get("hidden") in ("1", "true"):
            self._hidden_columns.append(f"{attributes.get('min')}-{attributes.get('max')}")
        elif tag == "mergeCell" and len(self._cells.merged) < MAX_MERGED:
            self._merge(attributes.get("ref", ""))

    def _merge(self, ref: str) -> None:
        first, _, last = ref.partition(":")
        (row, column), (last_row, last_column) = (
            parse_cell_name(first, "unreadable"),
            parse_cell_name(last or first, "unreadable"),
        )
        area = CellRange(row, last_row, column, last_column)
        if area.meets(self._area):
            self._cells.merged.append(area)

    def text(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)

    def end(self, name: str) -> None:
        tag = name.rpartition(":")[2] if ":" in name else name
        if tag in VALUES:
            self._into = None
        elif tag == "c":
            if self._keep:
                self._end_cell()
        elif tag == "rPh":
            self._aloud = False
        elif tag == "row":
            if self._texts:
                self._cells.rows[self._row] = self._texts
                self._texts = {}
            if self._row >= self._area.last_row and not self._to_the_end:
                # The sheet may end here; how far it goes it says itself.
                self._cells.more = self._stated is not None and self._stated[0] > self._row
                raise StopParsing
        elif tag == "sheetData":
            self._ended = True

    def _end_cell(self) -> None:
        self._keep = False
        text = self._shown("".join(self._value))
        if self._formula or self._formula_of:
            text = self._with_formula("".join(self._formula), text)
        if text:
            self._texts[self._column] = text

    def _with_formula(self, formula: str, text: str) -> str:
        """Note a cell's formula; what the cell shows: its last value, or the formula where it has none."""
        name = format_cell_name(self._row, self._column)
        if formula and self._formula_of:
            self._shared[self._formula_of] = name
        shown = f"={formula}" if formula else f"=(as in {self._shared.get(self._formula_of, '?')})"
        if len(self._cells.formulas) < MAX_FORMULAS:
            self._cells.formulas[name] = shown
        if self._value:
            return text
        self._uncomputed += 1
        return shown

    def _shown(self, raw: str) -> str:
        if self._kind == "s":
            return self._strings.at(int(raw)) if raw.strip().isdecimal() else ""
        if self._kind in ("inlineStr", "str"):
            return unescape_text(raw)
        if not raw:
            return ""
        if self._kind == "b":
            return "True" if raw.strip() in ("1", "true") else "False"
        if self._kind == "n":
            return format_stored_number(raw, self._meaning(), from_1904=self._package.from_1904)
        return raw

    def _meaning(self) -> NumberMeaning:
        if not self._style:
            return "number"
        if self._meanings is None:
            part = self._package.part_of_kind("styles")
            self._meanings = read_style_meanings(iter_xml_elements(self._package.whole(part))) if part else []
        return self._meanings[self._style] if self._style < len(self._meanings) else "number"

    def done(self) -> SheetCells:
        """Return the cells that were read, with totals and notes."""
        cells = self._cells
        if self._ended:
            cells.total_rows, cells.total_columns = self._last_row, self._last_column
        elif self._stated is not None:
            cells.total_rows, cells.total_columns = self._stated
        if not self._ended:
            cells.notes.append("merged cells were not looked for: the sheet is large")
        if self._uncomputed:
            cells.notes.append(f"{self._uncomputed} formulas have no computed value and are shown themselves")
        if self._hidden_rows:
            cells.notes.append(f"hidden rows are among them: {', '.join(self._hidden_rows[:20])}")
        if self._hidden_columns:
            cells.notes.append(f"hidden columns, by number: {', '.join(self._hidden_columns[:20])}")
        return cells


class _SharedStrings:
    """The texts that cells share, read as far as they are asked for."""

    def __init__(self, package: XlsxPackage) -> None:
        self._package = package
        self._found: list[str] = []
        self._blocks: Iterator[bytes] | None = None
        self._parts: list[str] = []
        self._in_text = False
        self._aloud = False
        self._parser = create_xml_parser(self._start, self._end, self._text)

    def at(self, index: int) -> str:
        """Return the shared string at an index; `ParseRefused` if the index is out of range."""
        if self._blocks is None:
            part = self._package.part_of_kind("sharedStrings")
            self._blocks = self._package.blocks(part) if part else iter(())
        while index >= len(self._found):
            block = next(self._blocks, None)
            if block is None:
                raise ParseRefused("unreadable", f"a cell names text {index}, and there are {len(self._found)}")
            feed_xml_parser(self._parser, block)
        return self._found[index]

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        tag = name.rpartition(":")[2] if ":" in name else name
        if tag == "rPh":
            self._aloud = True
        self._in_text = tag == "t" and not self._aloud

    def _text(self, data: str) -> None:
        if self._in_text:
            self._parts.append(data)

    def _end(self, name: str) -> None:
        tag = name.rpartition(":")[2] if ":" in name else name
        self._in_text = False
        if tag == "rPh":
            self._aloud = False
        elif tag == "si":
            self._found.append(unescape_text("".join(self._parts)))
            self._parts = []


def unescape_text(text: str) -> str:
    """Text with its characters for which XML has no place: `_x000D_` is a carriage return."""
    return ESCAPED_CHAR.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text
