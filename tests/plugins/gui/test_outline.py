"""The text form of what was seen."""

from __future__ import annotations

from typing import Any

from handrail import Element, Rect
from handrail_gui.observe import outline


def element(id: str, role: str, text: str, at: tuple[int, int], **more: Any) -> Element:
    states = frozenset({"enabled", *more.pop("states", ())})
    return Element(role, text, Rect(*at, 40, 20), id=id, states=states, actions=("click",), **more)


BAR = Element("tool bar", "Main", Rect(0, 0, 400, 30), id="e1")
SEEN = (
    BAR,
    element("e2", "button", "New", (0, 0), depth=1),
    element("e3", "button", "Open", (50, 0), depth=1, states=["disabled"]),
    element("e4", "toggle button", "", (100, 0), depth=1, states=["pressed"]),
    element("e5", "check box", "Paid", (0, 40)),
    element("e6", "spin button", "Count", (50, 40), value="3", states=["editable"]),
    element("e7", "spin button", "Rate", (0, 80), value="3 %", states=["editable", "disabled"]),
    Element("group", "Window", Rect(0, 100, 400, 200), id="e8", window="Window"),
    element("e9", "link", "one", (0, 100), depth=1),
    element("e10", "link", "two", (0, 130), depth=1),
    Element("group", "Rest", Rect(0, 300, 400, 30), id="e11"),
    element("e12", "status bar", "", (0, 330)),
)


def test_what_fills_a_bar_or_a_row_shares_a_line_and_what_says_nothing_has_none() -> None:
    assert outline.format_elements(SEEN) == (
        'e1 tool bar "Main": e2 button "New", e3 "Open" disabled, e4 toggle button pressed\n'
        'e5 check box "Paid", e6 spin button "Count"=3 editable; e7 "Rate"="3 %" disabled\n'
        'e9 link "one"; e10 "two"'
    )


def test_some_of_them_are_told_as_they_lie() -> None:
    assert outline.format_elements(SEEN, only={"e3", "e4", "e8", "e10"}) == (
        'e3 button "Open" disabled, e4 toggle button pressed\ne8 group "Window": e10 link "two"'
    )


def test_the_items_of_an_open_menu_are_lines_of_their_own() -> None:
    menu = element("e1", "menu", "File", (0, 0), states=["expanded"])
    items = [element(f"e{n}", "menu item", f"Item {n}", (0, 30 * n), depth=1) for n in (2, 3)]
    assert outline.format_elements([menu, *items]) == 'e1 menu "File" expanded\n e2 menu item "Item 2"; e3 "Item 3"'
