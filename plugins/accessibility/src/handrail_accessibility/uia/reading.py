"""What is made of UI Automation's properties.

Numbers: UIAutomationClient.h, as learn.microsoft.com lists them under property, control type and control pattern identifiers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from handrail import Rect
from handrail_accessibility.native.tree import ITEMS, Node
from handrail_accessibility.roles import Kind, Role, roles_of
from handrail_accessibility.telling import number_told


class Property(IntEnum):
    """The properties that are asked for, all in one request."""

    RUNTIME_ID = 30000
    RECTANGLE = 30001
    CONTROL_TYPE = 30003
    NAME = 30005
    FOCUSED = 30008
    FOCUSABLE = 30009
    ENABLED = 30010
    AUTOMATION_ID = 30011
    PASSWORD = 30019
    OFFSCREEN = 30022
    REQUIRED = 30025
    CAN_EXPAND = 30028
    CAN_INVOKE = 30031
    HAS_RANGE = 30033
    CAN_SELECT = 30036
    CAN_TOGGLE = 30041
    HAS_VALUE = 30043
    VALUE = 30045
    READ_ONLY = 30046
    NUMBER = 30047
    EXPANDED = 30070
    SELECTED = 30079
    TOGGLED = 30086


ROLES: dict[int, Role] = {
    **roles_of(
        Kind.CONTROL,
        {
            50000: "button",
            50002: "check box",
            50005: "link",
            50007: "list item",
            50011: "menu item",
            50013: "radio button",
            50019: "tab",
            50024: "tree item",
            50029: "cell",
            50031: "button",
            50035: "column header",
        },
    ),
    **roles_of(Kind.TEXT, {50004: "text", 50030: "document", 50017: "status bar"}, named=False),
    **roles_of(Kind.RANGE, {50015: "slider", 50016: "spin button", 50012: "progress bar"}, named=False),
    **roles_of(Kind.MENU, {50009: "menu"}),
    **roles_of(Kind.MENU, {50003: "combo box"}),
    **roles_of(Kind.TABLE, {50008: "list", 50023: "tree", 50028: "table", 50036: "table", 50001: "calendar"}),
    **roles_of(Kind.STATIC, {50006: "image", 50022: "tool tip"}),
    **roles_of(Kind.STATIC, {50020: "label"}, named=False),
    **roles_of(
        Kind.BOX,
        {
            50010: "menu bar",
            50018: "tab list",
            50021: "tool bar",
            50025: "unknown",
            50026: "group",
            50033: "group",
            50034: "group",
            50039: "group",
            50040: "tool bar",
        },
    ),
    **roles_of(Kind.WINDOW, {50032: "window"}, named=False),
    **roles_of(Kind.NOISE, {50014: "scroll bar", 50027: "group", 50037: "title bar", 50038: "separator"}),
}
UNKNOWN = Role("unknown", Kind.BOX)
# ToggleState_On, ToggleState_Indeterminate, ExpandCollapseState_Expanded, _PartiallyExpanded, _LeafNode.
ON, MIXED, OPEN, PARTLY, LEAF = 1, 2, 1, 2, 3


def node_of(told: Mapping[Property, Any], native: Any = None, children: tuple[Node, ...] = ()) -> Node:
    """One object of what was told of it."""
    role = ROLES.get(told.get(Property.CONTROL_TYPE, 0), UNKNOWN)
    if told.get(Property.PASSWORD):
        role = Role("password", Kind.TEXT, named=False)
    return Node(
        key=".".join(str(part) for part in told.get(Property.RUNTIME_ID) or ()),
        role=role,
        name=str(told.get(Property.NAME) or ""),
        value=value_of(told, role),
        rect=rect_of(told.get(Property.RECTANGLE)),
        states=states_of(told, role),
        actions=actions_of(told, role),
        automation_id=str(told.get(Property.AUTOMATION_ID) or ""),
        children=children,
        native=native,
    )


def rect_of(told: Any) -> Rect | None:
    """A rectangle as left, top, width and height; None for what has none. Hidden objects may have numbers that are none."""
    if not told or len(told) != 4:
        return None
    try:
        rect = Rect(*(round(number) for number in told))
    except (ValueError, OverflowError):
        return None
    return None if rect.empty else rect


def value_of(told: Mapping[Property, Any], role: Role) -> str | None:
    """Its text, or the number that it stands at."""
    if role.word == "password":
        return None
    if told.get(Property.HAS_RANGE):
        return number_told(told.get(Property.NUMBER) or 0)
    if told.get(Property.HAS_VALUE):
        return str(told.get(Property.VALUE) or "")
    return None


def states_of(told: Mapping[Property, Any], role: Role) -> frozenset[str]:
    """The states in words."""
    words: set[str] = set()
    acts = role.kind in (Kind.CONTROL, Kind.TEXT, Kind.RANGE, Kind.MENU)
    flags = {
        "focused": told.get(Property.FOCUSED),
        "offscreen": told.get(Property.OFFSCREEN),
        "required": told.get(Property.REQUIRED),
        "selected": told.get(Property.CAN_SELECT) and told.get(Property.SELECTED),
        "password": told.get(Property.PASSWORD),
        "disabled": acts and not told.get(Property.ENABLED, True),
        "editable": told.get(Property.HAS_VALUE) and not told.get(Property.READ_ONLY) and role.kind is Kind.TEXT,
        "readonly": told.get(Property.HAS_VALUE) and told.get(Property.READ_ONLY) and role.kind is Kind.TEXT,
    }
    words.update(word for word, there in flags.items() if there)
    if told.get(Property.CAN_TOGGLE):
        toggled = told.get(Property.TOGGLED)
        on = "pressed" if role.word == "button" else "checked"
        words.update({ON: {on}, MIXED: {"mixed"}}.get(toggled if isinstance(toggled, int) else -1, set()))
    if told.get(Property.CAN_EXPAND) and (state := told.get(Property.EXPANDED)) != LEAF:
        words.add("expanded" if state in (OPEN, PARTLY) else "collapsed")
    return frozenset(words)


def actions_of(told: Mapping[Property, Any], role: Role) -> tuple[str, ...]:
    """The actions of `execute_accessible` that it can be asked for."""
    opens = told.get(Property.CAN_EXPAND) and told.get(Property.EXPANDED) != LEAF
    able = {
        "click": told.get(Property.CAN_INVOKE) or role.kind in (Kind.CONTROL, Kind.MENU, Kind.TEXT),
        "toggle": told.get(Property.CAN_TOGGLE),
        "set_value": (told.get(Property.HAS_VALUE) or told.get(Property.HAS_RANGE))
        and not told.get(Property.READ_ONLY),
        "select": told.get(Property.CAN_SELECT) or role.word in ITEMS or role.word == "combo box",
        "expand": opens,
        "collapse": opens,
        "focus": told.get(Property.FOCUSABLE),
    }
    return tuple(name for name, can in able.items() if can)
