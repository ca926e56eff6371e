"""One accessible object: what names it, what it was when last read, and the calls that read it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from handrail import Rect
from handrail_accessibility.atspi.bus import (
    A11Y_PREFIX,
    CALL_TIMEOUT_S,
    NULL_PATH,
    PROPERTIES_INTERFACE,
    READ_TIMEOUT_S,
    AccessibilityBus,
    BusCall,
    CallAnswer,
    CallFailed,
    NoAnswer,
    build_property_call,
    call_or_none,
)
from handrail_accessibility.atspi.roles import AtSpiState, map_role
from handrail_accessibility.atspi.toolkits import ToolkitInfo, fetch_toolkit
from handrail_accessibility.tree.roles import ElementRole

ACCESSIBLE_INTERFACE = A11Y_PREFIX + "Accessible"
VALUE_INTERFACE = A11Y_PREFIX + "Value"
CACHE_PATH = "/org/a11y/atspi/cache"
SCREEN_COORDINATES = 0
UNKNOWN_INTERFACE_ERROR = "org.freedesktop.DBus.Error.UnknownInterface"
# Of `GetMatches`: a rule, the order, how many at most, and whether to look below the children too.
MATCH_SIGNATURE = "(aiia{ss}iaiiasib)uib"
MATCH_ALL, IN_READING_ORDER = 1, 1
NODE_PROPERTIES = ("Name", "Description", "ChildCount", "Parent")
# Application and path of an object.
NodeRef = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CellAddress:
    """A cell of a table by its place, for programs that make a new object of it at each look: the call that gives it."""

    table: str
    member: str
    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """Content of `Element.ref`: an object of one application on one bus, and the top-level window it was seen in.

    `placed`: positions that the application reports must be converted (see `coordinate_transform`). `pane` holds the
    paths of the object's pane and of that pane's parent, if only the content of the pane needs conversion.
    """

    guid: str
    app: str
    path: str
    window: str
    address: CellAddress | None = None
    placed: bool = False
    pane: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class AtSpiNode:
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
    address: CellAddress | None = None
    # None: not told yet.
    automation_id: str | None = None

    @property
    def ref(self) -> NodeRef:
        """Application and path: what names it on its bus."""
        return self.app, self.path

    def has(self, state: AtSpiState) -> bool:
        return bool(self.states >> state & 1)

    def offers(self, interface: str) -> bool:
        return interface in self.interfaces

    @property
    def writable(self) -> bool:
        """True if a user could write into it; Qt reports read-only fields as editable, too."""
        return self.has(AtSpiState.EDITABLE) and not self.has(AtSpiState.READ_ONLY)

    @property
    def kind(self) -> ElementRole:
        return map_role(self.role)

    def fingerprint(self, guid: str) -> str:
        """Equal for the same object later, never for another: a path that now has another role or name is another thing."""
        name = self.name if self.kind.named else ""
        place = self.path if self.address is None else self.address
        return hashlib.sha256(repr((guid, self.app, place, self.role, name)).encode()).hexdigest()[:20]


def combine_state_words(words: Iterable[int]) -> int:
    """Combine AT-SPI's two 32-bit state words into one number."""
    low, high = (*words, 0, 0)[:2]
    return low | high << 32


def _strip_interface_prefix(interfaces: Iterable[str]) -> frozenset[str]:
    return frozenset(name.removeprefix(A11Y_PREFIX) for name in interfaces)


async def fetch_cached_nodes(bus: AccessibilityBus, app: str, *, patience: float = 0.0) -> list[AtSpiNode]:
    """Return every object in the application's own cache, in one call; empty if it keeps none.

    GTK, Chromium and LibreOffice answer shortly after something starts listening for events, for which this waits up to
    `patience` seconds; Qt always answers with nothing. The objects are current, since applications examine them while
    answering; new objects may be missing, so `child_count` must be compared.
    """
    until = asyncio.get_running_loop().time() + patience
    while True:
        try:
            (items,) = await bus.call(app, CACHE_PATH, A11Y_PREFIX + "Cache", "GetItems")
        except CallFailed:
            if asyncio.get_running_loop().time() >= until:
                return []
            await asyncio.sleep(0.05)
        else:
            toolkit = await fetch_toolkit(bus, app)
            return [_parse_cache_item(item, toolkit) for item in items]


def _parse_cache_item(item: Any, toolkit: ToolkitInfo) -> AtSpiNode:
    reference, _, parent, index, child_count, interfaces, name, role, description, states = item
    return AtSpiNode(
        app=reference[0],
        path=reference[1],
        role=role,
        name=toolkit.name_of(name),
        states=combine_state_words(states),
        interfaces=_strip_interface_prefix(interfaces),
        child_count=child_count,
        description=description,
        parent=parent[1],
        index=index,
    )


