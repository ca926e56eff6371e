"""Tables in formats other than .xlsx: CSV in its dialects, and old .xls. Runs in the worker."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import IO, Any

from handrail.workers.parse_refusal import ParseRefused
from handrail_documents.cell_ranges import CellRange
from handrail_documents.markdown_table import SheetCells
from handrail_documents.number_formats import format_stored_number

SAMPLE_BYTES = 65_536
DELIMITERS = ",;\t|"
MAX_FIELD = 1_000_000
# Up to here all rows are counted.
COUNTED_BYTES = 8 * 1_048_576
# What numbers make of two bytes, and writers do not.
CONTROL_CHARS = re.compile("[\x01-\x08\x0e-\x1a]")
# Letters in one byte. Windows-1254 has six of Turkish where Windows-1252 has those of Icelandic, whose texts hold others beside them.
LETTER = re.compile(rb"[\xc0-\xff]")
ONLY_TURKISH = {letter.encode("cp1254") for letter in "ĞİŞğış"}
TURKISH = ONLY_TURKISH | {letter.encode("cp1254") for letter in "ÂÇÎÖÛÜâçîöûü"}
BINARY_REFUSAL = ParseRefused("unreadable", "it is binary, and no table of a kind that is read here (xlsx, xls, csv)")
BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_csv_cells(file: IO[bytes], area: CellRange) -> tuple[SheetCells, str, str]:
    """Return the cells of the area, and the encoding and delimiter that were detected."""
    size = os.fstat(file.fileno()).st_size
    sample = file.read(SAMPLE_BYTES)
    encoding = _detect_encoding(_find_informative_sample(file, sample))
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    delimiter, lines_before = _detect_delimiter(text)
    file.seek(0)
    stream = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="")
    for _ in range(lines_before):
        stream.readline()
    csv.field_size_limit(MAX_FIELD)
    try:
        cells = _collect_rows(csv.reader(stream, delimiter=delimiter), area, count=size <= COUNTED_BYTES)
    except csv.Error as exc:
        raise ParseRefused("unreadable", f"it is no CSV: {exc}") from exc
    finally:
        stream.detach()
    return cells, encoding, delimiter


def _collect_rows(reader: Iterator[list[str]], area: CellRange, *, count: bool) -> SheetCells:
    cells = SheetCells()
    number = widest = 0
    for number, row in enumerate(reader, start=1):
        if number > area.last_row:
            cells.more = True
            if not count:
                return cells
        widest = max(widest, len(row))
        if area.first_row <= number <= area.last_row:
            wanted = row[area.first_column - 1 : area.last_column]
            cells.rows[number] = dict(enumerate(wanted, start=area.first_column))
    cells.total_rows, cells.total_columns = number, widest
    return cells


def _detect_encoding(sample: bytes) -> str:
    for mark, name in BYTE_ORDER_MARKS:
        if sample.startswith(mark):
            return name
    if b"\0" in sample:
        even, odd = sample[0::2].count(0), sample[1::2].count(0)
        if 5 * max(even, odd) < len(sample) or min(even, odd):
            raise BINARY_REFUSAL
        name = "utf-16-le" if odd else "utf-16-be"
        if CONTROL_CHARS.search(sample.decode(name, "replace")):
            raise BINARY_REFUSAL
        return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        letters = set(LETTER.findall(sample))
        return "cp1254" if letters & ONLY_TURKISH and letters <= TURKISH else "cp1252"
    return "utf-8"


def _find_informative_sample(file: IO[bytes], sample: bytes) -> bytes:
    """Return the first part of the file that reveals its encoding. Pure ASCII reveals nothing."""
    looked_at = len(sample)
    while sample.isascii() and b"\0" not in sample and looked_at < COUNTED_BYTES:
        more = file.read(SAMPLE_BYTES)
        if not more or b"\0" in more:
            break
        sample, looked_at = more, looked_at + len(more)
    return sample


def _detect_delimiter(text: str) -> tuple[str, int]:
    """Return the delimiter of the fields, and how many lines before the first row declare it (`sep=;`)."""
    first = text.partition("\n")[0].strip()
    if first[:4].lower() == "sep=" and len(first) == 5:
        return first[4], 1
    return max(DELIMITERS, key=lambda delimiter: _score_delimiter(text, delimiter)), 0


def _score_delimiter(text: str, delimiter: str) -> tuple[float, int]:
    """Score how well a delimiter fits: the share of rows that have the most common width, and that width.

    Both are 0 if that width is a single field.
    """
    try:
        rows = [
            len(row)
            for row, _ in zip(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), range(100), strict=False)
            if row
        ]
    except csv.Error:
        return 0, 0
    # The last row of a sample may be cut.
    rows = rows[:-1] or rows
    width = max(set(rows), key=rows.count, default=1)
    return (rows.count(width) / len(rows), width) if width > 1 else (0, 0)


def open_xls_workbook(data: bytes) -> Any:
    """Open an old workbook. Raises `ParseRefused` if it needs a password or is not a workbook."""
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    check_not_encrypted(data)
    try:
        return CalamineWorkbook.from_filelike(io.BytesIO(data))
    except PasswordError:
        raise _password_refusal() from None
    except CalamineError as exc:
        raise ParseRefused("unreadable", f"it is damaged or no workbook: {exc}") from exc


def check_not_encrypted(data: bytes) -> None:
    """`ParseRefused` for a workbook of today that takes a password: it lies packed in a file that looks like one of old."""
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise _password_refusal()


def _password_refusal() -> ParseRefused:
    return ParseRefused("protected", "it is protected by a password", hint="ask the person for a copy without one")


def read_xls_cells(sheet: Any, area: CellRange) -> SheetCells:
    """Return the cells of the area from a sheet of an old workbook."""
    cells = SheetCells(total_rows=sheet.total_height, total_columns=sheet.total_width)
    cells.more = sheet.total_height > area.last_row
    for number, row in enumerate(sheet.to_python(skip_empty_area=False, nrows=area.last_row), start=1):
        if number >= area.first_row:
            wanted = row[area.first_column - 1 : area.last_column]
            cells.rows[number] = {
                at: _format_xls_value(value) for at, value in enumerate(wanted, start=area.first_column)
            }
    for (row, column), (last_row, last_column) in sheet.merged_cell_ranges or ():
        merged = CellRange(row + 1, last_row + 1, column + 1, last_column + 1)
        if merged.meets(area):
            cells.merged.append(merged)
    return cells


def _format_xls_value(value: Any) -> str:
    match value:
        case bool() | str():
            return str(value)
        case int() | float():
            return format_stored_number(repr(value))
        case datetime():
            return value.isoformat(" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return ""
