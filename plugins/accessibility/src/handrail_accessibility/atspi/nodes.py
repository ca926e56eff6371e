"""One accessible object: what names it, what it was when last read, and the calls that read it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from handrail import Rect
from handrail_accessibility.atspi.bus import A11Y, NULL, PROPERTIES, Bus, CallFailed, maybe, together
from handrail_accessibility.atspi.roles import State, role_of
from handrail_accessibility.atspi.toolkits import Toolkit, toolkit_of
from handrail_accessibility.roles import Role

ACCESSIBLE = A11Y + "Accessible"
CACHE = "/org/a11y/atspi/cache"
SCREEN_COORDINATES = 0
UNKNOWN_INTERFACE = "org.freedesktop.DBus.Error.UnknownInterface"
# Of `GetMatches`: a rule, the order, how many at most, and whether to look below the children too.
MATCHING = "(aiia{ss}iaiiasib)uib"
MATCH_ALL, IN_READING_ORDER = 1, 1
PARTS = ("Name", "Description", "ChildCount", "Parent")


@dataclass(frozen=True, slots=True)
class Address:
    """A cell of a table by its place, for programs that make a new object of it at each look: the call that gives it."""

    table: str
    member: str
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Handle:
    """What `Element.ref` holds: an object of one application on one bus, and the top-level window it was seen in.

    `placed`: what the application says of places has to be put right (see `placing`). `pane` is the object that it lies in and that object's
    parent, where that is so for what lies in it alone.
    """

    guid: str
    app: str
    path: str
    window: str
    address: Address | None = None
    placed: bool = False
    pane: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """An object as it was when read. `index` and `child_count` are -1 where the toolkit does not say."""

    app: str
    path: str
    role: int
    name: str
    states: int
    interfaces: frozenset[str]
    child_count: int
    description: str = ""
    parent: str = ""
    index: int = -1
    address: Address | None = None
    # None: not told yet.
    automation_id: str | None = None

    @property
    def ref(self) -> tuple[str, str]:
        """Application and path: what names it on its bus."""
        return self.app, self.path

    def has(self, state: State) -> bool:
        return bool(self.states >> state & 1)

    def offers(self, interface: str) -> bool:
        return interface in self.interfaces

    @property
    def kind(self) -> Role:
        return role_of(self.role)

    def fingerprint(self, guid: str) -> str:
        """Equal for the same object later, never for another: a path that now has another role or name is another thing."""
        name = self.name if self.kind.named else ""
        place = self.path if self.address is None else self.address
        return hashlib.sha256(repr((guid, self.app, place, self.role, name)).encode()).hexdigest()[:20]


def bits(words: Iterable[int]) -> int:
    """AT-SPI's two 32-bit words of states as one number."""
    low, high = (*words, 0, 0)[:2]
    return low | high << 32


def _short(interfaces: Iterable[str]) -> frozenset[str]:
    return frozenset(name.removeprefix(A11Y) for name in interfaces)


async def cached_nodes(bus: Bus, app: str, *, patience: float = 0.0) -> list[Node]:
    """Every object in the application's own cache, in one call; empty where it keeps none.

    GTK, Chromium and LibreOffice answer soon after somebody has begun to listen for events, which `patience` seconds may wait for; Qt always
    answers with nothing. What they send is true now, since they look at the objects while answering; new objects may be missing, so
    `child_count` has to be compared.
    """
    until = asyncio.get_running_loop().time() + patience
    while True:
        try:
            (items,) = await bus.call(app, CACHE, A11Y + "Cache", "GetItems")
        except CallFailed:
            if asyncio.get_running_loop().time() >= until:
                return []
            await asyncio.sleep(0.05)
        else:
            toolkit = await toolkit_of(bus, app)
            return [_from_cache(item, toolkit) for item in items]


def _from_cache(item: Any, toolkit: Toolkit) -> Node:
    reference, _, parent, index, child_count, interfaces, name, role, description, states = item
    return Node(
        app=reference[0],
        path=reference[1],
        role=role,
        name=toolkit.name_of(name),
        states=bits(states),
        interfaces=_short(interfaces),
        child_count=child_count,
        description=description,
        parent=parent[1],
        index=index,
    )


async def fetch_cell(bus: Bus, app: str, address: Address) -> Node:
    """The cell at an address. Raises `CallFailed` where there is none."""
    calls = bus.call(app, address.table, A11Y + "Table", address.member, "i" * len(address.at), address.at)
    ((owner, path),) = await calls
    if path == NULL:
        raise CallFailed("", "there is no such cell")
    return replace(await fetch_node(bus, owner, path), address=address)


