"""Nodes from what PinchTab reports about the elements of a page, with handles for finding them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from handrail_browser.driver import PageNode

# Of the tree's roles, those that nothing can be done with and that say nothing.
IGNORED_ROLES = frozenset(("RootWebArea", "MenuListPopup", "InlineTextBox", "LineBreak", "none", "generic", "WebArea"))
TEXT_ROLE = "StaticText"
# Of what cannot be used, what a snapshot of all that can be used shows as well.
SHOWN_ROLES = frozenset(("heading", "alert", "status", "dialog", "Iframe"))
USABLE_ROLES = frozenset((
    "button", "link", "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "switch", "slider", "spinbutton", "menuitem",
    "menuitemcheckbox", "menuitemradio", "tab", "treeitem", "option", "Date", "DateTime", "InputTime", "ColorWell", "ToggleButton",
    "DisclosureTriangle", "PopUpButton",
))  # fmt: skip
LIST_ROLES = frozenset(("combobox", "listbox", "PopUpButton"))
FIELD_ROLES = frozenset(("textbox", "searchbox", "combobox", "spinbutton"))
STATE_NAMES = ("disabled", "focused", "checked", "expanded", "selected", "required", "readonly")
MAX_OPTIONS = 20
FOCUS_STATE = "focused"


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """Handle for finding an element again: its tab, page and number in the browser, and how many were alike when seen.

    `selector` is the one that named it, for actions that PinchTab performs by selector only.
    """

    page: str
    place: str
    number: int
    nth: int = 0
    of: int = 1
    selector: str | None = None


def build_nodes(page: str, url: str, rows: Sequence[Mapping[str, Any]]) -> list[PageNode]:
    """Convert all lines of a snapshot to nodes.

    PinchTab numbers its refs anew each time, so elements are identified by the browser's own number.
    """
    place = url.partition("#")[0].partition("?")[0]
    found = [node for row in rows if (node := _parse_node(row)).role not in IGNORED_ROLES]
    # The lines do not tell what is within what. So what an element is called is said once, and choices are those of the one list.
    names = {node.name for node in found if node.role != TEXT_ROLE}
    lists = [node for node in found if node.role in LIST_ROLES]
    choices = tuple(node.name for node in found if node.role == "option")
    shown: list[PageNode] = []
    for node in found:
        if node.role == TEXT_ROLE:
            if node.name not in names and node.name not in choices:
                shown.append(replace(node, role="text", handle=None))
        elif node.role in LIST_ROLES and len(lists) == 1:
            shown.append(replace(node, options=choices[:MAX_OPTIONS]))
        elif node.role != "option" or len(lists) != 1:
            shown.append(node)
    return _attach_handles(page, place, shown)


def _parse_node(row: Mapping[str, Any]) -> PageNode:
    number, value = row.get("nodeId"), row.get("value")
    return PageNode(
        str(row.get("role") or ""),
        " ".join(str(row.get("name") or "").split()),
        value=str(value) if value not in (None, "") else None,
        states=tuple(name for name in STATE_NAMES if row.get(name) in (True, "true", "mixed")),
        handle=number if isinstance(number, int) and number > 0 else None,
    )


def _attach_handles(page: str, place: str, found: Sequence[PageNode]) -> list[PageNode]:
    """Return the nodes with handles, which tell apart those that are alike."""
    alike: dict[tuple[str, str], list[int]] = {}
    for node in found:
        if node.handle is not None:
            alike.setdefault((node.role, node.name), []).append(node.handle)
    counted: list[PageNode] = []
    for node in found:
        if node.handle is None:
            counted.append(node)
            continue
        same = alike[node.role, node.name]
        nth = same.index(node.handle)
        handle = NodeHandle(page, place, node.handle, nth, len(same))
        print = f"{page}\x1f{place}\x1f{node.role}\x1f{node.name}\x1f{nth}"
        counted.append(replace(node, handle=handle, fingerprint=print))
    return counted


def is_usable(node: PageNode) -> bool:
    """Return True if a snapshot of usable elements includes the node."""
    return node.role in USABLE_ROLES or node.role in SHOWN_ROLES


def page_signature(nodes: Sequence[PageNode]) -> tuple[tuple[Any, ...], ...]:
    """Return what a page shows, for comparison with a later state. The focus is ignored."""
    return tuple(
        (node.role, node.name, node.value, tuple(s for s in node.states if s != FOCUS_STATE)) for node in nodes
    )


def describe_changes(before: Sequence[PageNode], now: Sequence[PageNode], most: int = 4) -> list[str]:
    """Describe the elements that are new, gone or have another value."""
    was, told = list(page_signature(before)), list[str]()
    for each in page_signature(now):
        role, name, value, states = each
        if each in was:
            was.remove(each)
        elif role == "text":
            told.append(f"new: {name[:120]!r}")
        else:
            state = " ".join((value or "", *states)).strip()
            told.append(f"now: {role} {name[:120]!r}" + (f" = {state[:80]!r}" if state else ""))
    return (told + [f"gone: {role} {name[:120]!r}" for role, name, *_ in was])[:most]


def find_focused_node(nodes: Sequence[PageNode]) -> PageNode | None:
    """Return the node with the keyboard focus."""
    return next((node for node in nodes if FOCUS_STATE in node.states), None)
