"""AT-SPI's role and state numbers in plain words.

Numbers: https://gitlab.gnome.org/GNOME/at-spi2-core/-/blob/main/atspi/atspi-constants.h
"""

from __future__ import annotations

from enum import IntEnum

from handrail_accessibility.tree.roles import ElementRole, RoleKind, build_roles


class AtSpiState(IntEnum):
    """Bit numbers of a state set."""

    ACTIVE = 1
    BUSY = 3
    CHECKED = 4
    DEFUNCT = 6
    EDITABLE = 7
    ENABLED = 8
    EXPANDABLE = 9
    EXPANDED = 10
    FOCUSABLE = 11
    FOCUSED = 12
    ICONIFIED = 15
    MODAL = 16
    MULTI_LINE = 17
    PRESSED = 20
    SELECTED = 23
    SENSITIVE = 24
    SHOWING = 25
    MANAGES_DESCENDANTS = 31
    INDETERMINATE = 32
    REQUIRED = 33
    INVALID_ENTRY = 36
    IS_DEFAULT = 39
    READ_ONLY = 43


_UNKNOWN_ROLE = ElementRole("unknown", RoleKind.BOX)


ATSPI_ROLES: dict[int, ElementRole] = {
    **build_roles(
        RoleKind.CONTROL,
        {
            7: "check box",
            8: "check menu item",
            12: "date editor",
            13: "icon",
            26: "icon",
            32: "list item",
            35: "menu item",
            37: "tab",
            43: "button",
            44: "radio button",
            45: "radio menu item",
            56: "cell",
            57: "column header",
            58: "row header",
            10: "column header",
            47: "row header",
            59: "menu item",
            62: "toggle button",
            88: "link",
            91: "tree item",
            101: "notification",
            129: "menu button",
            130: "switch",
        },
    ),
    **build_roles(RoleKind.TEXT, {40: "password", 60: "terminal", 61: "text", 77: "text", 79: "text"}, named=False),
    **build_roles(RoleKind.TEXT, {54: "status bar", 94: "document", 92: "spreadsheet", 76: "text"}, named=False),
    **build_roles(RoleKind.RANGE, {15: "dial", 51: "slider", 52: "spin button", 114: "rating"}, named=False),
    **build_roles(RoleKind.RANGE, {42: "progress bar", 103: "level bar"}, named=False),
    **build_roles(RoleKind.MENU, {33: "menu", 41: "menu"}),
    # The name of a combo box is its current choice in GTK.
    **build_roles(RoleKind.MENU, {11: "combo box"}, named=False),
    **build_roles(
        RoleKind.TABLE, {55: "table", 66: "tree table", 65: "tree", 31: "list", 98: "list box", 30: "icon view"}
    ),
    **build_roles(
        RoleKind.STATIC, {27: "image", 83: "heading", 5: "calendar", 64: "tool tip", 80: "chart", 6: "canvas"}
    ),
    **build_roles(
        RoleKind.STATIC, {29: "label", 116: "label", 73: "paragraph", 81: "caption", 85: "section"}, named=False
    ),
    **build_roles(RoleKind.STATIC, {1: "label", 100: "image", 113: "math", 115: "timer", 112: "marquee"}, named=False),
    **build_roles(
        RoleKind.BOX,
        {
            20: "group",
            39: "group",
            28: "group",
            34: "menu bar",
            36: "group",
            38: "tab list",
            46: "group",
            49: "scroll pane",
            53: "split pane",
            63: "tool bar",
            67: "unknown",
            68: "group",
            75: "application",
            82: "document",
            84: "page",
            87: "form",
            90: "row",
            93: "document",
            95: "document",
            96: "document",
            99: "group",
            102: "info bar",
            104: "title bar",
            109: "article",
            110: "landmark",
            111: "log",
        },
    ),
    **build_roles(
        RoleKind.WINDOW,
        {2: "alert", 9: "dialog", 16: "dialog", 19: "dialog", 22: "dialog", 23: "window", 69: "window", 105: "group"},
        named=False,
    ),
    **build_roles(
        RoleKind.NOISE, {48: "scroll bar", 50: "separator", 4: "arrow", 3: "animation", 74: "ruler", 86: "group"}
    ),
}

# Menus may hold these; separators do not count as items.
SEPARATOR = 50
ALERT, INFO_BAR, POPUP, TOGGLE_BUTTON, CELL, ROOT_PANE, MENU_BAR, WEB_PAGE = 2, 102, 69, 62, 56, 46, 34, 95
# What these say is the reason to answer them.
MESSAGE_ROLES = frozenset({ALERT, INFO_BAR, 101})
# What lies in one of these may be told of in other pixels than what is around it.
PANE_ROLES = frozenset({ROOT_PANE, WEB_PAGE})
SHEET_ROLES = frozenset({CELL, 92})
CHECKABLE_ROLES = frozenset({7, 8, 44, 45, 130})
ITEM_ROLES = frozenset({8, 32, 35, 37, 44, 45, 56, 91})


def map_role(number: int) -> ElementRole:
    """Return the role for a number; toolkits may send numbers that no table lists."""
    return ATSPI_ROLES.get(number, _UNKNOWN_ROLE)


_STATE_WORDS = {
    AtSpiState.FOCUSED: "focused",
    AtSpiState.SELECTED: "selected",
    AtSpiState.PRESSED: "pressed",
    AtSpiState.EXPANDED: "expanded",
    AtSpiState.EDITABLE: "editable",
    AtSpiState.INDETERMINATE: "mixed",
    AtSpiState.REQUIRED: "required",
    AtSpiState.INVALID_ENTRY: "invalid",
    AtSpiState.READ_ONLY: "readonly",
    AtSpiState.BUSY: "busy",
    AtSpiState.MODAL: "modal",
    AtSpiState.IS_DEFAULT: "default",
}


def describe_states(states: int, role: int) -> frozenset[str]:
    """Return the states as words.

    These are focused, selected, checked, pressed, expanded, collapsed, editable, multiline, disabled, offscreen,
    password and others.
    """
    kind = map_role(role).kind
    words = {word for bit, word in _STATE_WORDS.items() if states >> bit & 1}
    # Qt says of a field that can only be read that it is editable as well.
    if "readonly" in words:
        words.discard("editable")
    if states >> AtSpiState.CHECKED & 1:
        words.add("pressed" if role == TOGGLE_BUTTON else "checked")
    if states >> AtSpiState.EXPANDABLE & 1 and "expanded" not in words:
        words.add("collapsed")
    if states >> AtSpiState.MULTI_LINE & 1 and kind is RoleKind.TEXT:
        words.add("multiline")
    # LibreOffice says of its sheets and their cells only that they are enabled, and Chromium of a field only that it can be read and not changed.
    usable = (
        states >> AtSpiState.SENSITIVE & 1
        or (role in SHEET_ROLES and states >> AtSpiState.ENABLED & 1)
        or "readonly" in words
    )
    if not usable and kind in (RoleKind.CONTROL, RoleKind.TEXT, RoleKind.RANGE, RoleKind.MENU):
        words.add("disabled")
    if not states >> AtSpiState.SHOWING & 1:
        words.add("offscreen")
    if map_role(role).word == "password":
        words.add("password")
    return frozenset(words)
