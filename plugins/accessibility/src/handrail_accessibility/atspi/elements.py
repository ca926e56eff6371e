"""From objects to elements: which are worth a line, and what is said about each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from handrail import Element, Rect
from handrail_accessibility.atspi.actions import fetch_action_names
from handrail_accessibility.atspi.bus import AccessibilityBus, call_or_none
from handrail_accessibility.atspi.coordinate_transform import IDENTITY_TRANSFORM, CoordinateTransform
from handrail_accessibility.atspi.nodes import (
    ACCESSIBLE_INTERFACE,
    AtSpiNode,
    NodeHandle,
    fetch_extents,
    fetch_number,
    fetch_text,
)
from handrail_accessibility.atspi.roles import (
    CELL,
    CHECKABLE_ROLES,
    ITEM_ROLES,
    MESSAGE_ROLES,
    PANE_ROLES,
    SHEET_ROLES,
    TOGGLE_BUTTON,
    AtSpiState,
    describe_states,
)
from handrail_accessibility.atspi.toolkits import fetch_toolkit
from handrail_accessibility.atspi.transform_resolver import PlacedObject
from handrail_accessibility.atspi.tree_cache import TreeCache
from handrail_accessibility.atspi.windows import TopLevelWindow
from handrail_accessibility.tree.roles import RoleKind
from handrail_accessibility.tree.wording import format_number

# Enough to recognise a text by; the whole is there for `read`.
MAX_VALUE_CHARS = 500
LABELLED_BY_RELATION = 2

_ALWAYS_LISTED_KINDS = (RoleKind.CONTROL, RoleKind.TEXT, RoleKind.RANGE, RoleKind.MENU)
_LISTED_IF_NAMED_KINDS = (RoleKind.STATIC, RoleKind.BOX, RoleKind.TABLE)


@dataclass(frozen=True, slots=True)
class ListedNode:
    """An object that gets a line: `depth` named things deep in the window with this title and path.

    `window_id`: see `Element`. `placing` puts its place right; `pane`: see `NodeHandle`.
    """

    node: AtSpiNode
    depth: int
    title: str
    window: str
    window_id: str = ""
    parent: tuple[str, str] | None = None
    placing: CoordinateTransform = IDENTITY_TRANSFORM
    pane: tuple[str, str] | None = None

    @property
    def spot(self) -> PlacedObject:
        """The object's identity for placement, on which the conversion of its position depends."""
        return PlacedObject(self.node.path, self.window, self.pane)


def list_nodes(
    forest: TreeCache, root: AtSpiNode, window: TopLevelWindow, *, full: bool, max_depth: int | None
) -> Iterator[ListedNode]:
    """Yield the objects of a window, or of a pop-up over it, that are worth listing, in reading order.

    Unnamed boxes do not count toward the depth, so that a toolkit's layout containers cost nothing.
    """
    depths: dict[tuple[str, str], int] = {}
    for node, above in forest.walk(root):
        depth = depths[above[-1].ref] if above else 0
        listed = node is not root and (full or _is_worth_listing(node, above))
        counts = (
            node is not root
            and node.kind.kind is not RoleKind.NOISE
            and (bool(node.name) or node.kind.kind in _ALWAYS_LISTED_KINDS)
        )
        depths[node.ref] = depth + counts
        if listed and (max_depth is None or depth < max_depth):
            yield ListedNode(node, depth, window.title, window.node.path, parent=above[-1].ref, pane=_find_pane(above))


def _find_pane(above: tuple[AtSpiNode, ...]) -> tuple[str, str] | None:
    """Return the paths of the pane that contains an object and of that pane's container; None outside panes."""
    pairs = zip(above[1:], above, strict=False)
    return next(((pane.path, holder.path) for pane, holder in pairs if pane.role in PANE_ROLES), None)


def _is_worth_listing(node: AtSpiNode, above: tuple[AtSpiNode, ...]) -> bool:
    kind = node.kind.kind
    if node.has(AtSpiState.FOCUSED) or kind in _ALWAYS_LISTED_KINDS:
        return True
    if kind in _LISTED_IF_NAMED_KINDS and node.name.strip():
        return node.kind.named or any(box.role in MESSAGE_ROLES for box in above)
    # Qt says of every box that it can be acted on.
    return node.kind.word == "unknown" and node.offers("Action")


async def fetch_element(bus: AccessibilityBus, line: ListedNode) -> Element:
    """Read the element for one object."""
    return await build_element(bus, line, await fetch_extents(bus, line.node))


async def build_element(
    bus: AccessibilityBus, line: ListedNode, told: Rect | None, forest: TreeCache | None = None
) -> Element:
    """Build the element for an object with this reported rectangle.

    Makes only the calls it needs, one after another, because many objects are read concurrently.
    """
    node = line.node
    rect = None if told is None else line.placing.to_screen(told)
    value = await _fetch_value(bus, node, forest)
    label = await _find_label(bus, line, forest)
    name = node.name
    # One that can be written in has its label on the text in it.
    if (
        node.kind.word == "combo box"
        and not node.has(AtSpiState.EDITABLE)
        and (await fetch_toolkit(bus, node.app)).names_choices
    ):
        called = await _fetch_related_label(bus, node, forest)
        name, value = (called, name) if called else (name, value)
    toggles = await _is_table_checkbox(bus, node)
    automation_id = node.automation_id
    if automation_id is None and (forest is None or forest.toolkit.has_ids):
        automation_id = await call_or_none(bus.get, node.app, node.path, ACCESSIBLE_INTERFACE, "AccessibleId")
    states = describe_states(node.states, node.role)
    return Element(
        role="check box" if toggles else node.kind.word,
        text=(name or label or node.description).strip(),
        rect=None if "offscreen" in states else rect,
        states=states if rect is not None else states | {"offscreen"},
        actions=("click", "toggle") if toggles else list_node_actions(node),
        value=value,
        automation_id=str(automation_id or ""),
        window=line.title,
        window_id=line.window_id,
        depth=line.depth,
        ref=NodeHandle(
            bus.guid,
            node.app,
            node.path,
            line.window,
            node.address,
            not line.placing.plain or bool(line.pane),
            line.pane,
        ),
        fingerprint=node.fingerprint(bus.guid),
    )


