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
from handrail_accessibility.telling import seen, titled

if TYPE_CHECKING:
    from handrail_accessibility.control import Control

BUDGET = 500
# Elements that are gone through to find the place where to go on.
FURTHEST = 5_000
# Shown to whoever sees a screen by elements or text; a backend that only plans has no use for them.
SEEING = frozenset({"parse_screen", "ocr", "understand", "accessibility_tree"})

Window = Annotated[str | None, Field(description="Part of a title (default: the active window).")]


@tool(
    title="Read the window",
    effects=[Read("tree")],
    requires=SEEING,
    exclusive="desktop",
    timeout=15,
    advice="Where a program gives its elements, get_ui_context is quicker and surer than a picture.",
)
async def get_ui_context(
    max_depth: Annotated[int, Field(ge=1, le=100, description="Levels of named things to go down.")] = 8,
    window: Window = None,
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
    control: Control = await context.service("accessibility")
    budget = BUDGET if after is None else FURTHEST
    tree = await control.tree(window=window, max_depth=max_depth, query=query, full=full, budget=budget)
    if after is not None:
        tree = _rest(context, tree, after)
    observed = context.observations.add(tree.elements, backend="accessibility", truncated=tree.truncated)
    transform, space = _latest_picture(context)
    focused = next((element for element in observed.elements if "focused" in element.states), None)
    result: dict[str, Any] = {
        "elements": [_line(element, transform) for element in observed.elements],
        "element_count": len(observed.elements),
        "foreground_window": tree.window and titled(tree.window),
        "focused_element": focused and {"id": focused.id, "name": seen(focused.text), "type": focused.role},
        "truncated": tree.truncated,
        "bbox_of": space,
    }
    return {**result, "note": tree.note} if tree.note else result


@tool(
    title="Use an element",
    effects=[Input("desktop", arg="value"), Read("tree")],
    requires=SEEING,
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
    window: Window = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Act on one element, and check that it worked.

    Name it by one or more of element_id, element_name, automation_id, control_type. effect: confirmed (with evidence), none (it was so already, or
    only read), unverified. If several fit, or it is gone, nothing is done and the error lists candidates.
    """
    from handrail_accessibility.acting import Act
    from handrail_accessibility.changes import named
    from handrail_accessibility.naming import Naming, find
    from handrail_accessibility.verbs import ACTIONS

    control: Control = await context.service("accessibility")
    naming = Naming(element_id, element_name, automation_id, control_type, window)
    element = await find(context, control, naming, _as_listed(action))
    outcome = await ACTIONS[action](Act(context, control, element, value))
    current = await _after(control, element)
    if current is not None:
        context.observations.update(current)
    result: dict[str, Any] = {
        "found": True,
        "element_id": element.id,
        "element_name": seen(element.text),
        "element_type": element.role,
        "action_performed": action if outcome.route != "none" or action == "read" else "none",
        "description": f"{action} on {named(element)} in window {titled(element.window)!r}",
        "effect": outcome.effect,
        "route": outcome.route,
        **outcome.more,
    }
    if current is not None:
        result["states"] = sorted(current.states)
    if outcome.evidence:
        result["evidence"] = list(outcome.evidence)
    return {**result, "note": outcome.note} if outcome.note else result


def _rest(context: ToolContext, tree: Tree, after: str) -> Tree:
    """What follows an element, as far as the budget goes; `StaleElement` when it is not there any more."""
    numbered = context.observations.number(tree.elements)
    at = next((at for at, element in enumerate(numbered) if element.id == after), None)
    if at is None:
        raise StaleElement(f"{after!r} is not in the window any more, so nothing follows it", hint="read it anew")
    rest = tree.elements[at + 1 :]
    return replace(tree, elements=rest[:BUDGET], truncated=tree.truncated or len(rest) > BUDGET)


async def _after(control: Control, element: Element) -> Element | None:
    """The element after the action; None when it is gone, or its program is too busy to say."""
    try:
        return await control.refresh(element)
    except Downstream:
        return None


def _as_listed(action: str) -> str:
    return "set_value" if action == "type" else action


def _latest_picture(context: ToolContext) -> tuple[Transform | None, str]:
    """The space of the coordinates: those of the latest picture, so that they can be used with it; else the screen's."""
    try:
        seen = context.observations.get()
    except StaleObservation:
        return None, "screen"
    return seen.transform, seen.id


def _line(element: Element, transform: Transform | None) -> dict[str, Any]:
    wire = element_wire(element, transform)
    line: dict[str, Any] = {
        "id": element.id,
        "name": seen(element.text),
        "type": element.role,
        "automation_id": element.automation_id,
        "bbox": wire["bbox"],
        "states": wire["states"],
        "actions": list(element.actions),
    }
    return line if element.value is None else {**line, "value": seen(element.value)}
