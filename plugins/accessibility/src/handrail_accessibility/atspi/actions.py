"""Asking an object to do something. What comes back is whether the program took the request, never a proof that it did it."""

from __future__ import annotations

from collections.abc import Sequence

from dbus_fast import Variant

from handrail_accessibility.atspi.bus import (
    A11Y_PREFIX,
    NULL_PATH,
    PROPERTIES_INTERFACE,
    AccessibilityBus,
    CallFailed,
    NoAnswer,
    call_or_none,
)
from handrail_accessibility.atspi.direct_call import call_directly
from handrail_accessibility.atspi.nodes import (
    ACCESSIBLE_INTERFACE,
    VALUE_INTERFACE,
    AtSpiNode,
    fetch_children,
    fetch_limits,
    fetch_node,
)
from handrail_accessibility.atspi.roles import CELL, ITEM_ROLES, AtSpiState
from handrail_accessibility.tree.roles import RoleKind

# Toolkits name the same thing differently, and Chromium does not name it at all.
PRESS_ACTIONS = (
    "click",
    "press",
    "activate",
    "jump",
    "open",
    "invoke",
    "toggle",
    "check",
    "uncheck",
    "select",
    "dodefault",
    "",
)
CELL_PRESS_ACTIONS = ("toggle", "click", "press")
EXPAND_ACTIONS = (
    "expand or contract",
    "expand",
    "showmenu",
    "show menu",
    "open",
    "press",
    "click",
    "toggle",
    "activate",
)
COLLAPSE_ACTIONS = ("expand or contract", "collapse", "close", "press", "click", "toggle", "activate")
# One of them is among the actions of whatever has any, where they are not in another language.
KNOWN_ACTIONS = frozenset((*PRESS_ACTIONS, *EXPAND_ACTIONS, *COLLAPSE_ACTIONS))

SCROLL_ANYWHERE = 6
MAX_OPTIONS = 500


async def do_first_action(bus: AccessibilityBus, node: AtSpiNode, names: Sequence[str]) -> str | None:
    """Do the first of the object's actions that has one of these names.

    Returns the name, or None if there is no such action or it was refused. Pressing actions with names in another
    language are left to the pointer: a GTK menu does not always open on its action.
    """
    if not node.offers("Action"):
        return None
    offered = await (_fetch_action_labels if names is PRESS_ACTIONS else fetch_action_names)(bus, node)
    name = next((name for name in names if name in offered), None)
    if name is None:
        return None
    return (name or "action") if await _request_by_index(bus, node, "Action", "DoAction", offered.index(name)) else None


async def fetch_action_names(bus: AccessibilityBus, node: AtSpiNode) -> list[str]:
    """Return the object's programmatic action names, in their order and in lower case.

    GTK 3 lists them in the user's language, so they are then fetched one by one.
    """
    told = await _fetch_action_labels(bus, node)
    if not told or not KNOWN_ACTIONS.isdisjoint(told):
        return told
    names = [
        await call_or_none(bus.call, node.app, node.path, A11Y_PREFIX + "Action", "GetName", "i", [at])
        for at in range(len(told))
    ]
    return [str(name[0]).casefold() if name else word for name, word in zip(names, told, strict=True)]


async def _fetch_action_labels(bus: AccessibilityBus, node: AtSpiNode) -> list[str]:
    reply = await call_or_none(bus.call, node.app, node.path, A11Y_PREFIX + "Action", "GetActions")
    return [str(action[0]).casefold() for action in reply[0]] if reply else []


async def _request_by_index(bus: AccessibilityBus, node: AtSpiNode, interface: str, member: str, number: int) -> bool:
    """Ask for something that may open a dialog: past the bus where that is possible."""
    if not node.offers(interface):
        return False
    try:
        done = await call_directly(bus, node.app, node.path, A11Y_PREFIX + interface, member, number)
        return done if done is not None else await call_returns_true(bus, node, interface, member, "i", [number])
    except NoAnswer:
        # It has the request, and is busy with what came of it.
        return True


