"""What was seen, as few words as possible."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from handrail import Element, Window
from handrail.words import visible

# Characters of a text or value that a line shows.
SHOWN = 80
# Of a window's title.
TITLE = 200
# States that every usable element has, or that the picture shows: a line leaves them out.
UNSAID = frozenset({"enabled", "visible", "showing", "sensitive", "focusable", "offscreen"})


def line(element: Element) -> str:
    """`e12 entry "Name" = "Ada" editable focused`."""
    parts = [element.id, element.role]
    if element.text:
        parts.append(_quoted(element.text))
    if element.value and element.value != element.text and "password" not in element.states:
        parts.append(f"= {_quoted(element.value)}")
    return " ".join((*parts, *sorted(element.states - UNSAID)))


def lines(elements: Iterable[Element]) -> str:
    """One line an element, two spaces for each level below the shallowest (at most four levels)."""
    found = list(elements)
    top = min((element.depth for element in found), default=0)
    return "\n".join(f"{'  ' * min(4, element.depth - top)}{line(element)}" for element in found)


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
