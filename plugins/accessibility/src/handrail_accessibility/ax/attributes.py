"""Conversion of an object's attributes.

Names: AXAttributeConstants.h and AXRoleConstants.h of Apple's HIServices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail import Rect
from handrail_accessibility.native.tree import SELECTABLE_ROLES, NativeNode
from handrail_accessibility.tree.roles import ElementRole, RoleKind, build_roles
from handrail_accessibility.tree.wording import format_number

# All that is asked of an object, in one call.
REQUESTED_ATTRIBUTES = (
    *("AXRole", "AXSubrole", "AXTitle", "AXDescription", "AXValue", "AXPosition", "AXSize", "AXEnabled", "AXFocused"),
    *("AXSelected", "AXExpanded", "AXIdentifier", "AXChildren"),
)


AX_ROLES: dict[str, ElementRole] = {
    **build_roles(RoleKind.CONTROL, {"AXButton": "button", "AXCheckBox": "check box", "AXRadioButton": "radio button"}),
    **build_roles(RoleKind.CONTROL, {"AXLink": "link", "AXMenuItem": "menu item", "AXMenuBarItem": "menu item"}),
    **build_roles(
        RoleKind.CONTROL, {"AXMenuButton": "menu button", "AXDisclosureTriangle": "toggle button", "AXCell": "cell"}
    ),
    **build_roles(RoleKind.CONTROL, {"AXRow": "list item", "AXColorWell": "button", "AXDockItem": "icon"}),
    **build_roles(RoleKind.TEXT, {"AXTextField": "text", "AXTextArea": "text", "AXWebArea": "document"}, named=False),
    **build_roles(RoleKind.RANGE, {"AXSlider": "slider", "AXIncrementor": "spin button"}, named=False),
    **build_roles(
        RoleKind.RANGE, {"AXProgressIndicator": "progress bar", "AXLevelIndicator": "level bar"}, named=False
    ),
    **build_roles(RoleKind.MENU, {"AXMenu": "menu"}),
    **build_roles(RoleKind.MENU, {"AXPopUpButton": "combo box", "AXComboBox": "combo box"}, named=False),
    **build_roles(RoleKind.TABLE, {"AXTable": "table", "AXOutline": "tree", "AXList": "list", "AXBrowser": "tree"}),
    **build_roles(RoleKind.STATIC, {"AXImage": "image", "AXHeading": "heading", "AXHelpTag": "tool tip"}),
    **build_roles(RoleKind.STATIC, {"AXStaticText": "label"}, named=False),
    **build_roles(RoleKind.BOX, {"AXGroup": "group", "AXScrollArea": "scroll pane", "AXSplitGroup": "split pane"}),
    **build_roles(RoleKind.BOX, {"AXTabGroup": "tab list", "AXToolbar": "tool bar", "AXMenuBar": "menu bar"}),
    **build_roles(RoleKind.WINDOW, {"AXWindow": "window", "AXSheet": "dialog", "AXDrawer": "window"}, named=False),
    **build_roles(
        RoleKind.NOISE, {"AXScrollBar": "scroll bar", "AXSplitter": "separator", "AXValueIndicator": "group"}
    ),
}
UNKNOWN_ROLE = ElementRole("unknown", RoleKind.BOX)
PASSWORD_ROLE = ElementRole("password", RoleKind.TEXT, named=False)
CHECKABLE_ROLES = frozenset(("check box", "radio button", "toggle button"))


def map_role(told: Mapping[str, Any]) -> ElementRole:
    """Return the role; password fields and tabs are identified only by their subrole."""
    subrole = told.get("AXSubrole")
    if subrole == "AXSecureTextField":
        return PASSWORD_ROLE
    if subrole in ("AXTabButton", "AXSwitch"):
        return ElementRole("tab" if subrole == "AXTabButton" else "switch", RoleKind.CONTROL)
    return AX_ROLES.get(str(told.get("AXRole")), UNKNOWN_ROLE)


def build_node(
    told: Mapping[str, Any], rect: Rect | None, shown: Rect, native: Any = None, children: tuple[NativeNode, ...] = ()
) -> NativeNode:
    """Build a node from an object's attributes; it is offscreen if no part lies in the `shown` part of the screen."""
    role, value = map_role(told), told.get("AXValue")
    texts = (told.get("AXTitle"), told.get("AXDescription"), value if role.word == "label" else None)
    hidden = rect is None or rect.intersect(shown).empty
    return NativeNode(
        key=str(hash(native)),
        role=role,
        name=next((text for text in texts if isinstance(text, str) and text), ""),
        value=format_value(value, role),
        rect=rect,
        states=map_states(told, role) | {"offscreen"} if hidden else map_states(told, role),
        actions=list_actions(told, role),
        automation_id=text if isinstance(text := told.get("AXIdentifier"), str) else "",
        children=children,
        native=native,
    )


def format_value(value: Any, role: ElementRole) -> str | None:
    """Return the text or number of the value; never the content of a password field."""
    if role is PASSWORD_ROLE or role.word in CHECKABLE_ROLES or role.word == "label":
        return None
    if isinstance(value, str):
        return str(value)
    return format_number(value) if isinstance(value, int | float) and role.kind is RoleKind.RANGE else None


def map_states(told: Mapping[str, Any], role: ElementRole) -> frozenset[str]:
    """Return the states as words. A missing attribute is an error object, neither true nor false."""
    acts = role.kind in (RoleKind.CONTROL, RoleKind.TEXT, RoleKind.RANGE, RoleKind.MENU)
    expanded = told.get("AXExpanded")
    flags = {
        "focused": _is_int_equal(told.get("AXFocused"), True),
        "selected": _is_int_equal(told.get("AXSelected"), True),
        "disabled": acts and _is_int_equal(told.get("AXEnabled"), False),
        "editable": role.word == "text",
        "password": role is PASSWORD_ROLE,
        "checked": role.word in CHECKABLE_ROLES | {"switch", "tab"} and _is_int_equal(told.get("AXValue"), True),
        "mixed": role.word == "check box" and _is_int_equal(told.get("AXValue"), 2),
        "expanded": _is_int_equal(expanded, True),
        "collapsed": _is_int_equal(expanded, False),
    }
    return frozenset(word for word, there in flags.items() if there)


def list_actions(told: Mapping[str, Any], role: ElementRole) -> tuple[str, ...]:
    """Return the `execute_accessible` actions available for it."""
    opens = (
        _is_int_equal(told.get("AXExpanded"), True)
        or _is_int_equal(told.get("AXExpanded"), False)
        or role.word == "combo box"
    )
    able = {
        "click": role.kind in (RoleKind.CONTROL, RoleKind.MENU, RoleKind.TEXT),
        "toggle": role.word in ("check box", "toggle button", "switch"),
        "set_value": role.word in ("text", "password", "slider", "spin button"),
        "select": role.word in SELECTABLE_ROLES or role.word == "combo box",
        "expand": opens,
        "collapse": opens,
        "focus": role.kind in (RoleKind.TEXT, RoleKind.CONTROL, RoleKind.TABLE),
    }
    return tuple(name for name, can in able.items() if can)


def _is_int_equal(value: Any, wanted: int) -> bool:
    return isinstance(value, int) and value == wanted
