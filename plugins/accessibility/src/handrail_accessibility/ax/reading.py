"""What is made of an object's attributes.

Names: AXAttributeConstants.h and AXRoleConstants.h of Apple's HIServices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail import Rect
from handrail_accessibility.native.tree import ITEMS, Node
from handrail_accessibility.roles import Kind, Role, roles_of
from handrail_accessibility.telling import number_told

# All that is asked of an object, in one call.
ATTRIBUTES = (
    *("AXRole", "AXSubrole", "AXTitle", "AXDescription", "AXValue", "AXPosition", "AXSize", "AXEnabled", "AXFocused"),
    *("AXSelected", "AXExpanded", "AXIdentifier", "AXChildren"),
)


ROLES: dict[str, Role] = {
    **roles_of(Kind.CONTROL, {"AXButton": "button", "AXCheckBox": "check box", "AXRadioButton": "radio button"}),
    **roles_of(Kind.CONTROL, {"AXLink": "link", "AXMenuItem": "menu item", "AXMenuBarItem": "menu item"}),
    **roles_of(
        Kind.CONTROL, {"AXMenuButton": "menu button", "AXDisclosureTriangle": "toggle button", "AXCell": "cell"}
    ),
    **roles_of(Kind.CONTROL, {"AXRow": "list item", "AXColorWell": "button", "AXDockItem": "icon"}),
    **roles_of(Kind.TEXT, {"AXTextField": "text", "AXTextArea": "text", "AXWebArea": "document"}, named=False),
    **roles_of(Kind.RANGE, {"AXSlider": "slider", "AXIncrementor": "spin button"}, named=False),
    **roles_of(Kind.RANGE, {"AXProgressIndicator": "progress bar", "AXLevelIndicator": "level bar"}, named=False),
    **roles_of(Kind.MENU, {"AXMenu": "menu"}),
    **roles_of(Kind.MENU, {"AXPopUpButton": "combo box", "AXComboBox": "combo box"}, named=False),
    **roles_of(Kind.TABLE, {"AXTable": "table", "AXOutline": "tree", "AXList": "list", "AXBrowser": "tree"}),
    **roles_of(Kind.STATIC, {"AXImage": "image", "AXHeading": "heading", "AXHelpTag": "tool tip"}),
    **roles_of(Kind.STATIC, {"AXStaticText": "label"}, named=False),
    **roles_of(Kind.BOX, {"AXGroup": "group", "AXScrollArea": "scroll pane", "AXSplitGroup": "split pane"}),
    **roles_of(Kind.BOX, {"AXTabGroup": "tab list", "AXToolbar": "tool bar", "AXMenuBar": "menu bar"}),
    **roles_of(Kind.WINDOW, {"AXWindow": "window", "AXSheet": "dialog", "AXDrawer": "window"}, named=False),
    **roles_of(Kind.NOISE, {"AXScrollBar": "scroll bar", "AXSplitter": "separator", "AXValueIndicator": "group"}),
}
UNKNOWN = Role("unknown", Kind.BOX)
SECRET = Role("password", Kind.TEXT, named=False)
TICKED = frozenset(("check box", "radio button", "toggle button"))


def role_of(told: Mapping[str, Any]) -> Role:
    """Its role; what a field for secrets and a tab are, only the subrole says."""
    subrole = told.get("AXSubrole")
    if subrole == "AXSecureTextField":
        return SECRET
    if subrole in ("AXTabButton", "AXSwitch"):
        return Role("tab" if subrole == "AXTabButton" else "switch", Kind.CONTROL)
    return ROLES.get(str(told.get("AXRole")), UNKNOWN)


def node_of(
    told: Mapping[str, Any], rect: Rect | None, shown: Rect, native: Any = None, children: tuple[Node, ...] = ()
) -> Node:
    """One object of its attributes; what has nothing in the `shown` part of the screen is out of sight."""
    role, value = role_of(told), told.get("AXValue")
    texts = (told.get("AXTitle"), told.get("AXDescription"), value if role.word == "label" else None)
    hidden = rect is None or rect.intersect(shown).empty
    return Node(
        key=str(hash(native)),
        role=role,
        name=next((text for text in texts if isinstance(text, str) and text), ""),
        value=value_of(value, role),
        rect=rect,
        states=states_of(told, role) | {"offscreen"} if hidden else states_of(told, role),
        actions=actions_of(told, role),
        automation_id=text if isinstance(text := told.get("AXIdentifier"), str) else "",
        children=children,
        native=native,
    )


def value_of(value: Any, role: Role) -> str | None:
    """Its text, or the number that it stands at; never what a field for secrets holds."""
    if role is SECRET or role.word in TICKED or role.word == "label":
        return None
    if isinstance(value, str):
        return str(value)
    return number_told(value) if isinstance(value, int | float) and role.kind is Kind.RANGE else None


def states_of(told: Mapping[str, Any], role: Role) -> frozenset[str]:
    """The states in words. What an object has not is an error in its place, and neither true nor false."""
    acts = role.kind in (Kind.CONTROL, Kind.TEXT, Kind.RANGE, Kind.MENU)
    expanded = told.get("AXExpanded")
    flags = {
        "focused": _is(told.get("AXFocused"), True),
        "selected": _is(told.get("AXSelected"), True),
        "disabled": acts and _is(told.get("AXEnabled"), False),
        "editable": role.word == "text",
        "password": role is SECRET,
        "checked": role.word in TICKED | {"switch", "tab"} and _is(told.get("AXValue"), True),
        "mixed": role.word == "check box" and _is(told.get("AXValue"), 2),
        "expanded": _is(expanded, True),
        "collapsed": _is(expanded, False),
    }
    return frozenset(word for word, there in flags.items() if there)


def actions_of(told: Mapping[str, Any], role: Role) -> tuple[str, ...]:
    """The actions of `execute_accessible` that it can be asked for."""
    opens = _is(told.get("AXExpanded"), True) or _is(told.get("AXExpanded"), False) or role.word == "combo box"
    able = {
        "click": role.kind in (Kind.CONTROL, Kind.MENU, Kind.TEXT),
        "toggle": role.word in ("check box", "toggle button", "switch"),
        "set_value": role.word in ("text", "password", "slider", "spin button"),
        "select": role.word in ITEMS or role.word == "combo box",
        "expand": opens,
        "collapse": opens,
        "focus": role.kind in (Kind.TEXT, Kind.CONTROL, Kind.TABLE),
    }
    return tuple(name for name, can in able.items() if can)


def _is(value: Any, wanted: int) -> bool:
    return isinstance(value, int) and value == wanted