async def fetch_node(bus: Bus, app: str, path: str, *, states: int | None = None) -> Node:
    """One object read on its own: its parts at once, but for states that are known."""
    toolkit = await toolkit_of(bus, app)
    properties, role, states, interfaces = await asyncio.gather(
        _properties(bus, app, path),
        bus.call(app, path, ACCESSIBLE, "GetRole"),
        _states(bus, app, path, states),
        bus.call(app, path, ACCESSIBLE, "GetInterfaces"),
    )
    parent = properties.get("Parent") or ("", "")
    return Node(
        app=app,
        path=path,
        role=role[0],
        name=toolkit.name_of(properties.get("Name") or ""),
        states=states,
        interfaces=_short(interfaces[0]),
        child_count=properties.get("ChildCount", -1),
        description=properties.get("Description") or "",
        parent=parent[1],
        automation_id=properties.get("AccessibleId"),
    )


async def fetch_shown(bus: Bus, app: str, path: str) -> Node | None:
    """The same of an object that shows; None for one that does not, which is most of a long page and costs one call."""
    states = await _states(bus, app, path)
    return await fetch_node(bus, app, path, states=states) if states >> State.SHOWING & 1 else None


async def _states(bus: Bus, app: str, path: str, known: int | None = None) -> int:
    if known is not None:
        return known
    (words,) = await bus.call(app, path, ACCESSIBLE, "GetState")
    return bits(words)


async def shown_below(bus: Bus, node: Node, *, most: int) -> list[tuple[str, str]] | None:
    """Application and path of all that shows below an object, in reading order, in one call; None where it cannot be asked so.

    The application looks at everything below: nothing to ask of what has a spreadsheet in it.
    """
    showing: list[Any] = [[1 << State.SHOWING, 0], MATCH_ALL, {}, MATCH_ALL, [0] * 4, MATCH_ALL, [], MATCH_ALL, False]
    body: list[Any] = [showing, IN_READING_ORDER, most, True]
    reply = await maybe(bus.call, node.app, node.path, A11Y + "Collection", "GetMatches", MATCHING, body)
    return None if reply is None else [(app, path) for app, path in reply[0] if path != node.path]


async def _properties(bus: Bus, app: str, path: str) -> dict[str, Any]:
    if app not in bus.piecemeal:
        try:
            (variants,) = await bus.call(app, path, PROPERTIES, "GetAll", "s", [ACCESSIBLE])
            return {name: variant.value for name, variant in variants.items()}
        except CallFailed as exc:
            if exc.name != UNKNOWN_INTERFACE:
                raise
            # Qt gives properties one by one only.
            bus.piecemeal.add(app)
    values = await together(bus.get(app, path, ACCESSIBLE, name) for name in PARTS)
    return dict(zip(PARTS, values, strict=True))


async def children_of(bus: Bus, app: str, path: str) -> list[tuple[str, str]]:
    """Application and path of each child, in order."""
    (references,) = await bus.call(app, path, ACCESSIBLE, "GetChildren")
    return [(reference[0], reference[1]) for reference in references]


async def extents(bus: Bus, node: Node) -> Rect | None:
    """Where it is on the screen, in screen pixels; None when it has no place there."""
    if not node.offers("Component"):
        return None
    (box,) = await bus.call(node.app, node.path, A11Y + "Component", "GetExtents", "u", [SCREEN_COORDINATES])
    rect = Rect(*box)
    # Hidden objects of LibreOffice answer with the smallest integer, others with -1 or nothing.
    return None if rect.empty or min(rect.x, rect.y) < -100_000 else rect


async def text_of(bus: Bus, node: Node, *, limit: int = -1) -> str:
    """Its text, or the first `limit` characters of it."""
    text = await _text_up_to(bus, node, limit)
    if not text and limit > 0:
        # LibreOffice gives nothing where there are fewer characters.
        text = await _text_up_to(bus, node, -1)
    if not text:
        # GTK 4 gives nothing of an entry unless it is told where the text ends.
        text = await _text_up_to(bus, node, await bus.get(node.app, node.path, A11Y + "Text", "CharacterCount"))
    return text[: limit if limit > 0 else None]


async def _text_up_to(bus: Bus, node: Node, end: int) -> str:
    (text,) = await bus.call(node.app, node.path, A11Y + "Text", "GetText", "ii", [0, end])
    return str(text)


async def number_of(bus: Bus, node: Node) -> float:
    """The number a slider, spin button or progress bar stands at."""
    return float(await bus.get(node.app, node.path, A11Y + "Value", "CurrentValue"))
