"""Resolution of the element that a call refers to.

Yields exactly one element, or an error that lists the candidates; nothing is done on a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from handrail import AmbiguousElement, Downstream, Element, InvalidArguments, NotFound, StaleElement, ToolContext
from handrail.text import find_similar_texts, is_label_match, normalize_label
from handrail_accessibility.change_detection import describe_element
from handrail_accessibility.tree.protocol import AccessibilityController
from handrail_accessibility.tree.wording import escape_invisible, format_title

MAX_CANDIDATES = 10
# More than a read shows: a name may be far down.
SEARCH_BUDGET = 3_000


@dataclass(frozen=True, slots=True)
class ElementQuery:
    """Criteria by which a call identifies its element; None means no constraint."""

    element_id: str | None = None
    element_name: str | None = None
    automation_id: str | None = None
    control_type: str | None = None
    window: str | None = None

    def told(self) -> str:
        """Describe the criteria in words."""
        given = (
            ("control_type", self.control_type),
            ("element_name", self.element_name),
            ("automation_id", self.automation_id),
            ("window", self.window),
        )
        return ", ".join(f"{key} {value!r}" for key, value in given if value is not None)


async def find_element(
    context: ToolContext, control: AccessibilityController, naming: ElementQuery, action: str
) -> Element:
    """Return the element in its current state, numbered.

    Raises `NotFound`, `AmbiguousElement` or `StaleElement` with candidates.
    """
    if naming.element_id is not None:
        return await _find_by_id(context, control, naming)
    if naming.element_name is None and naming.automation_id is None and naming.control_type is None:
        raise InvalidArguments(
            "nothing names the element", hint="give element_id, element_name, automation_id or control_type"
        )
    (element,) = context.observations.number([await _find_by_name(context, control, naming, action)])
    return element


async def _find_by_id(context: ToolContext, control: AccessibilityController, naming: ElementQuery) -> Element:
    assert naming.element_id is not None
    known = context.observations.element(naming.element_id)
    if known.source != "accessibility":
        raise InvalidArguments(
            f"{naming.element_id} was seen by {known.source}, not in the accessibility tree",
            hint="use execute_gui with this element_id, or name the element",
        )
    current = await control.refresh(known)
    if current is None:
        raise await _build_stale_error(context, control, known)
    if not _filter_by_type(_filter_by_automation_id([current], naming), naming) or not _is_name_match(
        current, naming.element_name
    ):
        raise NotFound(f"{naming.element_id} is {describe_element(current)}, which is not {naming.told()}")
    context.observations.update(current)
    return current


async def _build_stale_error(context: ToolContext, control: AccessibilityController, known: Element) -> StaleElement:
    """Build the error, with similar elements in the element's window, or else in the active one."""
    try:
        tree = await control.tree(window=known.window or None, full=True)
    except NotFound:
        tree = await control.tree(full=True)
    alike = [e for e in tree.elements if e.text == known.text and e.role == known.role]
    alike = alike or [e for e in tree.elements if known.text and e.text == known.text]
    return StaleElement(
        f"{known.id} ({describe_element(known)}) is gone"
        + ("; what looks like it now is another element" if alike else ""),
        hint="use a candidate's id, or call get_ui_context",
        details={"candidates": _list_candidates(context, alike)},
    )


async def _find_by_name(
    context: ToolContext, control: AccessibilityController, naming: ElementQuery, action: str
) -> Element:
    tree = await control.tree(window=naming.window, full=True, budget=SEARCH_BUDGET)
    if tree.window is None:
        raise NotFound(f"there is no window to search: {tree.note}", hint="name a window, or start the program")
    visible = _filter_by_type(_filter_by_automation_id(tree.elements, naming), naming)
    hidden = _filter_by_type(_filter_by_automation_id(await control.closed_items(window=naming.window), naming), naming)
    in_menus = [element for element in hidden if _menu_path(element)]
    for elements, fits in (
        (visible, _is_exact_match),
        (visible, _is_close_match),
        (in_menus, _is_exact_match),
        (in_menus, _is_close_match),
        (visible, _is_partial_match),
        (in_menus, _is_partial_match),
    ):
        fitting = [element for element in elements if fits(element, naming.element_name)]
        able = [element for element in fitting if action in element.actions] or fitting
        if len(able) == 1:
            return able[0]
        if able:
            raise _build_ambiguous_error(context, able, naming)
    for element in hidden:
        if _is_close_match(element, naming.element_name):
            raise build_hidden_error(element)
    if naming.element_name is not None and (cell := await control.cell(naming.element_name, window=naming.window)):
        return cell
    raise _build_not_found_error(context, [*(visible or tree.elements), *in_menus], naming, tree.window)


