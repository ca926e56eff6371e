"""The objects of one window that show, level by level: from the application's cache where it keeps one, by calls where not."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from handrail_accessibility.atspi.bus import NULL, Bus, maybe, together
from handrail_accessibility.atspi.nodes import (
    ACCESSIBLE,
    Node,
    Ref,
    all_extents,
    cached_nodes,
    children_of,
    extents,
    fetch_nodes,
    fetch_shown,
    shown_below,
)
from handrail_accessibility.atspi.roles import MENU_BAR, SEPARATOR, WEB_PAGE, State
from handrail_accessibility.atspi.tables import visible_cells
from handrail_accessibility.atspi.toolkits import Toolkit, toolkit_of
from handrail_accessibility.roles import Kind

# A spreadsheet says it has 2,147,483,647 children, and asking for them never ends.
MOST_CHILDREN = 500
MOST_NODES = 5_000


@dataclass(slots=True)
class Forest:
    """What was read so far, so that a read cut off by its deadline still has something to show.

    `closed` counts the items of each menu that is not open: these are not listed. `told` says which part of a table is there.
    `truncated`: something was left out.
    """

    bus: Bus
    nodes: dict[Ref, Node] = field(default_factory=dict[Ref, Node])
    children: dict[Ref, list[Node]] = field(default_factory=dict[Ref, list[Node]])
    closed: dict[Ref, int] = field(default_factory=dict[Ref, int])
    told: dict[Ref, str] = field(default_factory=dict[Ref, str])
    toolkit: Toolkit = field(default_factory=Toolkit)
    truncated: bool = False
    _cached: dict[Ref, list[Node]] = field(default_factory=lambda: defaultdict[Ref, list[Node]](list))
    _pages: dict[Ref, list[Node]] = field(default_factory=lambda: defaultdict[Ref, list[Node]](list))
    _on_pages: set[Ref] = field(default_factory=set[Ref])

    async def learn(self, app: str) -> None:
        """Take what the application keeps in its cache."""
        await self.bus.meet(app)
        nodes, self.toolkit = await asyncio.gather(cached_nodes(self.bus, app), toolkit_of(self.bus, app))
        if self.toolkit.is_gtk4:
            # Its cache says of boxes that they are empty.
            return
        for node in nodes:
            self.nodes[node.ref] = node
            self._cached[node.app, node.parent].append(node)

    async def grow(self, roots: list[Node]) -> None:
        """Read everything that shows under the roots; what is hidden is left where it is."""
        seen: set[Ref] = set()
        level = roots
        while level:
            seen.update(node.ref for node in level)
            if len(seen) > MOST_NODES:
                self.truncated = True
                return
            await self._read_children(level)
            below = (child for node in level for child in self.children[node.ref])
            # dict: an object that two parents claim is read once.
            fresh = {child.ref: child for child in below if child.has(State.SHOWING) and child.ref not in seen}
            level = await self._placed(list(fresh.values()))

    def walk(self, root: Node) -> Iterator[tuple[Node, tuple[Node, ...]]]:
        """Every object that shows, in reading order, with those above it, the root first."""
        stack: list[tuple[Node, tuple[Node, ...]]] = [(root, ())]
        seen: set[Ref] = set()
        while stack:
            node, above = stack.pop()
            if node.ref in seen:
                continue
            seen.add(node.ref)
            yield node, above
            inner = (*above, node)
            below = self.children.get(node.ref, [])
            stack.extend((child, inner) for child in reversed(below) if child.has(State.SHOWING))

    def items_of(self, menu: Node) -> list[Node]:
        """The items of a menu, open or not, as far as the cache knows them."""
        return _in_order([node for node in self._cached.get(menu.ref, []) if node.role != SEPARATOR])

    async def _placed(self, level: list[Node]) -> list[Node]:
        """Without the menu bars that have no place: LibreOffice keeps a second one, of which nothing is to be seen."""
        bars = [node for node in level if node.role == MENU_BAR]
        boxes = await all_extents(self.bus, bars)
        placeless = {bar.ref for bar, box in zip(bars, boxes, strict=True) if box is None}
        return [node for node in level if node.ref not in placeless]

    async def _read_children(self, level: list[Node]) -> None:
        unknown: list[Node] = []
        for node in level:
            known = self._known_children(node)
            if known is None or (known and self.toolkit.is_gtk4):
                unknown.append(node)
            self.children[node.ref] = known or []
        for node, found in zip(unknown, await together(self._ask_children(node) for node in unknown), strict=True):
            shown = [as_shown(self.bus, child) for child in found] if self.toolkit.is_gtk4 else []
            self.children[node.ref] = await together(shown) if shown else found

    def _known_children(self, node: Node) -> list[Node] | None:
        """What the cache says, if that is all there is to say."""
        if node.ref in self._on_pages:
            return self._pages[node.ref]
        if node.child_count == 0:
            return []
        known = self._cached.get(node.ref, [])
        if node.kind.kind is Kind.MENU and known and not any(child.has(State.SHOWING) for child in known):
            self.closed[node.ref] = len(self.items_of(node))
            return []
        complete = len(known) == node.child_count and {child.index for child in known} == set(range(len(known)))
        return _in_order(known) if complete else None

    async def _ask_children(self, node: Node) -> list[Node]:
        if node.offers("Table") and (node.has(State.MANAGES_DESCENDANTS) or node.child_count > MOST_CHILDREN):
            return await self._ask_cells(node)
        if node.role == WEB_PAGE and await self._learn_page(node):
            return self._pages[node.ref]
        count = node.child_count
        if count < 0:
            count = await maybe(self.bus.get, node.app, node.path, ACCESSIBLE, "ChildCount") or 0
        if node.kind.kind is Kind.MENU and not node.has(State.SHOWING):
            return []
        references = await self._references(node, count)
        return await self.resolve(references)

    async def _references(self, node: Node, count: int) -> list[Ref]:
        if count <= MOST_CHILDREN:
            references = await maybe(children_of, self.bus, node.app, node.path)
            if references is None:
                self.truncated = True
            return references or []
        self.truncated = True
        calls = [(node.path, ACCESSIBLE, "GetChildAtIndex", "i", (index,)) for index in range(MOST_CHILDREN)]
        answers = await self.bus.calls(node.app, calls)
        return [(answer[0][0], answer[0][1]) for answer in answers if not isinstance(answer, Exception)]

    async def resolve(self, references: list[Ref]) -> list[Node]:
        """The objects, each read only if it is not known yet; those that have gone are left out, and those that do not show."""
        new = [ref for ref in references if ref not in self.nodes and ref[1] != NULL]
        fetch = fetch_nodes if self.toolkit.is_gtk4 else fetch_shown
        self.nodes |= {node.ref: node for node in await fetch(self.bus, new)}
        return [self.nodes[ref] for ref in references if ref in self.nodes]

    async def _learn_page(self, page: Node) -> bool:
        """Read all of a web page that shows: browsers keep pages out of their caches, and of a long page most does not show."""
        references = await shown_below(self.bus, page, most=MOST_NODES)
        if references is None:
            return False
        self.truncated |= len(references) >= MOST_NODES
        nodes = await fetch_nodes(self.bus, references)
        self.nodes |= {node.ref: node for node in nodes}
        self._on_pages |= {page.ref, *references}
        for node in nodes:
            self._pages[node.app, node.parent].append(node)
        return True

    async def _ask_cells(self, table: Node) -> list[Node]:
        cells = await visible_cells(self.bus, table)
        self.truncated |= cells.cut
        if cells.told:
            self.told[table.ref] = cells.told
        addresses = dict(cells.refs)
        found = await self.resolve(list(addresses))
        return [replace(cell, address=addresses[cell.ref]) for cell in found]


async def as_shown(bus: Bus, node: Node) -> Node:
    """The same object, showing where it has a place, if its toolkit does not say which objects show."""
    if node.has(State.SHOWING) or not (await toolkit_of(bus, node.app)).is_gtk4:
        return node
    box = await maybe(extents, bus, node)
    return node if box is None else replace(node, states=node.states | 1 << State.SHOWING)


def _in_order(nodes: list[Node]) -> list[Node]:
    # Menus of GTK do not number their items, but make them one after another.
    if any(node.index < 0 for node in nodes):
        return sorted(nodes, key=lambda node: (len(node.path), node.path))
    return sorted(nodes, key=lambda node: node.index)
