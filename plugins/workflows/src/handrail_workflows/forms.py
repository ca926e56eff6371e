"""The tool `fill_form`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from handrail import AmbiguousElement, Downstream, InvalidArguments, NotFound, Rect, Run, ToolContext, ToolError, tool
from handrail.text import is_label_match, is_right_to_left
from handrail_workflows.file_dialogs import LINUX_ONLY
from handrail_workflows.steps import WorkflowSteps
from handrail_workflows.windows import UiElement, bring_to_front, find_app_windows, list_windows, require_elements

# How far a field may be from the label that stands before or above it, pixels.
MAX_LABEL_DISTANCE = 400
TOGGLE_ROLES = frozenset(("check box", "switch", "toggle button"))
FIELD_ROLES = frozenset(("text", "password", "spin button", "slider", "combo box", "radio button", *TOGGLE_ROLES))


class FieldValue(BaseModel):
    """Value for a field."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    label: Annotated[str, Field(description="As shown.")]
    value: Annotated[str | bool | float, Field(description="Text, number, choice, true or false.")]


@tool(
    layer="workflow",
    title="Fill in a form",
    effects=[Run("steps")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=120,
    loadable=True,
    describe=lambda given: f"Fill in {', '.join(field.label for field in given.fields)}",
)
async def fill_form(
    fields: Annotated[list[FieldValue], Field(min_length=1, description="Labels and values.")],
    window: Annotated[str | None, Field(description="Title, process or window id. Default: the active window.")] = None,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Fill in fields by their labels and read each back. Returns filled, failed_fields (label, reason) and steps_taken; nothing is submitted."""
    steps = WorkflowSteps(context)
    filled: list[str] = []
    failed: list[dict[str, str]] = []
    with steps.told():
        if window is not None:
            await bring_to_front(steps, find_app_windows(await list_windows(steps), window)[0])
        for label, value in ((field.label, field.value) for field in fields):
            try:
                await _fill_field(steps, label, value)
                filled.append(label)
            except ToolError as exc:
                if exc.status != "error":
                    raise
                failed.append({"label": label, "reason": str(exc)})
    result: dict[str, Any] = {"filled": filled, "failed_fields": failed, "steps_taken": steps.taken}
    if not failed:
        return {**result, "effect": "confirmed"}
    return {**result, "status": "error", "note": f"{len(failed)} of {len(fields)} fields were not filled"}


async def _fill_field(steps: WorkflowSteps, label: str, value: str | bool | float) -> None:
    field = find_field(await require_elements(steps), label)
    order: dict[str, Any] = {"action": "set_value", "value": _format_value(value)}
    if field.role in TOGGLE_ROLES:
        order = {"action": "toggle", "value": _format_value(value)}
    elif field.role == "combo box":
        order = {"action": "select", "value": _format_value(value)}
    elif field.role == "radio button":
        if value is not True:
            raise InvalidArguments(
                f"{label!r} is one of several choices, which takes true and not {value!r}",
                hint="choose another one instead",
            )
        order = {"action": "select"}
    await steps.take("execute_accessible", element_id=field.id, **order)


def _format_value(value: str | bool | float) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


def find_field(shown: Sequence[UiElement], label: str) -> UiElement:
    """Return the field with a label: the one with that name, else the nearest after or below a text that matches.

    "After" means to the left if the form's text runs from right to left. Raises `AmbiguousElement` if several fields
    have the label, `NotFound` if none has, `Downstream` if the field is disabled.
    """
    fields = [part for part in shown if part.role in FIELD_ROLES and "offscreen" not in part.states]
    # Some toolkits call a box of choices by the one that it stands at.
    named = [part for part in fields if is_label_match(label, part.name) and part.name != part.value]
    named = [part for part in named if part.usable] or named
    exact = [part for part in named if part.name == label]
    found = exact or named or _find_nearest_fields(shown, fields, label)
    if len(found) > 1:
        raise AmbiguousElement(
            f"{len(found)} fields are labelled {label!r}",
            hint="fill in each by execute_accessible with its id; observe_screen shows where they are",
            details={"candidates": [{"id": part.id, "role": part.role, "value": part.value} for part in found]},
        )
    if not found:
        raise NotFound(
            f"no field that shows is labelled {label!r}",
            hint="scroll to it: some programs tell of nothing that is out of view",
            details={"candidates": sorted({part.name for part in fields if part.name and part.usable})},
        )
    if not found[0].usable:
        raise Downstream(
            f"the {found[0].role} of {label!r} is disabled",
            hint="find out what it waits for: a box to tick, another field to fill",
        )
    return found[0]


def _find_nearest_fields(shown: Sequence[UiElement], fields: Sequence[UiElement], label: str) -> list[UiElement]:
    """Return the nearest field for each text that matches the label."""
    back = is_right_to_left(part.name for part in shown)
    found: dict[str, UiElement] = {}
    for said in shown:
        if said.role in ("label", "section", "caption") and is_label_match(label, said.name) and said.rect:
            near = [
                (far, part)
                for part in fields
                if part.rect and (far := _label_distance(said.rect, part.rect, back=back)) < MAX_LABEL_DISTANCE
            ]
            if near:
                nearest = min(near, key=lambda pair: pair[0])[1]
                found[nearest.id] = nearest
    return list(found.values())


def _label_distance(label: Rect, field: Rect, *, back: bool) -> float:
    """Return the pixels from a label to a field after it on its line, or below it; infinite for any other position.

    `back`: lines run to the left.
    """
    line = label.y + label.height / 2
    behind = label.center[0] - field.x - field.width if back else field.x - label.center[0]
    if field.y <= line <= field.y + field.height and behind >= 0:
        return max(0.0, behind - label.width / 2)
    if field.y >= line and field.x <= label.x + label.width and field.x + field.width >= label.x:
        return field.y - label.y - label.height + 1.0
    return float("inf")
