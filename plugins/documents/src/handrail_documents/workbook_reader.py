"""Job `read_excel`: returns every kind of table in one form of result. Runs in the worker."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import IO, Any

from handrail.workers.parse_refusal import ParseRefused
from handrail_documents.cell_ranges import CellRange, column_letters, parse_cell_range
from handrail_documents.csv_and_xls import open_xls_workbook, read_csv_cells, read_xls_cells
from handrail_documents.markdown_table import SheetCells, render_markdown
from handrail_documents.xlsx_package import SheetEntry, XlsxPackage
from handrail_documents.xlsx_reader import MAX_MERGED, read_sheet_cells

DEFAULT_ROWS = 200
OLE_SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
MAX_XLS_BYTES = 256 * 1_048_576
CONVERT_HINT = "convert it first: `soffice --headless --convert-to xlsx FILE`"


def read_excel(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return cells of one sheet as a Markdown table. `args`: `sheet`, `range`."""
    assert fd is not None
    area = parse_cell_range(args["range"]) if args["range"] else CellRange(last_row=DEFAULT_ROWS)
    with os.fdopen(os.dup(fd), "rb") as file:
        start = file.read(8)
        file.seek(0)
        if start.startswith(b"PK"):
            return _read_xlsx(file, args, area), b""
        if start == OLE_SIGNATURE:
            return _read_xls(file, args, area), b""
        return _read_csv(file, args, area), b""


def _read_xlsx(file: IO[bytes], args: Mapping[str, Any], area: CellRange) -> dict[str, Any]:
    package = XlsxPackage(file)
    if package.workbook.endswith(".bin") or "mimetype" in package.names:
        raise ParseRefused("unreadable", "it is a workbook, but neither .xlsx nor .xls", hint=CONVERT_HINT)
    sheets = [sheet for sheet in package.sheets if sheet.part in package.names]
    entry = select_sheet(sheets, args["sheet"], package.sheets[package.active : package.active + 1])
    assert entry.part is not None
    cells = read_sheet_cells(package, entry.part, area)
    notes = ["it holds macros, which are not run"] if package.has_macros else []
    return _build_result(cells, area, entry, sheets, args, notes)


def _read_xls(file: IO[bytes], args: Mapping[str, Any], area: CellRange) -> dict[str, Any]:
    if (size := os.fstat(file.fileno()).st_size) > MAX_XLS_BYTES:
        raise ParseRefused(
            "limit", f"it is an old .xls of {size:,} bytes, and at most {MAX_XLS_BYTES:,} are read", hint=CONVERT_HINT
        )
    workbook = open_xls_workbook(file.read())
    sheets = list_xls_sheets(workbook)
    entry = select_sheet(sheets, args["sheet"], ())
    return _build_result(read_xls_cells(workbook.get_sheet_by_name(entry.name), area), area, entry, sheets, args, [])


def list_xls_sheets(workbook: Any) -> list[SheetEntry]:
    """Return the worksheets of an old workbook."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    return [
        SheetEntry(each.name, each.visible != SheetVisibleEnum.Visible, each.name)
        for each in workbook.sheets_metadata
        if each.typ == SheetTypeEnum.WorkSheet
    ]


def _read_csv(file: IO[bytes], args: Mapping[str, Any], area: CellRange) -> dict[str, Any]:
    cells, encoding, delimiter = read_csv_cells(file, area)
    entry = SheetEntry("csv", hidden=False, part="csv")
    if args["sheet"]:
        select_sheet([entry], args["sheet"], ())
    result = _build_result(cells, area, entry, [entry], args, [])
    return {**result, "encoding": encoding, "delimiter": delimiter}


def select_sheet(sheets: Sequence[SheetEntry], name: str | None, active: Sequence[SheetEntry]) -> SheetEntry:
    """Return the sheet with this name, matched exactly first and then ignoring case.

    Without a name, return the active sheet if it is visible, else the first visible sheet, else the first sheet.
    Raises `ParseRefused` if there are no sheets with cells, or none with this name.
    """
    if not sheets:
        raise ParseRefused("unreadable", "it has no sheet with cells")
    if not name:
        visible = [sheet for sheet in (*active, *sheets) if not sheet.hidden and sheet in sheets]
        return (visible or list(sheets))[0]
    for same in (str, str.casefold):
        for sheet in sheets:
            if same(sheet.name) == same(name):
                return sheet
    names = ", ".join(repr(sheet.name) for sheet in sheets[:50])
    raise ParseRefused("not_found", f"there is no sheet {name[:80]!r}", hint=f"there are {names}")


def _build_result(
    cells: SheetCells,
    area: CellRange,
    entry: SheetEntry,
    sheets: Sequence[SheetEntry],
    args: Mapping[str, Any],
    notes: list[str],
) -> dict[str, Any]:
    columns_asked = bool(args["range"]) and area.last_column - area.first_column < 200
    shown = render_markdown(cells, area, columns_asked=columns_asked)
    hidden = [sheet.name for sheet in sheets if sheet.hidden]
    result: dict[str, Any] = {
        "content": shown.text,
        "sheet_name": entry.name,
        "rows": shown.rows,
        "columns": shown.columns,
        "sheets_available": [sheet.name for sheet in sheets],
        "truncated": not shown.whole or (cells.more and not args["range"]),
    }
    if cells.total_rows is not None:
        result |= {"total_rows": cells.total_rows, "total_columns": cells.total_columns}
    if hidden:
        result["hidden_sheets"] = hidden
    if cells.formulas:
        result["formulas"] = cells.formulas
    if cells.merged:
        result["merged_cells"] = [str(merged) for merged in cells.merged[:MAX_MERGED]]
    if entry.hidden:
        notes.append("this sheet is hidden")
    if result["truncated"]:
        notes.append(
            _continuation_hint(
                replace(area, first_row=(shown.last_row if not shown.whole else area.last_row) + 1), args
            )
        )
    notes += cells.notes
    return {**result, "note": "; ".join(notes)} if notes else result


def _continuation_hint(rest: CellRange, args: Mapping[str, Any]) -> str:
    last_row = rest.last_row if args["range"] else rest.first_row + DEFAULT_ROWS - 1
    if args["range"] and rest.last_column < 16_384:
        rows = f"{column_letters(rest.first_column)}{rest.first_row}:{column_letters(rest.last_column)}{last_row}"
    else:
        rows = f"{rest.first_row}:{last_row}"
    return f"there are more rows; go on with range={rows!r}"
