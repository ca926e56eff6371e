"""The tools `get_ui_context` and `execute_accessible`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from handrail import (
    Downstream,
    Element,
    Input,
    Read,
    StaleElement,
    StaleObservation,
    ToolContext,
    Transform,
    Tree,
    element_wire,
    tool,
)
from handrail_accessibility.tree.wording import escape_invisible, format_title

if TYPE_CHECKING:
    from handrail_accessibility.tree.protocol import AccessibilityController

ELEMENT_BUDGET = 500
# Elements that are gone through to find the place where to go on.
PAGING_BUDGET = 5_000
# Shown to whoever sees a screen by elements or text; a backend that only plans has no use for them.
VISION_CAPABILITIES = frozenset({"parse_screen", "ocr", "understand", "accessibility_tree"})

WindowTitle = Annotated[str | None, Field(description="Part of a title (default: the active window).")]


@tool(
    title="Read the window",
    effects=[Read("tree")],
    requires=VISION_CAPABILITIES,
    exclusive="desktop",
    timeout=15,
    advice="Where a program gives its elements, get_ui_context is quicker and surer than a picture.",
)
async def get_ui_context(
    max_depth: Annotated[int, Field(ge=1, le=100, description="Levels of named things to go down.")] = 8,
    window: WindowTitle = None,
    query: Annotated[str | None, Field(description="Only those whose name, type or value contains this.")] = None,
    full: Annotated[bool, Field(description="Static text and unnamed boxes too.")] = False,
    after: Annotated[str | None, Field(description="When truncated: the last id, to go on after it.")] = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """List a window's controls and named things, with ids for execute_accessible and execute_gui.

    Gives elements (id, name, type, value, states, bbox, actions), the focused one and the window's title. Faster and surer than a
    screenshot. A closed menu is one line; its items can still be clicked by name.
    """
    control: AccessibilityController = await context.service("accessibility")
    budget = ELEMENT_BUDGET if after is None else PAGING_BUDGET
    tree = await control.tree(window=window, max_depth=max_depth, query=query, full=full, budget=budget)
    if after is not None:
        tree = _tree_after(context, tree, after)
    observed = context.observations.add(tree.elements, backend="accessibility", truncated=tree.truncated)
    transform, space = _coordinate_space(context)
    focused = next((element for element in observed.elements if "focused" in element.states), None)
    result: dict[str, Any] = {
        "elements": [_build_element_entry(element, transform) for element in observed.elements],
        "element_count": len(observed.elements),
        "foreground_window": tree.window and format_title(tree.window),
        "focused_element": focused and {"id": focused.id, "name": escape_invisible(focused.text), "type": focused.role},
        "truncated": tree.truncated,
        "bbox_of": space,
    }
    return {**result, "note": tree.note} if tree.note else result


@tool(
    title="Use an element",
    effects=[Input("desktop", arg="value"), Read("tree")],
    requires=VISION_CAPABILITIES,
    exclusive="desktop",
    timeout=30,
)
async def execute_accessible(
    action: Annotated[
        Literal["click", "type", "set_value", "toggle", "select", "expand", "collapse", "focus", "scroll_to", "read"],
        Field(description="type and set_value replace the whole text."),
    ],
    element_name: Annotated[
        str | None, Field(description='Its name, or a unique part; "File > Save" for an item of a closed menu.')
    ] = None,
    value: Annotated[str | None, Field(description="What to set, select, or toggle to (on, off).")] = None,
    element_id: Annotated[str | None, Field(description="An id from an earlier result, like e12.")] = None,
    automation_id: Annotated[str | None, Field(description="Its automation id.")] = None,
    control_type: Annotated[str | None, Field(description="Its type, like button.")] = None,
    window: WindowTitle = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Act on one element, and check that it worked.

    Name it by one or more of element_id, element_name, automation_id, control_type. effect: confirmed (with evidence), none (it was so already, or
    only read), unverified. If several fit, or it is gone, nothing is done and the error lists candidates.
    """
    from handrail_accessibility.action_execution import ActionRequest
    from handrail_accessibility.actions import ACTION_HANDLERS
    from handrail_accessibility.change_detection import describe_element
    from handrail_accessibility.element_finder import ElementQuery, find_element

    control: AccessibilityController = await context.service("accessibility")
    naming = ElementQuery(element_id, element_name, automation_id, control_type, window)
    element = await find_element(context, control, naming, _canonical_action(action))
    outcome = await ACTION_HANDLERS[action](ActionRequest(context, control, element, value))
    current = await _refresh_element(control, element)
    if current is not None:
        context.observations.update(current)
    result: dict[str, Any] = {
        "found": True,
        "element_id": element.id,
        "element_name": escape_invisible(element.text),
        "element_type": element.role,
        "action_performed": action if outcome.route != "none" or action == "read" else "none",
        "description": f"{action} on {describe_element(element)} in window {format_title(element.window)!r}",
        "effect": outcome.effect,
        "route": outcome.route,
        **outcome.more,
    }
    if current is not None:
        result["states"] = sorted(current.states)
    if outcome.evidence:
        result["evidence"] = list(outcome.evidence)
    return {**result, "note": outcome.note} if outcome.note else result


def _tree_after(context: ToolContext, tree: Tree, after: str) -> Tree:
    """Return the part of the tree after an element, within the budget.

    Raises `StaleElement` if the element has gone.
    """
    numbered = context.observations.number(tree.elements)
    at = next((at for at, element in enumerate(numbered) if element.id == after), None)
    if at is None:
        raise StaleElement(f"{after!r} is not in the window any more, so nothing follows it", hint="read it anew")
    rest = tree.elements[at + 1 :]
    return replace(tree, elements=rest[:ELEMENT_BUDGET], truncated=tree.truncated or len(rest) > ELEMENT_BUDGET)


async def _refresh_element(control: AccessibilityController, element: Element) -> Element | None:
    """Return the element after the action; None if it is gone, or its program is too busy to answer."""
    try:
        return await control.refresh(element)
    except Downstream:
        return None


def _canonical_action(action: str) -> str:
    return "set_value" if action == "type" else action


def _coordinate_space(context: ToolContext) -> tuple[Transform | None, str]:
    """Return the space of the coordinates: the latest picture's, so that they can be used with it, or the screen's."""
    try:
        seen = context.observations.get()
    except StaleObservation:
        return None, "screen"
    return seen.transform, seen.id


def _build_element_entry(element: Element, transform: Transform | None) -> dict[str, Any]:
    wire = element_wire(element, transform)
    line: dict[str, Any] = {
        "id": element.id,
        "name": escape_invisible(element.text),
        "type": element.role,
        "automation_id": element.automation_id,
        "bbox": wire["bbox"],
        "states": wire["states"],
        "actions": list(element.actions),
    }
    return line if element.value is None else {**line, "value": escape_invisible(element.value)}
