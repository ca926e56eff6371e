"""Proof that the keyboard focus is in a text field, without which no key is sent that selects or deletes all there is."""

from __future__ import annotations

from handrail import Downstream, Element
from handrail_gui.observe import outline

# A cell, a sheet, a document, a paragraph and a terminal are not fields: there, select-all reaches beyond the one that is meant.
FIELD_ROLES = frozenset({"text", "password", "spin button", "combo box"})
CLICK_FIRST_HINT = "click into the text field and call again, or type without replacing or clearing first"


def is_focused_field(element: Element) -> bool:
    """Return True for an editable text field that has the keyboard focus."""
    usable = element.states.isdisjoint(("disabled", "readonly"))
    return usable and element.role in FIELD_ROLES and element.states >= {"editable", "focused"}


def require_focused_field(focused: Element | None, wanted: Element | None = None) -> Element:
    """Return the focused text field, which must be `wanted` if given.

    Raises `Downstream` if that is not proved: without an accessibility tree, or if anything else has the focus.
    """
    if focused is None:
        raise Downstream(
            "nothing shows that a text field has the focus, so its text was not selected and nothing was typed",
            hint=CLICK_FIRST_HINT,
        )
    if wanted is not None and focused.fingerprint != wanted.fingerprint:
        raise Downstream(
            f"the focus is in {outline.describe_element(focused)}, not in {outline.describe_element(wanted)}; nothing was typed",
            hint=CLICK_FIRST_HINT,
            details={"focused": outline.describe_element(focused)},
        )
    if not is_focused_field(focused):
        raise Downstream(
            f"the focus is in {outline.describe_element(focused)}, which is not an editable text field; nothing was typed",
            hint=CLICK_FIRST_HINT,
            details={"focused": outline.describe_element(focused)},
        )
    return focused
