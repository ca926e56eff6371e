"""The cells of a table that can be seen, by address: a table's list of children may be endless."""

from __future__ import annotations

import re
from dataclasses import dataclass

from handrail import Rect
from handrail.text import fold_text
from handrail_accessibility.atspi.bus import (
    A11Y_PREFIX,
    NULL_PATH,
    AccessibilityBus,
    CallAnswer,
    call_or_none,
    gather_results,
)
from handrail_accessibility.atspi.nodes import (
    ACCESSIBLE_INTERFACE,
    SCREEN_COORDINATES,
    AtSpiNode,
    CellAddress,
    NodeRef,
    fetch_extents,
)

TABLE_INTERFACE = A11Y_PREFIX + "Table"
MAX_CELLS = 500
PROBE_COUNT = 64
# Pixels from the edge of a table, within its first or last cell.
EDGE_INSET = 4
MAX_SELECTED_CELLS = 20
SHEET_CELL_NAME = re.compile("([A-Za-z]{1,3})([1-9][0-9]{0,6})")
CELL_POSITION = re.compile("row ([1-9][0-9]{0,8}),? column ([1-9][0-9]{0,8})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class VisibleCells:
    """Headers and cells in view, row by row, each with an address if the program creates new objects on every read.

    `told` says which part of the table this is; empty for the whole table. `cut`: some cells in view were left out.
    """

    refs: tuple[tuple[NodeRef, CellAddress | None], ...] = ()
    told: str = ""
    cut: bool = False


async def fetch_visible_cells(bus: AccessibilityBus, table: AtSpiNode) -> VisibleCells:
    """Return the visible cells of a table; a small table is returned whole."""
    rows, columns = await _fetch_table_size(bus, table)
    if rows * columns > MAX_CELLS:
        first, last = await _find_visible_corners(bus, table)
    else:
        first, last = (0, 0), (rows - 1, columns - 1)
    row_range, column_range = range(first[0], last[0] + 1), range(first[1], last[1] + 1)
    column_range = column_range[:MAX_CELLS]
    kept = row_range[: max(1, MAX_CELLS // max(1, len(column_range)))]
    headers = [CellAddress(table.path, "GetColumnHeader", (column,)) for column in column_range]
    cells = [CellAddress(table.path, "GetAccessibleAt", (row, column)) for row in kept for column in column_range]
    found = {**await _fetch_cell_refs(bus, table, headers), **await _fetch_cell_refs(bus, table, cells)}
    if any(found.values()):
        found = await _filter_filled_cells(bus, table, found, columns)
    whole = (len(kept), len(column_range)) == (rows, columns)
    shown = (kept[0] + 1, kept[-1] + 1, rows, column_range[0] + 1, column_range[-1] + 1, columns) if kept else None
    told = "rows {} to {} of {}, columns {} to {} of {}".format(*shown) if shown and not whole else ""
    return VisibleCells(tuple(found.items()), told, len(kept) < len(row_range))


async def _filter_filled_cells(
    bus: AccessibilityBus, table: AtSpiNode, cells: dict[NodeRef, CellAddress | None], columns: int
) -> dict[NodeRef, CellAddress | None]:
    """Keep the cells that have a text or are selected.

    Most cells of a sheet are empty, and reading an empty one costs as much as any other.
    """
    answers = await bus.calls(table.app, [(path, A11Y_PREFIX + "Text", "GetText", "ii", (0, 1)) for _, path in cells])
    told = zip(cells, answers, strict=True)
    filled = {ref: cells[ref] for ref, text in told if isinstance(text, Exception) or text[0]}
    return {**await _fetch_selected_cells(bus, table, columns), **filled}


async def _fetch_selected_cells(
    bus: AccessibilityBus, table: AtSpiNode, columns: int
) -> dict[NodeRef, CellAddress | None]:
    """Return the first few selected cells, including the one that receives keyboard input."""
    selection = A11Y_PREFIX + "Selection"
    count = await call_or_none(bus.get, table.app, table.path, selection, "NSelectedChildren") or 0
    asked = (
        call_or_none(bus.call, table.app, table.path, selection, "GetSelectedChild", "i", [n])
        for n in range(min(count, MAX_SELECTED_CELLS))
    )
    refs = [(reply[0][0], reply[0][1]) for reply in await gather_results(asked) if reply is not None]
    places = await gather_results(
        call_or_none(bus.call, *ref, ACCESSIBLE_INTERFACE, "GetIndexInParent") for ref in refs
    )
    return {
        ref: CellAddress(table.path, "GetAccessibleAt", divmod(place[0], columns))
        for ref, place in zip(refs, places, strict=True)
        if place is not None and place[0] >= 0 and columns
    }


async def find_cell_address(bus: AccessibilityBus, table: AtSpiNode, name: str) -> CellAddress | None:
    """Return a cell's address by its name in a sheet ("AZ2000") or by its position ("row 5, column 2").

    Returns None for anything else, and for positions outside the table.
    """
    rows, columns = await _fetch_table_size(bus, table)
    row, column = _parse_cell_name(name)
    if not (0 <= row < rows and 0 <= column < columns):
        return None
    return CellAddress(table.path, "GetAccessibleAt", (row, column))


def is_named_cell(cell: AtSpiNode, name: str) -> bool:
    """Return True if the cell at an address is the requested one.

    A sheet names its cells; cells of other tables have no names like "A1".
    """
    return CELL_POSITION.fullmatch(name.strip()) is not None or fold_text(cell.name) == fold_text(name.strip())


def _parse_cell_name(name: str) -> tuple[int, int]:
    """Return row and column, counted from 0; (-1, -1) if the name is not a position."""
    if (found := SHEET_CELL_NAME.fullmatch(name.strip())) is not None:
        column = 0
        for letter in found[1].upper():
            column = 26 * column + ord(letter) - ord("A") + 1
        return int(found[2]) - 1, column - 1
    if (found := CELL_POSITION.fullmatch(name.strip())) is not None:
        return int(found[1]) - 1, int(found[2]) - 1
    return -1, -1


async def _fetch_cell_refs(
    bus: AccessibilityBus, table: AtSpiNode, addresses: list[CellAddress]
) -> dict[NodeRef, CellAddress | None]:
    """Return the objects at some addresses.

    Each has its address if the program creates new objects on every request.
    """
    if not addresses:
        return {}
    # Two of them once more: whoever makes these anew makes all anew, but for the one that has the focus.
    again = [addresses[-1], addresses[len(addresses) // 2]]
    calls = [(table.path, TABLE_INTERFACE, at.member, "i" * len(at.at), at.at) for at in (*addresses, *again)]
    replies = [_parse_cell_ref(answer) for answer in await bus.calls(table.app, calls)]
    known = dict(zip(addresses, replies, strict=False))
    anew = any(known[address] != reply for address, reply in zip(again, replies[len(addresses) :], strict=True))
    return {ref: address if anew else None for address, ref in known.items() if ref is not None}


def _parse_cell_ref(answer: CallAnswer) -> NodeRef | None:
    return None if isinstance(answer, Exception) or answer[0][1] == NULL_PATH else (answer[0][0], answer[0][1])


async def _fetch_table_size(bus: AccessibilityBus, table: AtSpiNode) -> tuple[int, int]:
    rows, columns = await gather_results(
        call_or_none(bus.get, table.app, table.path, TABLE_INTERFACE, name) for name in ("NRows", "NColumns")
    )
    return rows or 0, columns or 0


async def _find_visible_corners(bus: AccessibilityBus, table: AtSpiNode) -> tuple[tuple[int, int], tuple[int, int]]:
    """Row and column of the first and the last cell in view: by what lies in its corners, else by what lies across and down its middle."""
    box = await fetch_extents(bus, table)
    if box is None:
        return (0, 0), (-1, -1)
    found = await gather_results(_find_cell_at(bus, table, x, y) for x, y in _corner_points(box))
    if not all(found):
        found = await gather_results(_find_cell_at(bus, table, x, y) for x, y in _probe_points(box))
    seen = [cell for cell in found if cell is not None]
    if not seen:
        return (0, 0), (-1, -1)
    rows, columns = [row for row, _ in seen], [column for _, column in seen]
    return (min(rows), min(columns)), (max(rows), max(columns))


def _corner_points(box: Rect) -> list[tuple[int, int]]:
    """Return points in the four corners: a merged cell in one of them reports only where it begins."""
    return [
        (x, y)
        for x in (box.x + EDGE_INSET, box.right - EDGE_INSET)
        for y in (box.y + EDGE_INSET, box.bottom - EDGE_INSET)
    ]


def _probe_points(box: Rect) -> list[tuple[int, int]]:
    """Return points down and across the middle, at most a small cell apart on an ordinary screen."""
    across = [
        box.x + EDGE_INSET + (box.width - 2 * EDGE_INSET) * step // (PROBE_COUNT - 1) for step in range(PROBE_COUNT)
    ]
    down = [
        box.y + EDGE_INSET + (box.height - 2 * EDGE_INSET) * step // (PROBE_COUNT - 1) for step in range(PROBE_COUNT)
    ]
    x, y = box.center
    return [(x, point) for point in down] + [(point, y) for point in across]


async def _find_cell_at(bus: AccessibilityBus, table: AtSpiNode, x: int, y: int) -> tuple[int, int] | None:
    at = await call_or_none(
        bus.call,
        table.app,
        table.path,
        A11Y_PREFIX + "Component",
        "GetAccessibleAtPoint",
        "iiu",
        [x, y, SCREEN_COORDINATES],
    )
    if at is None or at[0][1] in (NULL_PATH, table.path):
        return None
    index = await call_or_none(bus.call, at[0][0], at[0][1], ACCESSIBLE_INTERFACE, "GetIndexInParent")
    if index is None or index[0] < 0:
        return None
    where = await gather_results(
        call_or_none(bus.call, table.app, table.path, TABLE_INTERFACE, member, "i", index)
        for member in ("GetRowAtIndex", "GetColumnAtIndex")
    )
    return None if where[0] is None or where[1] is None else (where[0][0], where[1][0])
