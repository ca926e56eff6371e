"""One accessible object: what names it, what it was when last read, and the calls that read it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from handrail import Rect
from handrail_accessibility.atspi.bus import (
    A11Y,
    CALL_TIMEOUT_S,
    NULL,
    PROPERTIES,
    READ_TIMEOUT_S,
    Answer,
    Bus,
    Call,
    CallFailed,
    NoAnswer,
    getting,
    maybe,
)
from handrail_accessibility.atspi.roles import State, role_of
from handrail_accessibility.atspi.toolkits import Toolkit, toolkit_of
from handrail_accessibility.roles import Role

ACCESSIBLE = A11Y + "Accessible"
VALUE = A11Y + "Value"
CACHE = "/org/a11y/atspi/cache"
SCREEN_COORDINATES = 0
UNKNOWN_INTERFACE = "org.freedesktop.DBus.Error.UnknownInterface"
# Of `GetMatches`: a rule, the order, how many at most, and whether to look below the children too.
MATCHING = "(aiia{ss}iaiiasib)uib"
MATCH_ALL, IN_READING_ORDER = 1, 1
PARTS = ("Name", "Description", "ChildCount", "Parent")
# Application and path of an object.
Ref = tuple[str, str]


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
    def ref(self) -> Ref:
        """Application and path: what names it on its bus."""
        return self.app, self.path

    def has(self, state: State) -> bool:
        return bool(self.states >> state & 1)

    def offers(self, interface: str) -> bool:
        return interface in self.interfaces

    @property
    def writable(self) -> bool:
        """Whether a person could write into it; Qt says of a field that can only be read that it is editable as well."""
        return self.has(State.EDITABLE) and not self.has(State.READ_ONLY)

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


async def fetch_node(bus: Bus, app: str, path: str) -> Node:
    """One object read on its own."""
    (found,) = await _fetch(bus, app, [path], timeout=CALL_TIMEOUT_S)
    if isinstance(found, Exception):
        raise found
    return found


async def fetch_nodes(bus: Bus, refs: Sequence[Ref]) -> list[Node]:
    """Many objects read at once, without those that have gone."""
    return [node for app, paths in _by_app(refs) for node in await _fetch(bus, app, paths) if isinstance(node, Node)]


async def fetch_shown(bus: Bus, refs: Sequence[Ref]) -> list[Node]:
    """The same of those that show: most of a long page does not, and costs one call."""
    found: list[Node] = []
    for app, paths in _by_app(refs):
        answers = await bus.calls(app, [(path, ACCESSIBLE, "GetState", "", ()) for path in paths])
        told = {
            path: bits(answer[0])
            for path, answer in zip(paths, answers, strict=True)
            if not isinstance(answer, Exception)
        }
        shown = {path: states for path, states in told.items() if states >> State.SHOWING & 1}
        found += [node for node in await _fetch(bus, app, list(shown), shown) if isinstance(node, Node)]
    return found


def _by_app(refs: Sequence[Ref]) -> Iterator[tuple[str, list[str]]]:
    for app in dict.fromkeys(app for app, _ in refs):
        yield app, [path for owner, path in refs if owner == app]


async def _fetch(
    bus: Bus,
    app: str,
    paths: Sequence[str],
    states: Mapping[str, int] | None = None,
    *,
    timeout: float = READ_TIMEOUT_S,
) -> list[Node | CallFailed | NoAnswer]:
    """Each object, or why it cannot be read; `states` are those that are known."""
    toolkit = await toolkit_of(bus, app)
    while True:
        piecemeal = app in bus.piecemeal
        asked = [_parts(path, piecemeal=piecemeal, states=states is None) for path in paths]
        answers = iter(await bus.calls(app, [call for calls in asked for call in calls], timeout=timeout))
        found = [[next(answers) for _ in calls] for calls in asked]
        if piecemeal or not any(_has_no_parts(answer) for parts in found for answer in parts):
            known = [None] * len(paths) if states is None else [states[path] for path in paths]
            return [
                _node(app, path, parts, toolkit, states=state)
                for path, parts, state in zip(paths, found, known, strict=True)
            ]
        # Qt gives properties one by one only.
        bus.piecemeal.add(app)


def _has_no_parts(answer: Answer) -> bool:
    return isinstance(answer, CallFailed) and answer.name == UNKNOWN_INTERFACE


def _parts(path: str, *, piecemeal: bool, states: bool) -> list[Call]:
    """The calls that tell what an object is."""
    calls: list[Call] = [(path, ACCESSIBLE, "GetRole", "", ()), (path, ACCESSIBLE, "GetInterfaces", "", ())]
    calls += [(path, ACCESSIBLE, "GetState", "", ())] * states
    if piecemeal:
        return [*calls, *(getting(path, ACCESSIBLE, name) for name in PARTS)]
    return [*calls, (path, PROPERTIES, "GetAll", "s", (ACCESSIBLE,))]


def _node(
    app: str, path: str, answers: Sequence[Answer], toolkit: Toolkit, *, states: int | None
) -> Node | CallFailed | NoAnswer:
    bodies: list[list[Any]] = []
    for answer in answers:
        if isinstance(answer, Exception):
            return answer
        bodies.append(answer)
    role, interfaces, *rest = bodies
    if states is None:
        states = bits(rest.pop(0)[0])
    properties = rest[0][0] if len(rest) == 1 else dict(zip(PARTS, (value for (value,) in rest), strict=True))
    told = {name: variant.value for name, variant in properties.items()}
    parent = told.get("Parent") or ("", "")
    return Node(
        app=app,
        path=path,
        role=role[0],
        name=toolkit.name_of(told.get("Name") or ""),
        states=states,
        interfaces=_short(interfaces[0]),
        child_count=told.get("ChildCount", -1),
        description=told.get("Description") or "",
        parent=parent[1],
        automation_id=told.get("AccessibleId"),
    )


async def shown_below(bus: Bus, node: Node, *, most: int) -> list[tuple[str, str]] | None:
    """Application and path of all that shows below an object, in reading order, in one call; None where it cannot be asked so.

    The application looks at everything below: nothing to ask of what has a spreadsheet in it.
    """
    showing: list[Any] = [[1 << State.SHOWING, 0], MATCH_ALL, {}, MATCH_ALL, [0] * 4, MATCH_ALL, [], MATCH_ALL, False]
    body: list[Any] = [showing, IN_READING_ORDER, most, True]
    reply = await maybe(bus.call, node.app, node.path, A11Y + "Collection", "GetMatches", MATCHING, body)
    return None if reply is None else [(app, path) for app, path in reply[0] if path != node.path]


async def children_of(bus: Bus, app: str, path: str) -> list[tuple[str, str]]:
    """Application and path of each child, in order."""
    (references,) = await bus.call(app, path, ACCESSIBLE, "GetChildren")
    return [(reference[0], reference[1]) for reference in references]


async def extents(bus: Bus, node: Node) -> Rect | None:
    """Where it is on the screen, in screen pixels; None when it has no place there."""
    return (await all_extents(bus, [node], timeout=CALL_TIMEOUT_S))[0]


async def all_extents(bus: Bus, nodes: Sequence[Node], *, timeout: float = READ_TIMEOUT_S) -> list[Rect | None]:
    """The same of many."""
    found: dict[Ref, Rect | None] = {}
    for app, paths in _by_app([node.ref for node in nodes if node.offers("Component")]):
        calls = [(path, A11Y + "Component", "GetExtents", "u", (SCREEN_COORDINATES,)) for path in paths]
        answers = await bus.calls(app, calls, timeout=timeout)
        found |= {(app, path): _rect(answer) for path, answer in zip(paths, answers, strict=True)}
    return [found.get(node.ref) for node in nodes]


def _rect(answer: Answer) -> Rect | None:
    if isinstance(answer, Exception):
        return None
    rect = Rect(*answer[0])
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


async def number_of(bus: Bus, node: Node) -> float | None:
    """The number a slider, spin button or progress bar stands at; None for a date or time, of which Qt says that it is 0 of 0."""
    number = float(await bus.get(node.app, node.path, VALUE, "CurrentValue"))
    if number or not node.offers("Text"):
        return number
    return number if any(await limits_of(bus, node)) else None


async def limits_of(bus: Bus, node: Node) -> tuple[float, float]:
    """The least and the greatest number that it may stand at; zero for what is not told."""
    least, greatest = [
        await maybe(bus.get, node.app, node.path, VALUE, f"{end}Value") for end in ("Minimum", "Maximum")
    ]
    return float(least or 0), float(greatest or 0)