async def fetch_cell(bus: AccessibilityBus, app: str, address: CellAddress) -> AtSpiNode:
    """Return the cell at an address; raise `CallFailed` if there is none."""
    calls = bus.call(app, address.table, A11Y_PREFIX + "Table", address.member, "i" * len(address.at), address.at)
    ((owner, path),) = await calls
    if path == NULL_PATH:
        raise CallFailed("", "there is no such cell")
    return replace(await fetch_node(bus, owner, path), address=address)


async def fetch_node(bus: AccessibilityBus, app: str, path: str) -> AtSpiNode:
    """Read a single object."""
    (found,) = await _fetch_node_results(bus, app, [path], timeout=CALL_TIMEOUT_S)
    if isinstance(found, Exception):
        raise found
    return found


async def fetch_nodes(bus: AccessibilityBus, refs: Sequence[NodeRef]) -> list[AtSpiNode]:
    """Read many objects at once, omitting those that have gone."""
    return [
        node
        for app, paths in _group_by_app(refs)
        for node in await _fetch_node_results(bus, app, paths)
        if isinstance(node, AtSpiNode)
    ]


async def fetch_showing_nodes(bus: AccessibilityBus, refs: Sequence[NodeRef]) -> list[AtSpiNode]:
    """Read many objects at once, omitting those that have gone or are not showing.

    Most of a long page is not showing and costs only one call per object.
    """
    found: list[AtSpiNode] = []
    for app, paths in _group_by_app(refs):
        answers = await bus.calls(app, [(path, ACCESSIBLE_INTERFACE, "GetState", "", ()) for path in paths])
        told = {
            path: combine_state_words(answer[0])
            for path, answer in zip(paths, answers, strict=True)
            if not isinstance(answer, Exception)
        }
        shown = {path: states for path, states in told.items() if states >> AtSpiState.SHOWING & 1}
        found += [
            node for node in await _fetch_node_results(bus, app, list(shown), shown) if isinstance(node, AtSpiNode)
        ]
    return found


def _group_by_app(refs: Sequence[NodeRef]) -> Iterator[tuple[str, list[str]]]:
    for app in dict.fromkeys(app for app, _ in refs):
        yield app, [path for owner, path in refs if owner == app]


async def _fetch_node_results(
    bus: AccessibilityBus,
    app: str,
    paths: Sequence[str],
    states: Mapping[str, int] | None = None,
    *,
    timeout: float = READ_TIMEOUT_S,
) -> list[AtSpiNode | CallFailed | NoAnswer]:
    """Read each object, or the error that prevents it; `states` are those already known."""
    toolkit = await fetch_toolkit(bus, app)
    while True:
        piecemeal = app in bus.piecemeal
        asked = [_build_node_calls(path, piecemeal=piecemeal, states=states is None) for path in paths]
        answers = iter(await bus.calls(app, [call for calls in asked for call in calls], timeout=timeout))
        found = [[next(answers) for _ in calls] for calls in asked]
        if piecemeal or not any(_is_unknown_interface(answer) for parts in found for answer in parts):
            known = [None] * len(paths) if states is None else [states[path] for path in paths]
            return [
                _parse_node(app, path, parts, toolkit, states=state)
                for path, parts, state in zip(paths, found, known, strict=True)
            ]
        # Qt gives properties one by one only.
        bus.piecemeal.add(app)


def _is_unknown_interface(answer: CallAnswer) -> bool:
    return isinstance(answer, CallFailed) and answer.name == UNKNOWN_INTERFACE_ERROR


def _build_node_calls(path: str, *, piecemeal: bool, states: bool) -> list[BusCall]:
    """Return the calls that read an object's properties."""
    calls: list[BusCall] = [
        (path, ACCESSIBLE_INTERFACE, "GetRole", "", ()),
        (path, ACCESSIBLE_INTERFACE, "GetInterfaces", "", ()),
    ]
    calls += [(path, ACCESSIBLE_INTERFACE, "GetState", "", ())] * states
    if piecemeal:
        return [*calls, *(build_property_call(path, ACCESSIBLE_INTERFACE, name) for name in NODE_PROPERTIES)]
    return [*calls, (path, PROPERTIES_INTERFACE, "GetAll", "s", (ACCESSIBLE_INTERFACE,))]


def _parse_node(
    app: str, path: str, answers: Sequence[CallAnswer], toolkit: ToolkitInfo, *, states: int | None
) -> AtSpiNode | CallFailed | NoAnswer:
    bodies: list[list[Any]] = []
    for answer in answers:
        if isinstance(answer, Exception):
            return answer
        bodies.append(answer)
    role, interfaces, *rest = bodies
    if states is None:
        states = combine_state_words(rest.pop(0)[0])
    properties = rest[0][0] if len(rest) == 1 else dict(zip(NODE_PROPERTIES, (value for (value,) in rest), strict=True))
    told = {name: variant.value for name, variant in properties.items()}
    parent = told.get("Parent") or ("", "")
    return AtSpiNode(
        app=app,
        path=path,
        role=role[0],
        name=toolkit.name_of(told.get("Name") or ""),
        states=states,
        interfaces=_strip_interface_prefix(interfaces[0]),
        child_count=told.get("ChildCount", -1),
        description=told.get("Description") or "",
        parent=parent[1],
        automation_id=told.get("AccessibleId"),
    )


