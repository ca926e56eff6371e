"""Compact text outline of what was observed."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from handrail import Element, Window
from handrail.text import make_visible

# Characters of a text or value that a line shows.
MAX_TEXT_CHARS = 60
# Of a window's title.
MAX_TITLE_CHARS = 200
# States that every usable element has, or that the picture shows: a line leaves them out.
OMITTED_STATES = frozenset({"enabled", "visible", "showing", "sensitive", "focusable", "offscreen"})
# It is clicked only where something is written on it.
STATUS_BAR_ROLE = "status bar"
GROUP_ROLE = "group"
# A value that needs no quotes.
PLAIN_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
# How deep a line is set in.
MAX_INDENT_LEVELS = 4


@dataclass(slots=True)
class ElementBranch:
    """An element and what lies in it, as their depths say."""

    element: Element
    inside: list[ElementBranch] = field(default_factory=list["ElementBranch"])


def format_elements(elements: Iterable[Element], *, only: Collection[str] | None = None) -> str:
    """Format the elements, or only those whose ids are in `only`, one space deeper per level of nesting, at most four.

    Neighbors without children share a line if they have the same role or are side by side, as do the children that fill
    a bar or a row: `e7 tool bar "Main": e8 button "New", e9 "Open"`. An element without a role has that of the one
    before. A semicolon starts a new row on the screen.
    """
    return "\n".join(_format_branches(_filter_branches(_build_branches(elements), only), 0))


def _build_branches(elements: Iterable[Element]) -> list[ElementBranch]:
    top: list[ElementBranch] = []
    above: list[ElementBranch] = []
    for element in elements:
        while above and above[-1].element.depth >= element.depth:
            above.pop()
        branch = ElementBranch(element)
        (above[-1].inside if above else top).append(branch)
        above.append(branch)
    return top


def _filter_branches(branches: list[ElementBranch], only: Collection[str] | None) -> list[ElementBranch]:
    """Drop branches that are not wanted or carry no information; their children take their place."""
    kept: list[ElementBranch] = []
    for branch in branches:
        inside = _filter_branches(branch.inside, only)
        wanted = branch.element.id in only if only is not None else _is_informative(branch.element, inside)
        kept += [ElementBranch(branch.element, inside)] if wanted else inside
    return kept


def _is_informative(element: Element, inside: Sequence[ElementBranch]) -> bool:
    """Return True if the element has a name, value or state, or can be acted on.

    False for a frame around nothing and for one with the same title as its window.
    """
    if element.role == STATUS_BAR_ROLE:
        return bool(element.text or element.value)
    if element.role == GROUP_ROLE and not element.actions and not element.value:
        return bool(inside) and element.text not in ("", element.window)
    return bool(element.text or element.value or element.actions or element.states - OMITTED_STATES)


def _format_branches(branches: list[ElementBranch], level: int) -> Iterator[str]:
    indent = " " * min(MAX_INDENT_LEVELS, level)
    for row in _group_rows(branches):
        if row[0].inside and not _is_filled_by_children(row[0]):
            yield indent + _format_element(row[0].element)
            yield from _format_branches(row[0].inside, level + 1)
        elif row[0].inside:
            yield f"{indent}{_format_element(row[0].element)}: {_format_row([branch.element for branch in row[0].inside])}"
        else:
            yield indent + _format_row([branch.element for branch in row])


def _group_rows(branches: list[ElementBranch]) -> list[list[ElementBranch]]:
    """Group the branches that share a line."""
    rows: list[list[ElementBranch]] = []
    for branch in branches:
        before = rows[-1][-1] if rows else None
        alike = before is not None and (
            before.element.role == branch.element.role or _is_beside(before.element, branch.element)
        )
        if before is not None and alike and not before.inside and not branch.inside:
            rows[-1].append(branch)
        else:
            rows.append([branch])
    return rows


def _is_filled_by_children(branch: ElementBranch) -> bool:
    """Return True if all children lie within the element and have none themselves.

    The items of an open menu lie elsewhere.
    """
    around = branch.element.rect
    return all(
        not each.inside
        and (around is None or each.element.rect is None or not around.intersect(each.element.rect).empty)
        for each in branch.inside
    )


def _is_beside(left: Element, right: Element) -> bool:
    """Return True if two elements are in one row on the screen."""
    if left.rect is None or right.rect is None:
        return False
    return left.rect.y <= right.rect.center[1] < left.rect.bottom


def _format_row(elements: Sequence[Element]) -> str:
    told = _format_element(elements[0])
    for before, element in pairwise(elements):
        apart = before.rect is not None and element.rect is not None and not _is_beside(before, element)
        told += f"{'; ' if apart else ', '}{_format_element(element, after=before)}"
    return told


def _format_element(element: Element, after: Element | None = None) -> str:
    """Format as `e12 spin button "Count"=3 editable focused`, without the role after an element that has the same."""
    disabled = "disabled" in element.states
    parts = [element.id]
    if after is None or after.role != element.role:
        parts.append(element.role)
    if element.text:
        parts.append(_quote_text(element.text))
    if element.value and element.value != element.text and "password" not in element.states:
        parts[-1] += f"={element.value if PLAIN_NUMBER.fullmatch(element.value) else _quote_text(element.value)}"
    # What is disabled cannot be edited now, whatever it is.
    return " ".join((*parts, *sorted(element.states - OMITTED_STATES - ({"editable"} if disabled else set()))))


def format_id_ranges(ids: Iterable[str]) -> str:
    """Format element ids compactly: `e3, e7-e12`."""
    told: list[list[int]] = []
    for number in sorted(int(id[1:]) for id in ids):
        if told and number == told[-1][-1] + 1:
            told[-1] = [told[-1][0], number]
        else:
            told.append([number])
    return ", ".join("-".join(f"e{number}" for number in run) for run in told)


def format_windows(windows: Sequence[Window], *, without: str | None = None) -> str:
    """Format one line per window, topmost first, omitting the one that is described in detail."""
    told = [f"{_quote_text(w.title)}{_format_notes(w)}" for w in windows if not (w.title == without and w.active)]
    return "\n".join(told)


def format_window_title(window: Window) -> str:
    """Format a window's title for display: at most 200 characters, invisible characters made visible.

    Programs can put anything into their titles.
    """
    return format_title(window.title)


def format_title(title: str) -> str:
    """Format a title for display."""
    # Only what is shown is made visible: a title may have any length.
    told = escape_invisible(" ".join(title[: MAX_TITLE_CHARS + 1].split()))
    return told if len(told) <= MAX_TITLE_CHARS and len(title) <= MAX_TITLE_CHARS else f"{told[:MAX_TITLE_CHARS]}…"


def escape_invisible(text: str) -> str:
    """Make invisible characters in a program's text visible; tabs and line ends stay."""
    return text if text.isprintable() else "\t".join(make_visible(part) for part in text.split("\t"))


def describe_element(element: Element) -> str:
    """Describe an element as `entry "Name"`."""
    return f"{element.role} {_quote_text(element.text)}" if element.text else element.role


def _format_notes(window: Window) -> str:
    notes = [*(["active"] if window.active else []), *([window.state] if window.state != "normal" else [])]
    return f" ({', '.join(notes)})" if notes else ""


def _quote_text(text: str) -> str:
    plain = " ".join(text.split())
    return json.dumps(
        escape_invisible(plain if len(plain) <= MAX_TEXT_CHARS else f"{plain[:MAX_TEXT_CHARS]}…"), ensure_ascii=False
    )
