"""The objects of one window that show, level by level: from the application's cache where it keeps one, by calls where not."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from handrail_accessibility.atspi.bus import NULL_PATH, AccessibilityBus, call_or_none, gather_results
from handrail_accessibility.atspi.nodes import (
    ACCESSIBLE_INTERFACE,
    AtSpiNode,
    NodeRef,
    fetch_all_extents,
    fetch_cached_nodes,
    fetch_children,
    fetch_extents,
    fetch_nodes,
    fetch_showing_nodes,
    fetch_showing_refs,
)
from handrail_accessibility.atspi.roles import MENU_BAR, SEPARATOR, WEB_PAGE, AtSpiState
from handrail_accessibility.atspi.tables import fetch_visible_cells
from handrail_accessibility.atspi.toolkits import ToolkitInfo, fetch_toolkit
from handrail_accessibility.tree.roles import RoleKind

# A spreadsheet says it has 2,147,483,647 children, and asking for them never ends.
MAX_CHILDREN = 500
MAX_TREE_NODES = 5_000


@dataclass(slots=True)
class TreeCache:
    """Objects read so far, so that a read cut off by its deadline still has something to show.

    `closed` counts the items of each closed menu, which are not listed. `told` says which part of a table is included.
    `truncated`: something was left out.
    """

    bus: AccessibilityBus
    nodes: dict[NodeRef, AtSpiNode] = field(default_factory=dict[NodeRef, AtSpiNode])
    children: dict[NodeRef, list[AtSpiNode]] = field(default_factory=dict[NodeRef, list[AtSpiNode]])
    closed: dict[NodeRef, int] = field(default_factory=dict[NodeRef, int])
    told: dict[NodeRef, str] = field(default_factory=dict[NodeRef, str])
    toolkit: ToolkitInfo = field(default_factory=ToolkitInfo)
    truncated: bool = False
    _cached: dict[NodeRef, list[AtSpiNode]] = field(default_factory=lambda: defaultdict[NodeRef, list[AtSpiNode]](list))
    _pages: dict[NodeRef, list[AtSpiNode]] = field(default_factory=lambda: defaultdict[NodeRef, list[AtSpiNode]](list))
    _on_pages: set[NodeRef] = field(default_factory=set[NodeRef])

    async def learn(self, app: str) -> None:
        """Take what the application keeps in its cache."""
        await self.bus.meet(app)
        nodes, self.toolkit = await asyncio.gather(fetch_cached_nodes(self.bus, app), fetch_toolkit(self.bus, app))
        if self.toolkit.is_gtk4:
            # Its cache says of boxes that they are empty.
            return
        for node in nodes:
            self.nodes[node.ref] = node
            self._cached[node.app, node.parent].append(node)

    async def grow(self, roots: list[AtSpiNode]) -> None:
        """Read everything that shows under the roots; what is hidden is left where it is."""
        seen: set[NodeRef] = set()
        level = roots
        while level:
            seen.update(node.ref for node in level)
            if len(seen) > MAX_TREE_NODES:
                self.truncated = True
                return
            await self._read_children(level)
            below = (child for node in level for child in self.children[node.ref])
            # dict: an object that two parents claim is read once.
            fresh = {child.ref: child for child in below if child.has(AtSpiState.SHOWING) and child.ref not in seen}
            level = await self._placed(list(fresh.values()))

    def walk(self, root: AtSpiNode) -> Iterator[tuple[AtSpiNode, tuple[AtSpiNode, ...]]]:
        """Yield every object that is showing, in reading order, with its ancestors, the root first."""
        stack: list[tuple[AtSpiNode, tuple[AtSpiNode, ...]]] = [(root, ())]
        seen: set[NodeRef] = set()
        while stack:
            node, above = stack.pop()
            if node.ref in seen:
                continue
            seen.add(node.ref)
            yield node, above
            inner = (*above, node)
            below = self.children.get(node.ref, [])
            stack.extend((child, inner) for child in reversed(below) if child.has(AtSpiState.SHOWING))

    def items_of(self, menu: AtSpiNode) -> list[AtSpiNode]:
        """Return the items of a menu, open or closed, as far as the cache knows them."""
        return _sort_siblings([node for node in self._cached.get(menu.ref, []) if node.role != SEPARATOR])

    async def _placed(self, level: list[AtSpiNode]) -> list[AtSpiNode]:
        """Remove menu bars without a position: LibreOffice keeps a second one, which is invisible."""
        bars = [node for node in level if node.role == MENU_BAR]
        boxes = await fetch_all_extents(self.bus, bars)
        placeless = {bar.ref for bar, box in zip(bars, boxes, strict=True) if box is None}
        return [node for node in level if node.ref not in placeless]

    async def _read_children(self, level: list[AtSpiNode]) -> None:
        unknown: list[AtSpiNode] = []
        for node in level:
            known = self._known_children(node)
            if known is None or (known and self.toolkit.is_gtk4):
                unknown.append(node)
            self.children[node.ref] = known or []
        for node, found in zip(
            unknown, await gather_results(self._ask_children(node) for node in unknown), strict=True
        ):
            shown = [infer_showing_state(self.bus, child) for child in found] if self.toolkit.is_gtk4 else []
            self.children[node.ref] = await gather_results(shown) if shown else found

    def _known_children(self, node: AtSpiNode) -> list[AtSpiNode] | None:
        """Return the children according to the cache, if it is complete; otherwise None."""
        if node.ref in self._on_pages:
            return self._pages[node.ref]
        if node.child_count == 0:
            return []
        known = self._cached.get(node.ref, [])
        if node.kind.kind is RoleKind.MENU and known and not any(child.has(AtSpiState.SHOWING) for child in known):
            self.closed[node.ref] = len(self.items_of(node))
            return []
        complete = len(known) == node.child_count and {child.index for child in known} == set(range(len(known)))
        return _sort_siblings(known) if complete else None

    async def _ask_children(self, node: AtSpiNode) -> list[AtSpiNode]:
        if node.offers("Table") and (node.has(AtSpiState.MANAGES_DESCENDANTS) or node.child_count > MAX_CHILDREN):
            return await self._ask_cells(node)
        if node.role == WEB_PAGE and await self._learn_page(node):
            return self._pages[node.ref]
        count = node.child_count
        if count < 0:
            count = await call_or_none(self.bus.get, node.app, node.path, ACCESSIBLE_INTERFACE, "ChildCount") or 0
        if node.kind.kind is RoleKind.MENU and not node.has(AtSpiState.SHOWING):
            return []
        references = await self._references(node, count)
        return await self.resolve(references)

    async def _references(self, node: AtSpiNode, count: int) -> list[NodeRef]:
        if count <= MAX_CHILDREN:
            references = await call_or_none(fetch_children, self.bus, node.app, node.path)
            if references is None:
                self.truncated = True
            return references or []
        self.truncated = True
        calls = [(node.path, ACCESSIBLE_INTERFACE, "GetChildAtIndex", "i", (index,)) for index in range(MAX_CHILDREN)]
        answers = await self.bus.calls(node.app, calls)
        return [(answer[0][0], answer[0][1]) for answer in answers if not isinstance(answer, Exception)]

    async def resolve(self, references: list[NodeRef]) -> list[AtSpiNode]:
        """Return the objects, reading only unknown ones; those that have gone or are not showing are left out."""
        new = [ref for ref in references if ref not in self.nodes and ref[1] != NULL_PATH]
        fetch = fetch_nodes if self.toolkit.is_gtk4 else fetch_showing_nodes
        self.nodes |= {node.ref: node for node in await fetch(self.bus, new)}
        return [self.nodes[ref] for ref in references if ref in self.nodes]

    async def _learn_page(self, page: AtSpiNode) -> bool:
        """Read all of a web page that shows: browsers keep pages out of their caches, and of a long page most does not show."""
        references = await fetch_showing_refs(self.bus, page, most=MAX_TREE_NODES)
        if references is None:
            return False
        self.truncated |= len(references) >= MAX_TREE_NODES
        nodes = await fetch_nodes(self.bus, references)
        self.nodes |= {node.ref: node for node in nodes}
        self._on_pages |= {page.ref, *references}
        for node in nodes:
            self._pages[node.app, node.parent].append(node)
        return True

    async def _ask_cells(self, table: AtSpiNode) -> list[AtSpiNode]:
        cells = await fetch_visible_cells(self.bus, table)
        self.truncated |= cells.cut
        if cells.told:
            self.told[table.ref] = cells.told
        addresses = dict(cells.refs)
        found = await self.resolve(list(addresses))
        return [replace(cell, address=addresses[cell.ref]) for cell in found]


async def infer_showing_state(bus: AccessibilityBus, node: AtSpiNode) -> AtSpiNode:
    """Add the showing state to an object that has a position if its toolkit does not report which objects show."""
    if node.has(AtSpiState.SHOWING) or not (await fetch_toolkit(bus, node.app)).is_gtk4:
        return node
    box = await call_or_none(fetch_extents, bus, node)
    return node if box is None else replace(node, states=node.states | 1 << AtSpiState.SHOWING)


def _sort_siblings(nodes: list[AtSpiNode]) -> list[AtSpiNode]:
    # Menus of GTK do not number their items, but make them one after another.
    if any(node.index < 0 for node in nodes):
        return sorted(nodes, key=lambda node: (len(node.path), node.path))
    return sorted(nodes, key=lambda node: node.index)