async def fetch_showing_refs(bus: AccessibilityBus, node: AtSpiNode, *, most: int) -> list[tuple[str, str]] | None:
    """Application and path of all that shows below an object, in reading order, in one call; None where it cannot be asked so.

    The application looks at everything below: nothing to ask of what has a spreadsheet in it.
    """
    showing: list[Any] = [
        [1 << AtSpiState.SHOWING, 0],
        MATCH_ALL,
        {},
        MATCH_ALL,
        [0] * 4,
        MATCH_ALL,
        [],
        MATCH_ALL,
        False,
    ]
    body: list[Any] = [showing, IN_READING_ORDER, most, True]
    reply = await call_or_none(
        bus.call, node.app, node.path, A11Y_PREFIX + "Collection", "GetMatches", MATCH_SIGNATURE, body
    )
    return None if reply is None else [(app, path) for app, path in reply[0] if path != node.path]


async def fetch_children(bus: AccessibilityBus, app: str, path: str) -> list[tuple[str, str]]:
    """Application and path of each child, in order."""
    (references,) = await bus.call(app, path, ACCESSIBLE_INTERFACE, "GetChildren")
    return [(reference[0], reference[1]) for reference in references]


async def fetch_extents(bus: AccessibilityBus, node: AtSpiNode) -> Rect | None:
    """Return the object's rectangle in screen pixels; None if it has no position on the screen."""
    return (await fetch_all_extents(bus, [node], timeout=CALL_TIMEOUT_S))[0]


async def fetch_all_extents(
    bus: AccessibilityBus, nodes: Sequence[AtSpiNode], *, timeout: float = READ_TIMEOUT_S
) -> list[Rect | None]:
    """Return the rectangles of many objects in screen pixels, None for those without a position on the screen."""
    found: dict[NodeRef, Rect | None] = {}
    for app, paths in _group_by_app([node.ref for node in nodes if node.offers("Component")]):
        calls = [(path, A11Y_PREFIX + "Component", "GetExtents", "u", (SCREEN_COORDINATES,)) for path in paths]
        answers = await bus.calls(app, calls, timeout=timeout)
        found |= {(app, path): _parse_extents(answer) for path, answer in zip(paths, answers, strict=True)}
    return [found.get(node.ref) for node in nodes]


def _parse_extents(answer: CallAnswer) -> Rect | None:
    if isinstance(answer, Exception):
        return None
    rect = Rect(*answer[0])
    # Hidden objects of LibreOffice answer with the smallest integer, others with -1 or nothing.
    return None if rect.empty or min(rect.x, rect.y) < -100_000 else rect


async def fetch_text(bus: AccessibilityBus, node: AtSpiNode, *, limit: int = -1) -> str:
    """Return the object's text, or its first `limit` characters."""
    text = await _fetch_text_prefix(bus, node, limit)
    if not text and limit > 0:
        # LibreOffice gives nothing where there are fewer characters.
        text = await _fetch_text_prefix(bus, node, -1)
    if not text:
        # GTK 4 gives nothing of an entry unless it is told where the text ends.
        text = await _fetch_text_prefix(
            bus, node, await bus.get(node.app, node.path, A11Y_PREFIX + "Text", "CharacterCount")
        )
    return text[: limit if limit > 0 else None]


async def _fetch_text_prefix(bus: AccessibilityBus, node: AtSpiNode, end: int) -> str:
    (text,) = await bus.call(node.app, node.path, A11Y_PREFIX + "Text", "GetText", "ii", [0, end])
    return str(text)


async def fetch_number(bus: AccessibilityBus, node: AtSpiNode) -> float | None:
    """Return the current number of a slider, spin button or progress bar.

    None for a date or time, for which Qt reports 0 with the limits 0 and 0.
    """
    number = float(await bus.get(node.app, node.path, VALUE_INTERFACE, "CurrentValue"))
    if number or not node.offers("Text"):
        return number
    return number if any(await fetch_limits(bus, node)) else None


async def fetch_limits(bus: AccessibilityBus, node: AtSpiNode) -> tuple[float, float]:
    """Return the minimum and maximum of the number; zero for a limit that is not reported."""
    least, greatest = [
        await call_or_none(bus.get, node.app, node.path, VALUE_INTERFACE, f"{end}Value")
        for end in ("Minimum", "Maximum")
    ]
    return float(least or 0), float(greatest or 0)