def build_hidden_error(element: Element) -> Downstream:
    """Build the error for an element that exists but is hidden."""
    return Downstream(
        f"{describe_element(element)} is there, but hidden",
        hint="open the tab, menu or pop-up that shows it, or use the action scroll_to",
        details={"states": sorted(element.states)},
    )


def _menu_path(element: Element) -> str:
    """Return the path to an item of a closed menu, like "File > Save"; empty for any other element."""
    return element.value or "" if "menu" in element.role and " > " in (element.value or "") else ""


def _filter_by_automation_id(elements: Iterable[Element], naming: ElementQuery) -> list[Element]:
    sought = naming.automation_id
    # Qt puts the ids of all that is around it before it: QApplication.QMainWindow.name.
    return [e for e in elements if sought is None or f".{e.automation_id}".endswith(f".{sought}")]


def _filter_by_type(elements: list[Element], naming: ElementQuery) -> list[Element]:
    if naming.control_type is None:
        return elements
    sought = naming.control_type.casefold()
    exact = [element for element in elements if element.role == sought]
    return exact or [element for element in elements if sought in element.role]


def _is_exact_match(element: Element, name: str | None) -> bool:
    return name is None or name in (element.text, escape_invisible(element.text), _menu_path(element) or element.text)


def _is_close_match(element: Element, name: str | None) -> bool:
    return name is not None and any(is_label_match(name, text) for text in (element.text, _menu_path(element)))


def _is_partial_match(element: Element, name: str | None) -> bool:
    return name is not None and bool(normalize_label(name)) and normalize_label(name) in normalize_label(element.text)


def _is_name_match(element: Element, name: str | None) -> bool:
    fits: tuple[Callable[[Element, str | None], bool], ...] = (_is_exact_match, _is_close_match, _is_partial_match)
    return any(fit(element, name) for fit in fits)


def _build_ambiguous_error(context: ToolContext, fitting: Sequence[Element], naming: ElementQuery) -> AmbiguousElement:
    return AmbiguousElement(
        f"{len(fitting)} elements fit {naming.told()}; nothing was done",
        hint="use one candidate's id",
        details={"candidates": _list_candidates(context, fitting)},
    )


def _build_not_found_error(
    context: ToolContext, elements: Sequence[Element], naming: ElementQuery, window: str
) -> NotFound:
    by_name = {element.text: element for element in reversed(elements) if element.text}
    near = find_similar_texts(_last_path_part(naming.element_name), by_name, most=MAX_CANDIDATES, least=0.5)
    shown = [by_name[name] for name in near] or [element for element in elements if element.text and element.actions]
    return NotFound(
        f"no element fits {naming.told()} in window {format_title(window)!r}",
        hint="use a candidate's id, name another window, or call get_ui_context",
        details={"candidates": _list_candidates(context, shown)},
    )


def _last_path_part(name: str | None) -> str:
    """Return the item's own name from a menu path."""
    return (name or "").rpartition(" > ")[2]


def _list_candidates(context: ToolContext, elements: Sequence[Element]) -> list[dict[str, Any]]:
    numbered = context.observations.number(elements[:MAX_CANDIDATES])
    return [
        {
            "id": e.id,
            "role": e.role,
            "text": escape_invisible(_menu_path(e) or e.text),
            "window": format_title(e.window),
        }
        for e in numbered
    ]