async def press_node(bus: AccessibilityBus, node: AtSpiNode) -> str | None:
    """Invoke the object's main action; return its name, or None.

    GTK's `activate` is the Enter key in a text field, and a double click in a table.
    """
    if node.kind.kind is RoleKind.TEXT:
        return None
    return await do_first_action(bus, node, CELL_PRESS_ACTIONS if node.role == CELL else PRESS_ACTIONS)


async def call_returns_true(
    bus: AccessibilityBus,
    node: AtSpiNode,
    interface: str,
    member: str,
    signature: str = "",
    body: Sequence[object] = (),
) -> bool:
    """Return True if the object has the interface and answered the call with true."""
    if not node.offers(interface):
        return False
    try:
        reply = await bus.call(node.app, node.path, A11Y_PREFIX + interface, member, signature, body)
    except CallFailed:
        return False
    return bool(reply[0])


async def set_number(bus: AccessibilityBus, node: AtSpiNode, number: float) -> bool:
    """Set the number of a slider or spin button, within its limits where it tells any."""
    if not node.offers("Value"):
        return False
    least, greatest = await fetch_limits(bus, node)
    if least < greatest and not least <= number <= greatest:
        return False
    body = [VALUE_INTERFACE, "CurrentValue", Variant("d", number)]
    return await call_or_none(bus.call, node.app, node.path, PROPERTIES_INTERFACE, "Set", "ssv", body) is not None


async def focus_node(bus: AccessibilityBus, node: AtSpiNode) -> bool:
    """Give it the keyboard focus."""
    return await call_returns_true(bus, node, "Component", "GrabFocus")


async def scroll_to_node(bus: AccessibilityBus, node: AtSpiNode) -> bool:
    """Bring it into view; GTK 3 knows no scrolling to a place, but scrolls to what gets the focus."""
    return await call_returns_true(bus, node, "Component", "ScrollTo", "u", [SCROLL_ANYWHERE]) or await focus_node(
        bus, node
    )


async def select_node(bus: AccessibilityBus, node: AtSpiNode) -> bool:
    """Select it in what holds it, by its place among its siblings."""
    holder = await call_or_none(fetch_node, bus, node.app, node.parent) if node.parent else None
    if holder is not None and holder.kind.word == "menu":
        above = await call_or_none(fetch_node, bus, holder.app, holder.parent)
        # The menu of a combo box only highlights; the box itself selects.
        holder = above if above is not None and above.kind.word == "combo box" else None
    if holder is None:
        return False
    place = await call_or_none(bus.call, node.app, node.path, ACCESSIBLE_INTERFACE, "GetIndexInParent")
    if place is None or place[0] < 0:
        return False
    if node.kind.word == "cell" and holder.offers("Table"):
        row = await call_or_none(bus.call, holder.app, holder.path, A11Y_PREFIX + "Table", "GetRowAtIndex", "i", place)
        return row is not None and await _request_by_index(bus, holder, "Table", "AddRowSelection", row[0])
    return await _request_by_index(bus, holder, "Selection", "SelectChild", place[0])


async def fetch_options(bus: AccessibilityBus, node: AtSpiNode) -> list[AtSpiNode]:
    """Return the choices of a combo box or list, including those of its pop-up."""
    found: list[AtSpiNode] = []
    references = await call_or_none(fetch_children, bus, node.app, node.path) or []
    for app, path in references[:MAX_OPTIONS]:
        child = None if path == NULL_PATH else await call_or_none(fetch_node, bus, app, path)
        if child is None:
            continue
        if child.role in ITEM_ROLES:
            found.append(child)
        elif child.kind.kind in (RoleKind.MENU, RoleKind.TABLE, RoleKind.WINDOW) and not child.has(AtSpiState.DEFUNCT):
            found.extend(await fetch_options(bus, child))
    return found
