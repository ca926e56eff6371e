"""What was seen, as few words as possible."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from handrail import Element, Window
from handrail.words import visible

# Characters of a text or value that a line shows.
SHOWN = 60
# Of a window's title.
TITLE = 200
# States that every usable element has, or that the picture shows: a line leaves them out.
UNSAID = frozenset({"enabled", "visible", "showing", "sensitive", "focusable", "offscreen"})
# It is clicked only where something is written on it.
STATUS_BAR = "status bar"
FRAME = "group"
# A value that needs no quotes.
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
# How deep a line is set in.
LEVELS = 4


@dataclass(slots=True)
class Branch:
    """An element and what lies in it, as their depths say."""

    element: Element
    inside: list[Branch] = field(default_factory=list["Branch"])


def lines(elements: Iterable[Element], *, only: Collection[str] | None = None) -> str:
    """The elements, those of the ids `only` where it is given: what lies in something one space deeper, at most four.

    Neighbours without anything in them share a line when they have the same role or stand side by side, and so does what fills a bar or a row:
    `e7 tool bar "Main": e8 button "New", e9 "Open"`. Without a role it is that of the one before. A semicolon begins a new row on the screen.
    """
    return "\n".join(_told(_worth_it(_branches(elements), only), 0))


def _branches(elements: Iterable[Element]) -> list[Branch]:
    top: list[Branch] = []
    above: list[Branch] = []
    for element in elements:
        while above and above[-1].element.depth >= element.depth:
            above.pop()
        branch = Branch(element)
        (above[-1].inside if above else top).append(branch)
        above.append(branch)
    return top


def _worth_it(branches: list[Branch], only: Collection[str] | None) -> list[Branch]:
    """Without those that nobody asks for and those that say nothing, whose place is taken by what lies in them."""
    kept: list[Branch] = []
    for branch in branches:
        inside = _worth_it(branch.inside, only)
        wanted = branch.element.id in only if only is not None else _says_something(branch.element, inside)
        kept += [Branch(branch.element, inside)] if wanted else inside
    return kept


def _says_something(element: Element, inside: Sequence[Branch]) -> bool:
    """Whether it has a name, a value or a state, or can be acted on; a frame around nothing has not, nor one that is called as its window is."""
    if element.role == STATUS_BAR:
        return bool(element.text or element.value)
    if element.role == FRAME and not element.actions and not element.value:
        return bool(inside) and element.text not in ("", element.window)
    return bool(element.text or element.value or element.actions or element.states - UNSAID)


def _told(branches: list[Branch], level: int) -> Iterator[str]:
    indent = " " * min(LEVELS, level)
    for row in _rows(branches):
        if row[0].inside and not _fill(row[0]):
            yield indent + _described(row[0].element)
            yield from _told(row[0].inside, level + 1)
        elif row[0].inside:
            yield f"{indent}{_described(row[0].element)}: {_row([branch.element for branch in row[0].inside])}"
        else:
            yield indent + _row([branch.element for branch in row])


def _rows(branches: list[Branch]) -> list[list[Branch]]:
    """Those that share a line."""
    rows: list[list[Branch]] = []
    for branch in branches:
        before = rows[-1][-1] if rows else None
        alike = before is not None and (
            before.element.role == branch.element.role or _beside(before.element, branch.element)
        )
        if before is not None and alike and not before.inside and not branch.inside:
            rows[-1].append(branch)
        else:
            rows.append([branch])
    return rows


def _fill(branch: Branch) -> bool:
    """Whether what lies in it is seen there, and holds nothing itself. The items of an open menu are seen elsewhere."""
    around = branch.element.rect
    return all(
        not each.inside
        and (around is None or each.element.rect is None or not around.intersect(each.element.rect).empty)
        for each in branch.inside
    )


def _beside(left: Element, right: Element) -> bool:
    """Whether two stand in one row on the screen."""
    if left.rect is None or right.rect is None:
        return False
    return left.rect.y <= right.rect.center[1] < left.rect.bottom


def _row(elements: Sequence[Element]) -> str:
    told = _described(elements[0])
    for before, element in pairwise(elements):
        apart = before.rect is not None and element.rect is not None and not _beside(before, element)
        told += f"{'; ' if apart else ', '}{_described(element, after=before)}"
    return told


def _described(element: Element, after: Element | None = None) -> str:
    """`e12 spin button "Count"=3 editable focused`, without its role behind one that has the same."""
    disabled = "disabled" in element.states
    parts = [element.id]
    if after is None or after.role != element.role:
        parts.append(element.role)
    if element.text:
        parts.append(_quoted(element.text))
    if element.value and element.value != element.text and "password" not in element.states:
        parts[-1] += f"={element.value if NUMBER.fullmatch(element.value) else _quoted(element.value)}"
    # What is disabled cannot be edited now, whatever it is.
    return " ".join((*parts, *sorted(element.states - UNSAID - ({"editable"} if disabled else set()))))


def ranges(ids: Iterable[str]) -> str:
    """Ids of elements in few words: `e3, e7-e12`."""
    told: list[list[int]] = []
    for number in sorted(int(id[1:]) for id in ids):
        if told and number == told[-1][-1] + 1:
            told[-1] = [told[-1][0], number]
        else:
            told.append([number])
    return ", ".join("-".join(f"e{number}" for number in run) for run in told)


def window_lines(windows: Sequence[Window], *, without: str | None = None) -> str:
    """One line a window, topmost first; the one that is described in detail is left out."""
    told = [f"{_quoted(w.title)}{_noted(w)}" for w in windows if not (w.title == without and w.active)]
    return "\n".join(told)


def title_of(window: Window) -> str:
    """A window's title as it is told: at most 200 characters, nothing hidden in it. Programs write into it what they like."""
    return cut(window.title)


def cut(title: str) -> str:
    """A title as it is told."""
    # Only what is shown is made visible: a title may have any length.
    told = seen(" ".join(title[: TITLE + 1].split()))
    return told if len(told) <= TITLE and len(title) <= TITLE else f"{told[:TITLE]}…"


def seen(text: str) -> str:
    """A text of a program with nothing hidden in it; tabs and line ends stay."""
    return text if text.isprintable() else "\t".join(visible(part) for part in text.split("\t"))


def describe(element: Element) -> str:
    """`entry "Name"`."""
    return f"{element.role} {_quoted(element.text)}" if element.text else element.role


def _noted(window: Window) -> str:
    notes = [*(["active"] if window.active else []), *([window.state] if window.state != "normal" else [])]
    return f" ({', '.join(notes)})" if notes else ""


def _quoted(text: str) -> str:
    plain = " ".join(text.split())
    return json.dumps(seen(plain if len(plain) <= SHOWN else f"{plain[:SHOWN]}…"), ensure_ascii=False)
