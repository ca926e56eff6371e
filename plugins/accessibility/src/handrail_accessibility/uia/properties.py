"""Conversion of UI Automation properties.

Numbers: UIAutomationClient.h, as learn.microsoft.com lists them under property, control type and control pattern
identifiers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

from handrail import Rect
from handrail_accessibility.native.tree import SELECTABLE_ROLES, NativeNode
from handrail_accessibility.tree.roles import ElementRole, RoleKind, build_roles
from handrail_accessibility.tree.wording import format_number


class UiaProperty(IntEnum):
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


UIA_ROLES: dict[int, ElementRole] = {
    **build_roles(
        RoleKind.CONTROL,
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
    **build_roles(RoleKind.TEXT, {50004: "text", 50030: "document", 50017: "status bar"}, named=False),
    **build_roles(RoleKind.RANGE, {50015: "slider", 50016: "spin button", 50012: "progress bar"}, named=False),
    **build_roles(RoleKind.MENU, {50009: "menu"}),
    **build_roles(RoleKind.MENU, {50003: "combo box"}),
    **build_roles(RoleKind.TABLE, {50008: "list", 50023: "tree", 50028: "table", 50036: "table", 50001: "calendar"}),
    **build_roles(RoleKind.STATIC, {50006: "image", 50022: "tool tip"}),
    **build_roles(RoleKind.STATIC, {50020: "label"}, named=False),
    **build_roles(
        RoleKind.BOX,
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
    **build_roles(RoleKind.WINDOW, {50032: "window"}, named=False),
    **build_roles(RoleKind.NOISE, {50014: "scroll bar", 50027: "group", 50037: "title bar", 50038: "separator"}),
}
UNKNOWN_ROLE = ElementRole("unknown", RoleKind.BOX)
# ToggleState_On, ToggleState_Indeterminate, ExpandCollapseState_Expanded, _PartiallyExpanded, _LeafNode.
TOGGLE_ON, TOGGLE_MIXED, FULLY_EXPANDED, PARTIALLY_EXPANDED, LEAF_NODE = 1, 2, 1, 2, 3


def build_node(
    told: Mapping[UiaProperty, Any], native: Any = None, children: tuple[NativeNode, ...] = ()
) -> NativeNode:
    """Build a node from an object's properties."""
    role = UIA_ROLES.get(told.get(UiaProperty.CONTROL_TYPE, 0), UNKNOWN_ROLE)
    if told.get(UiaProperty.PASSWORD):
        role = ElementRole("password", RoleKind.TEXT, named=False)
    return NativeNode(
        key=".".join(str(part) for part in told.get(UiaProperty.RUNTIME_ID) or ()),
        role=role,
        name=str(told.get(UiaProperty.NAME) or ""),
        value=format_value(told, role),
        rect=parse_rect(told.get(UiaProperty.RECTANGLE)),
        states=map_states(told, role),
        actions=list_actions(told, role),
        automation_id=str(told.get(UiaProperty.AUTOMATION_ID) or ""),
        children=children,
        native=native,
    )


def parse_rect(told: Any) -> Rect | None:
    """Parse a rectangle given as left, top, width and height; None without one.

    Hidden objects may report values that are not finite numbers.
    """
    if not told or len(told) != 4:
        return None
    try:
        rect = Rect(*(round(number) for number in told))
    except (ValueError, OverflowError):
        return None
    return None if rect.empty else rect


def format_value(told: Mapping[UiaProperty, Any], role: ElementRole) -> str | None:
    """Return the text or number of the value; None for passwords."""
    if role.word == "password":
        return None
    if told.get(UiaProperty.HAS_RANGE):
        return format_number(told.get(UiaProperty.NUMBER) or 0)
    if told.get(UiaProperty.HAS_VALUE):
        return str(told.get(UiaProperty.VALUE) or "")
    return None


def map_states(told: Mapping[UiaProperty, Any], role: ElementRole) -> frozenset[str]:
    """Return the states as words."""
    words: set[str] = set()
    acts = role.kind in (RoleKind.CONTROL, RoleKind.TEXT, RoleKind.RANGE, RoleKind.MENU)
    flags = {
        "focused": told.get(UiaProperty.FOCUSED),
        "offscreen": told.get(UiaProperty.OFFSCREEN),
        "required": told.get(UiaProperty.REQUIRED),
        "selected": told.get(UiaProperty.CAN_SELECT) and told.get(UiaProperty.SELECTED),
        "password": told.get(UiaProperty.PASSWORD),
        "disabled": acts and not told.get(UiaProperty.ENABLED, True),
        "editable": told.get(UiaProperty.HAS_VALUE)
        and not told.get(UiaProperty.READ_ONLY)
        and role.kind is RoleKind.TEXT,
        "readonly": told.get(UiaProperty.HAS_VALUE) and told.get(UiaProperty.READ_ONLY) and role.kind is RoleKind.TEXT,
    }
    words.update(word for word, there in flags.items() if there)
    if told.get(UiaProperty.CAN_TOGGLE):
        toggled = told.get(UiaProperty.TOGGLED)
        on = "pressed" if role.word == "button" else "checked"
        words.update({TOGGLE_ON: {on}, TOGGLE_MIXED: {"mixed"}}.get(toggled if isinstance(toggled, int) else -1, set()))
    if told.get(UiaProperty.CAN_EXPAND) and (state := told.get(UiaProperty.EXPANDED)) != LEAF_NODE:
        words.add("expanded" if state in (FULLY_EXPANDED, PARTIALLY_EXPANDED) else "collapsed")
    return frozenset(words)


def list_actions(told: Mapping[UiaProperty, Any], role: ElementRole) -> tuple[str, ...]:
    """Return the `execute_accessible` actions available for it."""
    opens = told.get(UiaProperty.CAN_EXPAND) and told.get(UiaProperty.EXPANDED) != LEAF_NODE
    able = {
        "click": told.get(UiaProperty.CAN_INVOKE) or role.kind in (RoleKind.CONTROL, RoleKind.MENU, RoleKind.TEXT),
        "toggle": told.get(UiaProperty.CAN_TOGGLE),
        "set_value": (told.get(UiaProperty.HAS_VALUE) or told.get(UiaProperty.HAS_RANGE))
        and not told.get(UiaProperty.READ_ONLY),
        "select": told.get(UiaProperty.CAN_SELECT) or role.word in SELECTABLE_ROLES or role.word == "combo box",
        "expand": opens,
        "collapse": opens,
        "focus": told.get(UiaProperty.FOCUSABLE),
    }
    return tuple(name for name, can in able.items() if can)
