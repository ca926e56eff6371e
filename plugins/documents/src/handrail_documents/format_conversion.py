"""Conversions of tables, images and PDF files in Python alone, and preparation for LibreOffice. Runs in the worker."""

from __future__ import annotations

import csv
import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from html import escape
from importlib import import_module
from itertools import count
from typing import IO, Any

from PIL import Image

from handrail.workers.parse_refusal import ParseRefused
from handrail_documents.cell_ranges import CellRange
from handrail_documents.csv_and_xls import open_xls_workbook, read_csv_cells, read_xls_cells
from handrail_documents.image_loader import MAX_PIXELS, load_image
from handrail_documents.markdown_table import SheetCells
from handrail_documents.workbook_reader import OLE_SIGNATURE, list_xls_sheets, select_sheet
from handrail_documents.workbook_writer import MAX_TOTAL_BYTES
from handrail_documents.xlsx_package import SheetEntry, XlsxPackage
from handrail_documents.xlsx_reader import read_sheet_cells

WHOLE_SHEET = CellRange()
# Dots an inch for a page of a PDF, and for a picture on one.
RENDER_DPI = 150
QUALITY = 90
WHITE = (255, 255, 255)
ATTRIBUTES = rb"(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*"
SHEET = re.compile(rb"<((?:\w+:)?sheet)(%b)\s*(/?)>" % ATTRIBUTES)
VIEW = re.compile(rb"<((?:\w+:)?workbookView)(%b)\s*(/?)>" % ATTRIBUTES)
STATE = re.compile(rb"\s+state\s*=\s*(?:\"[^\"]*\"|'[^']*')")
FRONT_ATTRIBUTES = re.compile(rb"\s+(?:activeTab|firstSheet)\s*=\s*(?:\"[^\"]*\"|'[^']*')")


def convert_table(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return one sheet of a table as CSV or HTML, in the bytes. `args`: `sheet`, `to`."""
    assert fd is not None
    with os.fdopen(os.dup(fd), "rb") as file:
        name, cells = _read_sheet(file, args["sheet"])
    made = _format_csv(cells) if args["to"] == "csv" else _format_html(name, cells)
    return {"sheet_name": name}, made.encode("utf-8", "replace")


def _read_sheet(file: IO[bytes], wanted: str | None) -> tuple[str, SheetCells]:
    start = file.read(8)
    file.seek(0)
    if start.startswith(b"PK"):
        package, entry = _open_selected_sheet(file, wanted)
        assert entry.part is not None
        return entry.name, read_sheet_cells(package, entry.part, WHOLE_SHEET)
    if start == OLE_SIGNATURE:
        workbook = open_xls_workbook(file.read())
        entry = select_sheet(list_xls_sheets(workbook), wanted, ())
        return entry.name, read_xls_cells(workbook.get_sheet_by_name(entry.name), WHOLE_SHEET)
    only = SheetEntry("csv", hidden=False, part="csv")
    if wanted:
        select_sheet([only], wanted, ())
    return "csv", read_csv_cells(file, WHOLE_SHEET)[0]


def _open_selected_sheet(file: IO[bytes], wanted: str | None) -> tuple[XlsxPackage, SheetEntry]:
    package = XlsxPackage(file)
    sheets = [sheet for sheet in package.sheets if sheet.part in package.names]
    return package, select_sheet(sheets, wanted, package.sheets[package.active : package.active + 1])


def _iter_padded_rows(cells: SheetCells) -> Iterator[list[str]]:
    """Yield every row up to the last that is not empty, padded to the same width."""
    used = [(number, max((at for at, text in row.items() if text), default=0)) for number, row in cells.rows.items()]
    last = max((number for number, width in used if width), default=0)
    width = max((width for _, width in used), default=0)
    for number in range(1, last + 1):
        row = cells.rows.get(number, {})
        yield [row.get(column, "") for column in range(1, width + 1)]


def _format_csv(cells: SheetCells) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(_iter_padded_rows(cells))
    return out.getvalue()


def _format_html(name: str, cells: SheetCells) -> str:
    rows = (
        "<tr>" + "".join(f"<td>{escape(text).replace(chr(10), '<br>')}</td>" for text in row) + "</tr>\n"
        for row in _iter_padded_rows(cells)
    )
    head = f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{escape(name)}</title></head>'
    return f'{head}\n<body><table border="1">\n{"".join(rows)}</table></body></html>\n'


def isolate_sheet(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the workbook with one sheet shown, in front, and all others hidden, in the bytes. `args`: `sheet`."""
    assert fd is not None
    with os.fdopen(os.dup(fd), "rb") as file:
        package, entry = _open_selected_sheet(file, args["sheet"])
        if sum(info.file_size for info in package.zip.infolist()) > MAX_TOTAL_BYTES:
            raise ParseRefused("limit", f"it unpacks to more than {MAX_TOTAL_BYTES:,} bytes")
        number = package.sheets.index(entry)
        shown = _show_only_sheet(package.whole(package.workbook), number)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as packed:
            for info in package.zip.infolist():
                packed.writestr(info, shown if info.filename == package.workbook else package.zip.read(info))
    return {"sheet_name": entry.name, "number": number + 1}, out.getvalue()


def _show_only_sheet(listing: bytes, number: int) -> bytes:
    at = count()

    def sheet(match: re.Match[bytes]) -> bytes:
        state = b"visible" if next(at) == number else b"hidden"
        return b'<%b%b state="%b"%b>' % (match[1], STATE.sub(b"", match[2]), state, match[3])

    def view(match: re.Match[bytes]) -> bytes:
        kept = FRONT_ATTRIBUTES.sub(b"", match[2])
        return b'<%b%b firstSheet="0" activeTab="%d"%b>' % (match[1], kept, number, match[3])

    return VIEW.sub(view, SHEET.sub(sheet, listing))


def convert_image(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return an image in another format, or as a page of its size, in the bytes. `args`: `to`."""
    assert fd is not None
    with os.fdopen(os.dup(fd), "rb") as file:
        image, notes = load_image(file)
    return {"notes": notes}, _encode_image(image, args["to"])


def render_first_page(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the first page of a PDF as an image, in the bytes. `args`: `to`."""
    assert fd is not None
    # It has types, but not all of them.
    pypdfium2: Any = import_module("pypdfium2")
    with ExitStack() as stack:
        file = stack.enter_context(os.fdopen(os.dup(fd), "rb"))
        try:
            pdf = pypdfium2.PdfDocument(file)
        except pypdfium2.PdfiumError as exc:
            kind = "protected" if "password" in str(exc).lower() else "unreadable"
            raise ParseRefused(kind, f"its pages cannot be drawn: {exc}") from exc
        stack.callback(pdf.close)
        pages = len(pdf)
        if not pages:
            raise ParseRefused("unreadable", "it has no pages")
        width, height = pdf.get_page_size(0)
        scale = min(RENDER_DPI / 72, (MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
        image: Image.Image = pdf[0].render(scale=scale).to_pil()
    notes = [f"it has {pages} pages; the first is shown"] if pages > 1 else []
    return {"notes": notes}, _encode_image(image, args["to"])


def _encode_image(image: Image.Image, to: str) -> bytes:
    if to != "png" and image.mode == "RGBA":
        ground = Image.new("RGB", image.size, WHITE)
        ground.paste(image, mask=image.getchannel("A"))
        image = ground
    out = io.BytesIO()
    match to:
        case "png":
            image.save(out, "PNG")
        case "jpg":
            image.save(out, "JPEG", quality=QUALITY)
        case _:
            image.save(out, "PDF", resolution=RENDER_DPI)
    return out.getvalue()
