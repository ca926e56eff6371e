"""The cells of a table that can be seen, by address: a table's list of children may be endless."""

from __future__ import annotations

from handrail import Rect
from handrail_accessibility.atspi.bus import A11Y, NULL, Bus, maybe, together
from handrail_accessibility.atspi.nodes import ACCESSIBLE, SCREEN_COORDINATES, Node, extents

TABLE = A11Y + "Table"
MOST_CELLS = 500
PROBES = 64

Ref = tuple[str, str]


async def visible_cells(bus: Bus, table: Node) -> tuple[list[Ref], bool]:
    """Headers and cells in view, row by row, and whether some were left out. A small table is given whole."""
    rows, columns = await _size(bus, table)
    if rows * columns > MOST_CELLS:
        first, last = await _corners(bus, table)
    else:
        first, last = (0, 0), (rows - 1, columns - 1)
    row_range, column_range = range(first[0], last[0] + 1), range(first[1], last[1] + 1)
    column_range = column_range[:MOST_CELLS]
    kept = row_range[: max(1, MOST_CELLS // max(1, len(column_range)))]
    headers = [
        maybe(bus.call(table.app, table.path, TABLE, "GetColumnHeader", "i", [column])) for column in column_range
    ]
    cells = [
        maybe(bus.call(table.app, table.path, TABLE, "GetAccessibleAt", "ii", [row, column]))
        for row in kept
        for column in column_range
    ]
    found = [(reply[0][0], reply[0][1]) for reply in await together([*headers, *cells]) if reply is not None]
    return [ref for ref in dict.fromkeys(found) if ref[1] != NULL], len(kept) < len(row_range)


async def _size(bus: Bus, table: Node) -> tuple[int, int]:
    rows, columns = await together(maybe(bus.get(table.app, table.path, TABLE, name)) for name in ("NRows", "NColumns"))
    return rows or 0, columns or 0


async def _corners(bus: Bus, table: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """Row and column of the first and the last cell in view, found by asking what lies along the diagonal and two edges."""
    box = await extents(bus, table)
    if box is None:
        return (0, 0), (-1, -1)
    found = await together(_cell_at(bus, table, x, y) for x, y in _probes(box))
    seen = [cell for cell in found if cell is not None]
    if not seen:
        return (0, 0), (-1, -1)
    rows, columns = [row for row, _ in seen], [column for _, column in seen]
    return (min(rows), min(columns)), (max(rows), max(columns))


def _probes(box: Rect) -> list[tuple[int, int]]:
    """Points down the middle, and across the middle, at most a small cell apart on an ordinary screen."""
    across = [box.x + 4 + (box.width - 8) * step // (PROBES - 1) for step in range(PROBES)]
    down = [box.y + 4 + (box.height - 8) * step // (PROBES - 1) for step in range(PROBES)]
    x, y = box.center
    return [(x, point) for point in down] + [(point, y) for point in across]


async def _cell_at(bus: Bus, table: Node, x: int, y: int) -> tuple[int, int] | None:
    at = await maybe(
        bus.call(table.app, table.path, A11Y + "Component", "GetAccessibleAtPoint", "iiu", [x, y, SCREEN_COORDINATES])
    )
    if at is None or at[0][1] in (NULL, table.path):
        return None
    index = await maybe(bus.call(at[0][0], at[0][1], ACCESSIBLE, "GetIndexInParent"))
    if index is None or index[0] < 0:
        return None
    where = await together(
        maybe(bus.call(table.app, table.path, TABLE, member, "i", index))
        for member in ("GetRowAtIndex", "GetColumnAtIndex")
    )
    return None if where[0] is None or where[1] is None else (where[0][0], where[1][0])
