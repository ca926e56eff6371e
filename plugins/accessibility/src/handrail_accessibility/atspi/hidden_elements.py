"""Elements that a window contains but does not show: items of closed menus, and controls in other tabs or pop-ups."""

from __future__ import annotations

from handrail import Element
from handrail_accessibility.atspi.bus import AccessibilityBus
from handrail_accessibility.atspi.elements import list_node_actions
from handrail_accessibility.atspi.nodes import AtSpiNode, NodeHandle, NodeRef, fetch_cached_nodes
from handrail_accessibility.atspi.roles import AtSpiState, describe_states
from handrail_accessibility.atspi.windows import TopLevelWindow
from handrail_accessibility.tree.roles import RoleKind


async def find_hidden_elements(
    bus: AccessibilityBus, window: TopLevelWindow, *, patience: float
) -> tuple[Element, ...]:
    """Named controls that do not show, from the application's cache: no call for each, so no place and no value.

    `value` is the way to a menu item, like "File > Save". `patience`: how long to wait for an application that keeps no cache yet.
    """
    nodes = {node.ref: node for node in await fetch_cached_nodes(bus, window.node.app, patience=patience)}
    found: list[Element] = []
    for node in nodes.values():
        if (
            node.kind.kind not in (RoleKind.CONTROL, RoleKind.MENU)
            or node.has(AtSpiState.SHOWING)
            or not node.name.strip()
        ):
            continue
        above = _list_ancestors(node, nodes)
        if above and above[-1].ref == window.node.ref:
            found.append(_build_hidden_element(node, above, window, bus.guid))
    return tuple(found)


def _list_ancestors(node: AtSpiNode, nodes: dict[NodeRef, AtSpiNode]) -> list[AtSpiNode]:
    """Return the object's ancestors, nearest first, up to its top-level window."""
    above: list[AtSpiNode] = []
    current = node
    while (parent := nodes.get((current.app, current.parent))) is not None and parent not in above:
        if parent.path.endswith("/root"):
            break
        above.append(parent)
        current = parent
    return above


def _build_hidden_element(node: AtSpiNode, above: list[AtSpiNode], window: TopLevelWindow, guid: str) -> Element:
    menus = [box.name.strip() for box in reversed(above) if box.kind.word == "menu" and box.name.strip()]
    return Element(
        role=node.kind.word,
        text=node.name.strip(),
        rect=None,
        states=describe_states(node.states, node.role),
        actions=list_node_actions(node),
        value=" > ".join([*menus, node.name.strip()]) if menus else None,
        window=window.title,
        depth=len(menus),
        ref=NodeHandle(guid, node.app, node.path, window.node.path),
        fingerprint=node.fingerprint(guid),
    )
