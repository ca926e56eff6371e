"""From objects to elements: which are worth a line, and what is said about each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from handrail import Element, Rect
from handrail_accessibility.atspi.actions import action_names
from handrail_accessibility.atspi.bus import Bus, maybe
from handrail_accessibility.atspi.forest import Forest
from handrail_accessibility.atspi.nodes import ACCESSIBLE, Handle, Node, extents, number_of, text_of
from handrail_accessibility.atspi.places import Spot
from handrail_accessibility.atspi.placing import AS_TOLD, Placing
from handrail_accessibility.atspi.roles import (
    CELL,
    CHECKS,
    IN_SHEETS,
    ITEMS,
    PANES,
    TELLING,
    TOGGLE_BUTTON,
    State,
    words_for,
)
from handrail_accessibility.atspi.toolkits import toolkit_of
from handrail_accessibility.atspi.windows import TopLevel
from handrail_accessibility.roles import Kind
from handrail_accessibility.telling import number_told

# Enough to recognise a text by; the whole is there for `read`.
LONGEST_VALUE = 500
LABELLED_BY = 2

_ALWAYS = (Kind.CONTROL, Kind.TEXT, Kind.RANGE, Kind.MENU)
_WHEN_NAMED = (Kind.STATIC, Kind.BOX, Kind.TABLE)


@dataclass(frozen=True, slots=True)
class Line:
    """An object that gets a line: `depth` named things deep in the window with this title and path.

    `window_id`: see `Element`. `placing` puts its place right; `pane`: see `Handle`.
    """

    node: Node
    depth: int
    title: str
    window: str
    window_id: str = ""
    parent: tuple[str, str] | None = None
    placing: Placing = AS_TOLD
    pane: tuple[str, str] | None = None

    @property
    def spot(self) -> Spot:
        """What its place depends on."""
        return Spot(self.node.path, self.window, self.pane)


def lines(forest: Forest, root: Node, window: TopLevel, *, full: bool, max_depth: int | None) -> Iterator[Line]:
    """The objects worth a line of a window, or of a pop-up that hangs over it, in reading order.

    Unnamed boxes do not count as depth, so that a toolkit's packing costs nothing.
    """
    depths: dict[tuple[str, str], int] = {}
    for node, above in forest.walk(root):
        depth = depths[above[-1].ref] if above else 0
        listed = node is not root and (full or _worth_a_line(node, above))
        counts = (
            node is not root and node.kind.kind is not Kind.NOISE and (bool(node.name) or node.kind.kind in _ALWAYS)
        )
        depths[node.ref] = depth + counts
        if listed and (max_depth is None or depth < max_depth):
            yield Line(node, depth, window.title, window.node.path, parent=above[-1].ref, pane=_pane_of(above))


def _pane_of(above: tuple[Node, ...]) -> tuple[str, str] | None:
    """The pane that an object lies in, and what holds the pane."""
    pairs = zip(above[1:], above, strict=False)
    return next(((pane.path, holder.path) for pane, holder in pairs if pane.role in PANES), None)


def _worth_a_line(node: Node, above: tuple[Node, ...]) -> bool:
    kind = node.kind.kind
    if node.has(State.FOCUSED) or kind in _ALWAYS:
        return True
    if kind in _WHEN_NAMED and node.name.strip():
        return node.kind.named or any(box.role in TELLING for box in above)
    # Qt says of every box that it can be acted on.
    return node.kind.word == "unknown" and node.offers("Action")


async def element_of(bus: Bus, line: Line) -> Element:
    """What is said about one object."""
    return await described(bus, line, await extents(bus, line.node))


async def described(bus: Bus, line: Line, told: Rect | None, forest: Forest | None = None) -> Element:
    """What is said about an object that tells this place: one call after another and only those it needs, as many are read side by side."""
    node = line.node
    rect = None if told is None else line.placing.to_screen(told)
    value = await _value(bus, node, forest)
    label = await _label(bus, line, forest)
    name = node.name
    # One that can be written in has its label on the text in it.
    if (
        node.kind.word == "combo box"
        and not node.has(State.EDITABLE)
        and (await toolkit_of(bus, node.app)).names_choices
    ):
        called = await _labelled_by(bus, node, forest)
        name, value = (called, name) if called else (name, value)
    toggles = await _toggles(bus, node)
    automation_id = node.automation_id
    if automation_id is None and (forest is None or forest.toolkit.has_ids):
        automation_id = await maybe(bus.get, node.app, node.path, ACCESSIBLE, "AccessibleId")
    states = words_for(node.states, node.role)
    return Element(
        role="check box" if toggles else node.kind.word,
        text=(name or label or node.description).strip(),
        rect=None if "offscreen" in states else rect,
        states=states if rect is not None else states | {"offscreen"},
        actions=("click", "toggle") if toggles else actions_of(node),
        value=value,
        automation_id=str(automation_id or ""),
        window=line.title,
        window_id=line.window_id,
        depth=line.depth,
        ref=Handle(
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


def says_nothing(element: Element) -> bool:
    """Whether nobody would miss it: a picture in a list, or an empty cell, without a word."""
    worthless = element.role in ("cell", "icon", "image", "tab", "list item") and "focused" not in element.states
    # What it is called there is only where it is.
    addressed = isinstance(element.ref, Handle) and element.ref.address is not None and element.role == "cell"
    return worthless and not element.value and (addressed or not element.text) and "selected" not in element.states


async def _toggles(bus: Bus, node: Node) -> bool:
    """Whether it is a box to tick in a table; GTK gives these no role of their own."""
    if node.role != CELL or node.name or not node.offers("Action"):
        return False
    return "toggle" in await action_names(bus, node)


async def _value(bus: Bus, node: Node, forest: Forest | None) -> str | None:
    if node.kind.word == "password":
        return None
    if forest is not None and (count := forest.closed.get(node.ref)) is not None and node.kind.word == "menu":
        return f"{count} {'item' if count == 1 else 'items'}, closed"
    if forest is not None and node.ref in forest.told:
        return forest.told[node.ref]
    if node.kind.kind is Kind.RANGE and node.offers("Value"):
        number = await maybe(number_of, bus, node)
        if number is not None:
            return number_told(number)
    # The text of a label or cell is its name, unless it has none.
    if node.offers("Text") and (node.kind.kind in (Kind.TEXT, Kind.RANGE) or not node.name or node.address is not None):
        return _shortened(await maybe(text_of, bus, node, limit=LONGEST_VALUE + 1))
    return None


def _shortened(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_VALUE:
        # Where a page holds an object and no text, AT-SPI has this character.
        return text.replace("\ufffc", "") if text is not None else None
    return text[:LONGEST_VALUE] + "…"


async def _label(bus: Bus, line: Line, forest: Forest | None) -> str:
    """The name of the label beside it, for what has no name of its own."""
    node = line.node
    if node.name or node.kind.kind not in (Kind.TEXT, Kind.RANGE, Kind.MENU, Kind.CONTROL, Kind.TABLE):
        return ""
    box = forest.nodes.get(line.parent) if forest is not None and line.parent is not None else None
    # The label of a combo box is that of the text in it, too.
    outer = box if box is not None and node.kind.kind is Kind.TEXT and box.kind.word == "combo box" else None
    return await _labelled_by(bus, node, forest) or (await _labelled_by(bus, outer, forest) if outer else "")


async def _labelled_by(bus: Bus, node: Node, forest: Forest | None) -> str:
    reply = await maybe(bus.call, node.app, node.path, ACCESSIBLE, "GetRelationSet")
    for kind, targets in reply[0] if reply else ():
        if kind == LABELLED_BY and targets:
            app, path = targets[0]
            known = forest.nodes.get((app, path)) if forest is not None else None
            if known is not None:
                return known.name
            told = str(await maybe(bus.get, app, path, ACCESSIBLE, "Name") or "")
            return (await toolkit_of(bus, app)).name_of(told)
    return ""


def actions_of(node: Node) -> tuple[str, ...]:
    """The actions of `execute_accessible` that the object can be asked for."""
    actions: list[str] = []
    kind = node.kind.kind
    if node.offers("Action") or kind in (Kind.CONTROL, Kind.MENU, Kind.TEXT):
        actions.append("click")
    if node.role in CHECKS or node.role == TOGGLE_BUTTON:
        actions.append("toggle")
    # What takes no text by value is typed into.
    is_field = node.kind.word in ("combo box", "password") or (
        node.writable and node.role not in IN_SHEETS and (kind is Kind.TEXT or node.offers("EditableText"))
    )
    if is_field or (node.offers("Value") and kind is Kind.RANGE and node.has(State.FOCUSABLE)):
        actions.append("set_value")
    if node.role in ITEMS or node.kind.word == "combo box":
        actions.append("select")
    if node.has(State.EXPANDABLE) or kind is Kind.MENU:
        actions.extend(("expand", "collapse"))
    if node.has(State.FOCUSABLE):
        actions.append("focus")
    return tuple(actions)
