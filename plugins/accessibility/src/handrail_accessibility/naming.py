"""Which element a call means. Exactly one, or an error that names the candidates; nothing is done on a guess."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from handrail import AmbiguousElement, Downstream, Element, InvalidArguments, NotFound, StaleElement, ToolContext
from handrail.words import label, said_by, similar_texts
from handrail_accessibility.changes import named
from handrail_accessibility.control import Control
from handrail_accessibility.telling import seen, titled

MOST_CANDIDATES = 10
# More than a read shows: a name may be far down.
SEARCHED = 3_000


@dataclass(frozen=True, slots=True)
class Naming:
    """How a call names its element; what is None says nothing."""

    element_id: str | None = None
    element_name: str | None = None
    automation_id: str | None = None
    control_type: str | None = None
    window: str | None = None

    def told(self) -> str:
        """The same in words."""
        given = (
            ("control_type", self.control_type),
            ("element_name", self.element_name),
            ("automation_id", self.automation_id),
            ("window", self.window),
        )
        return ", ".join(f"{key} {value!r}" for key, value in given if value is not None)


async def find(context: ToolContext, control: Control, naming: Naming, action: str) -> Element:
    """The element as it is now, numbered. Raises `NotFound`, `AmbiguousElement` or `StaleElement` with candidates."""
    if naming.element_id is not None:
        return await _by_id(context, control, naming)
    if naming.element_name is None and naming.automation_id is None and naming.control_type is None:
        raise InvalidArguments(
            "nothing names the element", hint="give element_id, element_name, automation_id or control_type"
        )
    (element,) = context.observations.number([await _by_name(context, control, naming, action)])
    return element


async def _by_id(context: ToolContext, control: Control, naming: Naming) -> Element:
    assert naming.element_id is not None
    known = context.observations.element(naming.element_id)
    if known.source != "accessibility":
        raise InvalidArguments(
            f"{naming.element_id} was seen by {known.source}, not in the accessibility tree",
            hint="use execute_gui with this element_id, or name the element",
        )
    current = await control.refresh(known)
    if current is None:
        raise await _stale(context, control, known)
    if not _typed(_identified([current], naming), naming) or not _fits_name(current, naming.element_name):
        raise NotFound(f"{naming.element_id} is {named(current)}, which is not {naming.told()}")
    context.observations.update(current)
    return current


async def _stale(context: ToolContext, control: Control, known: Element) -> StaleElement:
    """The error, with what looks like it now: in its window, else in the active one."""
    try:
        tree = await control.tree(window=known.window or None, full=True)
    except NotFound:
        tree = await control.tree(full=True)
    alike = [e for e in tree.elements if e.text == known.text and e.role == known.role]
    alike = alike or [e for e in tree.elements if known.text and e.text == known.text]
    return StaleElement(
        f"{known.id} ({named(known)}) is gone" + ("; what looks like it now is another element" if alike else ""),
        hint="use a candidate's id, or call get_ui_context",
        details={"candidates": _candidates(context, alike)},
    )


async def _by_name(context: ToolContext, control: Control, naming: Naming, action: str) -> Element:
    tree = await control.tree(window=naming.window, full=True, budget=SEARCHED)
    if tree.window is None:
        raise NotFound(f"there is no window to search: {tree.note}", hint="name a window, or start the program")
    visible = _typed(_identified(tree.elements, naming), naming)
    hidden = _typed(_identified(await control.closed_items(window=naming.window), naming), naming)
    in_menus = [element for element in hidden if _way(element)]
    for elements, fits in (
        (visible, _exactly),
        (visible, _nearly),
        (in_menus, _exactly),
        (in_menus, _nearly),
        (visible, _partly),
        (in_menus, _partly),
    ):
        fitting = [element for element in elements if fits(element, naming.element_name)]
        able = [element for element in fitting if action in element.actions] or fitting
        if len(able) == 1:
            return able[0]
        if able:
            raise _ambiguous(context, able, naming)
    for element in hidden:
        if _nearly(element, naming.element_name):
            raise hidden_error(element)
    if naming.element_name is not None and (cell := await control.cell(naming.element_name, window=naming.window)):
        return cell
    raise _none_fits(context, [*(visible or tree.elements), *in_menus], naming, tree.window)


def hidden_error(element: Element) -> Downstream:
    """What to say of an element that is there but cannot be seen."""
    return Downstream(
        f"{named(element)} is there, but hidden",
        hint="open the tab, menu or pop-up that shows it, or use the action scroll_to",
        details={"states": sorted(element.states)},
    )


def _way(element: Element) -> str:
    """The way to an item of a closed menu, like "File > Save"; empty for everything else."""
    return element.value or "" if "menu" in element.role and " > " in (element.value or "") else ""


def _identified(elements: Iterable[Element], naming: Naming) -> list[Element]:
    sought = naming.automation_id
    # Qt puts the ids of all that is around it before it: QApplication.QMainWindow.name.
    return [e for e in elements if sought is None or f".{e.automation_id}".endswith(f".{sought}")]


def _typed(elements: list[Element], naming: Naming) -> list[Element]:
    if naming.control_type is None:
        return elements
    sought = naming.control_type.casefold()
    exact = [element for element in elements if element.role == sought]
    return exact or [element for element in elements if sought in element.role]


def _exactly(element: Element, name: str | None) -> bool:
    return name is None or name in (element.text, seen(element.text), _way(element) or element.text)


def _nearly(element: Element, name: str | None) -> bool:
    return name is not None and any(said_by(name, text) for text in (element.text, _way(element)))


def _partly(element: Element, name: str | None) -> bool:
    return name is not None and bool(label(name)) and label(name) in label(element.text)


def _fits_name(element: Element, name: str | None) -> bool:
    fits: tuple[Callable[[Element, str | None], bool], ...] = (_exactly, _nearly, _partly)
    return any(fit(element, name) for fit in fits)


def _ambiguous(context: ToolContext, fitting: Sequence[Element], naming: Naming) -> AmbiguousElement:
    return AmbiguousElement(
        f"{len(fitting)} elements fit {naming.told()}; nothing was done",
        hint="use one candidate's id",
        details={"candidates": _candidates(context, fitting)},
    )


def _none_fits(context: ToolContext, elements: Sequence[Element], naming: Naming, window: str) -> NotFound:
    by_name = {element.text: element for element in reversed(elements) if element.text}
    near = similar_texts(_last(naming.element_name), by_name, most=MOST_CANDIDATES, least=0.5)
    shown = [by_name[name] for name in near] or [element for element in elements if element.text and element.actions]
    return NotFound(
        f"no element fits {naming.told()} in window {titled(window)!r}",
        hint="use a candidate's id, name another window, or call get_ui_context",
        details={"candidates": _candidates(context, shown)},
    )


def _last(name: str | None) -> str:
    """The item's own name, of a way through menus."""
    return (name or "").rpartition(" > ")[2]


def _candidates(context: ToolContext, elements: Sequence[Element]) -> list[dict[str, Any]]:
    numbered = context.observations.number(elements[:MOST_CANDIDATES])
    return [{"id": e.id, "role": e.role, "text": seen(_way(e) or e.text), "window": titled(e.window)} for e in numbered]