def is_negligible(element: Element) -> bool:
    """Return True if the element can be omitted: a textless picture in a list or an empty cell."""
    worthless = element.role in ("cell", "icon", "image", "tab", "list item") and "focused" not in element.states
    # What it is called there is only where it is.
    addressed = isinstance(element.ref, NodeHandle) and element.ref.address is not None and element.role == "cell"
    return worthless and not element.value and (addressed or not element.text) and "selected" not in element.states


async def _is_table_checkbox(bus: AccessibilityBus, node: AtSpiNode) -> bool:
    """Return True if the node is a check box in a table; GTK gives these no role of their own."""
    if node.role != CELL or node.name or not node.offers("Action"):
        return False
    return "toggle" in await fetch_action_names(bus, node)


async def _fetch_value(bus: AccessibilityBus, node: AtSpiNode, forest: TreeCache | None) -> str | None:
    if node.kind.word == "password":
        return None
    if forest is not None and (count := forest.closed.get(node.ref)) is not None and node.kind.word == "menu":
        return f"{count} {'item' if count == 1 else 'items'}, closed"
    if forest is not None and node.ref in forest.told:
        return forest.told[node.ref]
    if node.kind.kind is RoleKind.RANGE and node.offers("Value"):
        number = await call_or_none(fetch_number, bus, node)
        if number is not None:
            return format_number(number)
    # The text of a label or cell is its name, unless it has none.
    if node.offers("Text") and (
        node.kind.kind in (RoleKind.TEXT, RoleKind.RANGE) or not node.name or node.address is not None
    ):
        return _truncate_text(await call_or_none(fetch_text, bus, node, limit=MAX_VALUE_CHARS + 1))
    return None


def _truncate_text(text: str | None) -> str | None:
    if text is None or len(text) <= MAX_VALUE_CHARS:
        # Where a page holds an object and no text, AT-SPI has this character.
        return text.replace("\ufffc", "") if text is not None else None
    return text[:MAX_VALUE_CHARS] + "…"


async def _find_label(bus: AccessibilityBus, line: ListedNode, forest: TreeCache | None) -> str:
    """Return the text of the adjacent label, for an object without a name of its own."""
    node = line.node
    if node.name or node.kind.kind not in (
        RoleKind.TEXT,
        RoleKind.RANGE,
        RoleKind.MENU,
        RoleKind.CONTROL,
        RoleKind.TABLE,
    ):
        return ""
    box = forest.nodes.get(line.parent) if forest is not None and line.parent is not None else None
    # The label of a combo box is that of the text in it, too.
    outer = box if box is not None and node.kind.kind is RoleKind.TEXT and box.kind.word == "combo box" else None
    return await _fetch_related_label(bus, node, forest) or (
        await _fetch_related_label(bus, outer, forest) if outer else ""
    )


async def _fetch_related_label(bus: AccessibilityBus, node: AtSpiNode, forest: TreeCache | None) -> str:
    reply = await call_or_none(bus.call, node.app, node.path, ACCESSIBLE_INTERFACE, "GetRelationSet")
    for kind, targets in reply[0] if reply else ():
        if kind == LABELLED_BY_RELATION and targets:
            app, path = targets[0]
            known = forest.nodes.get((app, path)) if forest is not None else None
            if known is not None:
                return known.name
            told = str(await call_or_none(bus.get, app, path, ACCESSIBLE_INTERFACE, "Name") or "")
            return (await fetch_toolkit(bus, app)).name_of(told)
    return ""


def list_node_actions(node: AtSpiNode) -> tuple[str, ...]:
    """Return the `execute_accessible` actions available for the object."""
    actions: list[str] = []
    kind = node.kind.kind
    if node.offers("Action") or kind in (RoleKind.CONTROL, RoleKind.MENU, RoleKind.TEXT):
        actions.append("click")
    if node.role in CHECKABLE_ROLES or node.role == TOGGLE_BUTTON:
        actions.append("toggle")
    # What takes no text by value is typed into.
    is_field = node.kind.word in ("combo box", "password") or (
        node.writable and node.role not in SHEET_ROLES and (kind is RoleKind.TEXT or node.offers("EditableText"))
    )
    if is_field or (node.offers("Value") and kind is RoleKind.RANGE and node.has(AtSpiState.FOCUSABLE)):
        actions.append("set_value")
    if node.role in ITEM_ROLES or node.kind.word == "combo box":
        actions.append("select")
    if node.has(AtSpiState.EXPANDABLE) or kind is RoleKind.MENU:
        actions.extend(("expand", "collapse"))
    if node.has(AtSpiState.FOCUSABLE):
        actions.append("focus")
    return tuple(actions)
