"""Tables that are no .xlsx: CSV in its dialects, and old .xls. Runs in the worker."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import IO, Any

from handrail.parsing.refusing import Refused
from handrail_documents.numbers import shown_number
from handrail_documents.ranges import Area
from handrail_documents.tables import Cells

SAMPLE = 65_536
DELIMITERS = ",;\t|"
MAX_FIELD = 1_000_000
# Up to here all rows are counted.
COUNTED_BYTES = 8 * 1_048_576
# What numbers make of two bytes, and writers do not.
UNWRITTEN = re.compile("[\x01-\x08\x0e-\x1a]")
# Letters in one byte. Windows-1254 has six of Turkish where Windows-1252 has those of Icelandic, whose texts hold others beside them.
LETTER = re.compile(rb"[\xc0-\xff]")
ONLY_TURKISH = {letter.encode("cp1254") for letter in "ĞİŞğış"}
TURKISH = ONLY_TURKISH | {letter.encode("cp1254") for letter in "ÂÇÎÖÛÜâçîöûü"}
NOTHING_READ = Refused("unreadable", "it is binary, and no table of a kind that is read here (xlsx, xls, csv)")
MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def csv_cells(file: IO[bytes], area: Area) -> tuple[Cells, str, str]:
    """The cells of the area, the encoding and the delimiter that were found."""
    size = os.fstat(file.fileno()).st_size
    sample = file.read(SAMPLE)
    encoding = _encoding(_telling(file, sample))
    text = codecs.getincrementaldecoder(encoding)("replace").decode(sample)
    delimiter, lines_before = _delimiter(text)
    file.seek(0)
    stream = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="")
    for _ in range(lines_before):
        stream.readline()
    csv.field_size_limit(MAX_FIELD)
    try:
        cells = _rows(csv.reader(stream, delimiter=delimiter), area, count=size <= COUNTED_BYTES)
    except csv.Error as exc:
        raise Refused("unreadable", f"it is no CSV: {exc}") from exc
    finally:
        stream.detach()
    return cells, encoding, delimiter


def _rows(reader: Iterator[list[str]], area: Area, *, count: bool) -> Cells:
    cells = Cells()
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


def _encoding(sample: bytes) -> str:
    for mark, name in MARKS:
        if sample.startswith(mark):
            return name
    if b"\0" in sample:
        even, odd = sample[0::2].count(0), sample[1::2].count(0)
        if 5 * max(even, odd) < len(sample) or min(even, odd):
            raise NOTHING_READ
        name = "utf-16-le" if odd else "utf-16-be"
        if UNWRITTEN.search(sample.decode(name, "replace")):
            raise NOTHING_READ
        return name
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        letters = set(LETTER.findall(sample))
        return "cp1254" if letters & ONLY_TURKISH and letters <= TURKISH else "cp1252"
    return "utf-8"


def _telling(file: IO[bytes], sample: bytes) -> bytes:
    """The first part of the file that tells how it is encoded: ASCII tells nothing."""
    looked_at = len(sample)
    while sample.isascii() and b"\0" not in sample and looked_at < COUNTED_BYTES:
        more = file.read(SAMPLE)
        if not more or b"\0" in more:
            break
        sample, looked_at = more, looked_at + len(more)
    return sample


def _delimiter(text: str) -> tuple[str, int]:
    """What stands between the fields, and how many lines before the first row say so (`sep=;`)."""
    first = text.partition("\n")[0].strip()
    if first[:4].lower() == "sep=" and len(first) == 5:
        return first[4], 1
    return max(DELIMITERS, key=lambda delimiter: _fit(text, delimiter)), 0


def _fit(text: str, delimiter: str) -> tuple[float, int]:
    """How well a delimiter fits: the share of rows that are as wide as most, where that is more than one field, and that width."""
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


def xls_sheets(data: bytes) -> Any:
    """An old workbook, open; `Refused` for what takes a password or is none."""
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    check_open(data)
    try:
        return CalamineWorkbook.from_filelike(io.BytesIO(data))
    except PasswordError:
        raise _protected() from None
    except CalamineError as exc:
        raise Refused("unreadable", f"it is damaged or no workbook: {exc}") from exc


def check_open(data: bytes) -> None:
    """`Refused` for a workbook of today that takes a password: it lies packed in a file that looks like one of old."""
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise _protected()


def _protected() -> Refused:
    return Refused("protected", "it is protected by a password", hint="ask the person for a copy without one")


def xls_cells(sheet: Any, area: Area) -> Cells:
    """The cells of a sheet of an old workbook that lie in the area."""
    cells = Cells(total_rows=sheet.total_height, total_columns=sheet.total_width)
    cells.more = sheet.total_height > area.last_row
    for number, row in enumerate(sheet.to_python(skip_empty_area=False, nrows=area.last_row), start=1):
        if number >= area.first_row:
            wanted = row[area.first_column - 1 : area.last_column]
            cells.rows[number] = {at: _text(value) for at, value in enumerate(wanted, start=area.first_column)}
    for (row, column), (last_row, last_column) in sheet.merged_cell_ranges or ():
        merged = Area(row + 1, last_row + 1, column + 1, last_column + 1)
        if merged.meets(area):
            cells.merged.append(merged)
    return cells


def _text(value: Any) -> str:
    match value:
        case bool() | str():
            return str(value)
        case int() | float():
            return shown_number(repr(value))
        case datetime():
            return value.isoformat(" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return ""
