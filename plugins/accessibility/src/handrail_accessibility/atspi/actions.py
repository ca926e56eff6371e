"""Asking an object to do something. What comes back is whether the program took the request, never a proof that it did it."""

from __future__ import annotations

from collections.abc import Sequence

from dbus_fast import Variant

from handrail_accessibility.atspi.bus import A11Y, NULL, PROPERTIES, Bus, CallFailed, NoAnswer, maybe
from handrail_accessibility.atspi.direct import call_directly
from handrail_accessibility.atspi.nodes import ACCESSIBLE, VALUE, Node, children_of, fetch_node, limits_of
from handrail_accessibility.atspi.roles import CELL, ITEMS, State
from handrail_accessibility.roles import Kind

# Toolkits name the same thing differently, and Chromium does not name it at all.
PRESS = (
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
PRESS_CELL = ("toggle", "click", "press")
EXPAND = ("expand or contract", "expand", "showmenu", "show menu", "open", "press", "click", "toggle", "activate")
COLLAPSE = ("expand or contract", "collapse", "close", "press", "click", "toggle", "activate")
# One of them is among the actions of whatever has any, where they are not in another language.
KNOWN = frozenset((*PRESS, *EXPAND, *COLLAPSE))

SCROLL_ANYWHERE = 6
MOST_OPTIONS = 500


async def act(bus: Bus, node: Node, names: Sequence[str]) -> str | None:
    """Do the first of the object's actions that has one of these names; the name, or None when there is none or it was refused.

    What is pressed in another language is left to the pointer: a menu of GTK does not always open for its action.
    """
    if not node.offers("Action"):
        return None
    offered = await (_told if names is PRESS else action_names)(bus, node)
    name = next((name for name in names if name in offered), None)
    if name is None:
        return None
    return (name or "action") if await _ask(bus, node, "Action", "DoAction", offered.index(name)) else None


async def action_names(bus: Bus, node: Node) -> list[str]:
    """What its actions are called in programs, in their order, in small letters; GTK 3 lists them in the language of the person."""
    told = await _told(bus, node)
    if not told or not KNOWN.isdisjoint(told):
        return told
    names = [
        await maybe(bus.call, node.app, node.path, A11Y + "Action", "GetName", "i", [at]) for at in range(len(told))
    ]
    return [str(name[0]).casefold() if name else word for name, word in zip(names, told, strict=True)]


async def _told(bus: Bus, node: Node) -> list[str]:
    reply = await maybe(bus.call, node.app, node.path, A11Y + "Action", "GetActions")
    return [str(action[0]).casefold() for action in reply[0]] if reply else []


async def _ask(bus: Bus, node: Node, interface: str, member: str, number: int) -> bool:
    """Ask for something that may open a dialog: past the bus where that is possible."""
    if not node.offers(interface):
        return False
    try:
        done = await call_directly(bus, node.app, node.path, A11Y + interface, member, number)
        return done if done is not None else await accepted(bus, node, interface, member, "i", [number])
    except NoAnswer:
        # It has the request, and is busy with what came of it.
        return True


async def press(bus: Bus, node: Node) -> str | None:
    """Its main action. What GTK calls `activate` is the Enter key in a text field, and a double click in a table."""
    if node.kind.kind is Kind.TEXT:
        return None
    return await act(bus, node, PRESS_CELL if node.role == CELL else PRESS)


async def accepted(
    bus: Bus, node: Node, interface: str, member: str, signature: str = "", body: Sequence[object] = ()
) -> bool:
    """Whether the object has the interface and answered the call with yes."""
    if not node.offers(interface):
        return False
    try:
        reply = await bus.call(node.app, node.path, A11Y + interface, member, signature, body)
    except CallFailed:
        return False
    return bool(reply[0])


async def set_number(bus: Bus, node: Node, number: float) -> bool:
    """Set the number of a slider or spin button, within its limits where it tells any."""
    if not node.offers("Value"):
        return False
    least, greatest = await limits_of(bus, node)
    if least < greatest and not least <= number <= greatest:
        return False
    body = [VALUE, "CurrentValue", Variant("d", number)]
    return await maybe(bus.call, node.app, node.path, PROPERTIES, "Set", "ssv", body) is not None


async def focus(bus: Bus, node: Node) -> bool:
    """Give it the keyboard focus."""
    return await accepted(bus, node, "Component", "GrabFocus")


async def scroll_to(bus: Bus, node: Node) -> bool:
    """Bring it into view; GTK 3 knows no scrolling to a place, but scrolls to what gets the focus."""
    return await accepted(bus, node, "Component", "ScrollTo", "u", [SCROLL_ANYWHERE]) or await focus(bus, node)


async def select(bus: Bus, node: Node) -> bool:
    """Select it in what holds it, by its place among its siblings."""
    holder = await maybe(fetch_node, bus, node.app, node.parent) if node.parent else None
    if holder is not None and holder.kind.word == "menu":
        above = await maybe(fetch_node, bus, holder.app, holder.parent)
        # The menu of a combo box only highlights; the box itself selects.
        holder = above if above is not None and above.kind.word == "combo box" else None
    if holder is None:
        return False
    place = await maybe(bus.call, node.app, node.path, ACCESSIBLE, "GetIndexInParent")
    if place is None or place[0] < 0:
        return False
    if node.kind.word == "cell" and holder.offers("Table"):
        row = await maybe(bus.call, holder.app, holder.path, A11Y + "Table", "GetRowAtIndex", "i", place)
        return row is not None and await _ask(bus, holder, "Table", "AddRowSelection", row[0])
    return await _ask(bus, holder, "Selection", "SelectChild", place[0])


async def options_of(bus: Bus, node: Node) -> list[Node]:
    """The choices of a combo box or list, those of its pop-up included."""
    found: list[Node] = []
    references = await maybe(children_of, bus, node.app, node.path) or []
    for app, path in references[:MOST_OPTIONS]:
        child = None if path == NULL else await maybe(fetch_node, bus, app, path)
        if child is None:
            continue
        if child.role in ITEMS:
            found.append(child)
        elif child.kind.kind in (Kind.MENU, Kind.TABLE, Kind.WINDOW) and not child.has(State.DEFUNCT):
            found.extend(await options_of(bus, child))
    return found
