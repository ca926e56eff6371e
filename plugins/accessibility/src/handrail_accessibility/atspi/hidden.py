"""What a window has but does not show: the items of its closed menus, and controls in other tabs or pop-ups."""

from __future__ import annotations

from handrail import Element
from handrail_accessibility.atspi.bus import Bus
from handrail_accessibility.atspi.elements import actions_of
from handrail_accessibility.atspi.nodes import Handle, Node, Ref, cached_nodes
from handrail_accessibility.atspi.roles import State, words_for
from handrail_accessibility.atspi.windows import TopLevel
from handrail_accessibility.roles import Kind


async def closed_items(bus: Bus, window: TopLevel, *, patience: float) -> tuple[Element, ...]:
    """Named controls that do not show, from the application's cache: no call for each, so no place and no value.

    `value` is the way to a menu item, like "File > Save". `patience`: how long to wait for an application that keeps no cache yet.
    """
    nodes = {node.ref: node for node in await cached_nodes(bus, window.node.app, patience=patience)}
    found: list[Element] = []
    for node in nodes.values():
        if node.kind.kind not in (Kind.CONTROL, Kind.MENU) or node.has(State.SHOWING) or not node.name.strip():
            continue
        above = _above(node, nodes)
        if above and above[-1].ref == window.node.ref:
            found.append(_element(node, above, window, bus.guid))
    return tuple(found)


def _above(node: Node, nodes: dict[Ref, Node]) -> list[Node]:
    """Those above it, nearest first, up to its top-level window."""
    above: list[Node] = []
    current = node
    while (parent := nodes.get((current.app, current.parent))) is not None and parent not in above:
        if parent.path.endswith("/root"):
            break
        above.append(parent)
        current = parent
    return above


def _element(node: Node, above: list[Node], window: TopLevel, guid: str) -> Element:
    menus = [box.name.strip() for box in reversed(above) if box.kind.word == "menu" and box.name.strip()]
    return Element(
        role=node.kind.word,
        text=node.name.strip(),
        rect=None,
        states=words_for(node.states, node.role),
        actions=actions_of(node),
        value=" > ".join([*menus, node.name.strip()]) if menus else None,
        window=window.title,
        depth=len(menus),
        ref=Handle(guid, node.app, node.path, window.node.path),
        fingerprint=node.fingerprint(guid),
    )
