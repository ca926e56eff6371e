"""Text form of a page for a model: one line per element, and the differences from the last snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from handrail import Element, Observations, Rect
from handrail.line_diffs import BoundedMatcher
from handrail_browser.driver import PageNode, PageSnapshot

if TYPE_CHECKING:
    from handrail_browser.driver import BrowserTab

MAX_FIELD_TEXT = 160


def number_nodes(nodes: Sequence[PageNode], observations: Observations) -> list[tuple[PageNode, Element | None]]:
    """Pair each node with its element of the session, or with None if it cannot be acted on."""
    elements = iter(observations.number([_create_element(node) for node in nodes if node.handle is not None]))
    return [(node, next(elements) if node.handle is not None else None) for node in nodes]


def _create_element(node: PageNode) -> Element:
    return Element(
        node.role, node.name, Rect(*node.box) if node.box else None, frozenset(node.states), source="dom", value=node.value,
        depth=node.depth, ref=node.handle, fingerprint=node.fingerprint,
    )  # fmt: skip


def format_node(node: PageNode, element: Element | None) -> str:
    """Format a node as a line, such as `button "Save" [e12] disabled`."""
    indent = "  " * node.depth
    if node.role == "text":
        return indent + node.name
    if node.role == "heading":
        return f"{indent}{'#' * (node.level or 2)} {node.name}" + (f" [{element.id}]" if element else "")
    parts = [node.role, f'"{_shorten_text(node.name)}"' if node.name else "", f"[{element.id}]" if element else ""]
    parts += [f'= "{_shorten_text(node.value)}"' if node.value is not None else "", " ".join(node.states)]
    if node.options:
        parts.append(f"({' | '.join(node.options)})")
    if node.url and not node.url.startswith("javascript:"):
        parts.append(f"-> {_shorten_text(node.url, 60)}")
    return indent + " ".join(part for part in parts if part)


def list_candidates(nodes: Sequence[PageNode], observations: Observations) -> list[dict[str, Any]]:
    """List the elements that may have been intended, with their ids."""
    return [
        {"id": e.id, "role": node.role, "text": node.name, "states": list(node.states)}
        for node, e in number_nodes(nodes, observations)
        if e
    ]


def diff_lines(before: Sequence[str], now: Sequence[str]) -> str:
    """Return the removed and added lines in order, with `= N lines` for unchanged ones."""
    out: list[str] = []
    for kind, a, b, c, d in BoundedMatcher(before, now).get_opcodes():
        if kind == "equal":
            out.append(f"= {b - a} lines")
        else:
            out += [*(f"- {each}" for each in before[a:b]), *(f"+ {each}" for each in now[c:d])]
    return "\n".join(out)


def describe_counts(snapshot: PageSnapshot, skip: int, most: int) -> dict[str, Any]:
    """Describe how many elements there are, and how to see the rest."""
    shown = min(max(snapshot.total - skip, 0), most)
    told: dict[str, Any] = {"elements": snapshot.total}
    if snapshot.total > skip + shown or not snapshot.whole:
        told["truncated"] = True
        told["note"] = (
            f"{shown} of {snapshot.total} lines are shown: go on with offset={skip + shown}, or name a part by selector."
            if snapshot.whole
            else "The page is so large that looking at it was cut short: name a part by selector."
        )
    return told | dict(snapshot.position)


def format_tabs(found: Sequence[BrowserTab]) -> str:
    """Format the tabs, one per line."""
    return "\n".join(
        f"{'*' if tab.active else '-'} {tab.id} {_shorten_text(tab.title, 80) or '(no title)'} {_shorten_text(tab.url, 200)}"
        + ("" if tab.state == "open" else f" [{tab.state}]")
        for tab in found
    )


def _shorten_text(text: str, most: int = MAX_FIELD_TEXT) -> str:
    plain = text.replace("\n", " ")
    return plain if len(plain) <= most else f"{plain[: most - 1]}…"
