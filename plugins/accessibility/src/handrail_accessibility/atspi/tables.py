"""The cells of a table that can be seen, by address: a table's list of children may be endless."""

from __future__ import annotations

import re
from dataclasses import dataclass

from handrail import Rect
from handrail.words import folded
from handrail_accessibility.atspi.bus import A11Y, NULL, Answer, Bus, maybe, together
from handrail_accessibility.atspi.nodes import ACCESSIBLE, SCREEN_COORDINATES, Address, Node, Ref, extents

TABLE = A11Y + "Table"
MOST_CELLS = 500
PROBES = 64
# Pixels from the edge of a table, within its first or last cell.
INSET = 4
MOST_SELECTED = 20
IN_SHEET = re.compile("([A-Za-z]{1,3})([1-9][0-9]{0,6})")
BY_PLACE = re.compile("row ([1-9][0-9]{0,8}),? column ([1-9][0-9]{0,8})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cells:
    """Headers and cells in view, row by row; an address for each of those of which the program makes a new object at each look.

    `told` says which part of the table that is; empty where it is the whole. `cut`: some that are in view were left out.
    """

    refs: tuple[tuple[Ref, Address | None], ...] = ()
    told: str = ""
    cut: bool = False


async def visible_cells(bus: Bus, table: Node) -> Cells:
    """What a person sees of a table. A small one is given whole."""
    rows, columns = await _size(bus, table)
    if rows * columns > MOST_CELLS:
        first, last = await _corners(bus, table)
    else:
        first, last = (0, 0), (rows - 1, columns - 1)
    row_range, column_range = range(first[0], last[0] + 1), range(first[1], last[1] + 1)
    column_range = column_range[:MOST_CELLS]
    kept = row_range[: max(1, MOST_CELLS // max(1, len(column_range)))]
    headers = [Address(table.path, "GetColumnHeader", (column,)) for column in column_range]
    cells = [Address(table.path, "GetAccessibleAt", (row, column)) for row in kept for column in column_range]
    found = {**await _asked(bus, table, headers), **await _asked(bus, table, cells)}
    if any(found.values()):
        found = await _filled(bus, table, found, columns)
    whole = (len(kept), len(column_range)) == (rows, columns)
    shown = (kept[0] + 1, kept[-1] + 1, rows, column_range[0] + 1, column_range[-1] + 1, columns) if kept else None
    told = "rows {} to {} of {}, columns {} to {} of {}".format(*shown) if shown and not whole else ""
    return Cells(tuple(found.items()), told, len(kept) < len(row_range))


async def _filled(bus: Bus, table: Node, cells: dict[Ref, Address | None], columns: int) -> dict[Ref, Address | None]:
    """Those with a text, and those that are selected: of a sheet most are empty, and each costs as much as one that is not."""
    answers = await bus.calls(table.app, [(path, A11Y + "Text", "GetText", "ii", (0, 1)) for _, path in cells])
    told = zip(cells, answers, strict=True)
    filled = {ref: cells[ref] for ref, text in told if isinstance(text, Exception) or text[0]}
    return {**await _selected(bus, table, columns), **filled}


async def _selected(bus: Bus, table: Node, columns: int) -> dict[Ref, Address | None]:
    """The first few selected cells, the one that the keyboard writes into among them."""
    selection = A11Y + "Selection"
    count = await maybe(bus.get, table.app, table.path, selection, "NSelectedChildren") or 0
    asked = (
        maybe(bus.call, table.app, table.path, selection, "GetSelectedChild", "i", [n])
        for n in range(min(count, MOST_SELECTED))
    )
    refs = [(reply[0][0], reply[0][1]) for reply in await together(asked) if reply is not None]
    places = await together(maybe(bus.call, *ref, ACCESSIBLE, "GetIndexInParent") for ref in refs)
    return {
        ref: Address(table.path, "GetAccessibleAt", divmod(place[0], columns))
        for ref, place in zip(refs, places, strict=True)
        if place is not None and place[0] >= 0 and columns
    }


async def cell_called(bus: Bus, table: Node, name: str) -> Address | None:
    """The address of a cell by its name in a sheet ("AZ2000"), or by its place ("row 5, column 2"); None for what is no such name."""
    rows, columns = await _size(bus, table)
    row, column = _place_of(name)
    if not (0 <= row < rows and 0 <= column < columns):
        return None
    return Address(table.path, "GetAccessibleAt", (row, column))


def fits(cell: Node, name: str) -> bool:
    """Whether a cell at an address is the one that was meant: a sheet names its cells, and other tables have none that look like "A1"."""
    return BY_PLACE.fullmatch(name.strip()) is not None or folded(cell.name) == folded(name.strip())


def _place_of(name: str) -> tuple[int, int]:
    """Row and column from 0, (-1, -1) for what is no place."""
    if (found := IN_SHEET.fullmatch(name.strip())) is not None:
        column = 0
        for letter in found[1].upper():
            column = 26 * column + ord(letter) - ord("A") + 1
        return int(found[2]) - 1, column - 1
    if (found := BY_PLACE.fullmatch(name.strip())) is not None:
        return int(found[1]) - 1, int(found[2]) - 1
    return -1, -1


async def _asked(bus: Bus, table: Node, addresses: list[Address]) -> dict[Ref, Address | None]:
    """The objects at some addresses, with the address for those that are others when they are asked for again."""
    if not addresses:
        return {}
    # Two of them once more: whoever makes these anew makes all anew, but for the one that has the focus.
    again = [addresses[-1], addresses[len(addresses) // 2]]
    calls = [(table.path, TABLE, at.member, "i" * len(at.at), at.at) for at in (*addresses, *again)]
    replies = [_cell(answer) for answer in await bus.calls(table.app, calls)]
    known = dict(zip(addresses, replies, strict=False))
    anew = any(known[address] != reply for address, reply in zip(again, replies[len(addresses) :], strict=True))
    return {ref: address if anew else None for address, ref in known.items() if ref is not None}


def _cell(answer: Answer) -> Ref | None:
    return None if isinstance(answer, Exception) or answer[0][1] == NULL else (answer[0][0], answer[0][1])


async def _size(bus: Bus, table: Node) -> tuple[int, int]:
    rows, columns = await together(maybe(bus.get, table.app, table.path, TABLE, name) for name in ("NRows", "NColumns"))
    return rows or 0, columns or 0


async def _corners(bus: Bus, table: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """Row and column of the first and the last cell in view: by what lies in its corners, else by what lies across and down its middle."""
    box = await extents(bus, table)
    if box is None:
        return (0, 0), (-1, -1)
    found = await together(_cell_at(bus, table, x, y) for x, y in _edges(box))
    if not all(found):
        found = await together(_cell_at(bus, table, x, y) for x, y in _probes(box))
    seen = [cell for cell in found if cell is not None]
    if not seen:
        return (0, 0), (-1, -1)
    rows, columns = [row for row, _ in seen], [column for _, column in seen]
    return (min(rows), min(columns)), (max(rows), max(columns))


def _edges(box: Rect) -> list[tuple[int, int]]:
    """Points in the four corners: a merged cell in one of them tells only where it begins."""
    return [(x, y) for x in (box.x + INSET, box.right - INSET) for y in (box.y + INSET, box.bottom - INSET)]


def _probes(box: Rect) -> list[tuple[int, int]]:
    """Points down the middle, and across the middle, at most a small cell apart on an ordinary screen."""
    across = [box.x + INSET + (box.width - 2 * INSET) * step // (PROBES - 1) for step in range(PROBES)]
    down = [box.y + INSET + (box.height - 2 * INSET) * step // (PROBES - 1) for step in range(PROBES)]
    x, y = box.center
    return [(x, point) for point in down] + [(point, y) for point in across]


async def _cell_at(bus: Bus, table: Node, x: int, y: int) -> tuple[int, int] | None:
    at = await maybe(
        bus.call, table.app, table.path, A11Y + "Component", "GetAccessibleAtPoint", "iiu", [x, y, SCREEN_COORDINATES]
    )
    if at is None or at[0][1] in (NULL, table.path):
        return None
    index = await maybe(bus.call, at[0][0], at[0][1], ACCESSIBLE, "GetIndexInParent")
    if index is None or index[0] < 0:
        return None
    where = await together(
        maybe(bus.call, table.app, table.path, TABLE, member, "i", index)
        for member in ("GetRowAtIndex", "GetColumnAtIndex")
    )
    return None if where[0] is None or where[1] is None else (where[0][0], where[1][0])
