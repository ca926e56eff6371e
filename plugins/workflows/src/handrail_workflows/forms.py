"""The tool `fill_form`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from handrail import Downstream, NotFound, Rect, Run, ToolContext, ToolError, tool
from handrail.words import right_to_left, said_by
from handrail_workflows.dialogs import LINUX
from handrail_workflows.steps import Steps
from handrail_workflows.windows import Part, bring_forward, of_app, parts, windows

# How far a field may be from the label that stands before or above it, pixels.
NEAR = 400
BOXES = frozenset(("check box", "switch", "toggle button"))
FIELDS = frozenset(("text", "password", "spin button", "slider", "combo box", "radio button", *BOXES))


class Filling(BaseModel):
    """What a field is to hold."""

    model_config = ConfigDict(extra="forbid")

    label: Annotated[str, Field(description="As shown.")]
    value: Annotated[str | bool | float, Field(description="Text, number, choice, true or false.")]


@tool(
    layer="workflow",
    title="Fill in a form",
    effects=[Run("steps")],
    platforms=LINUX,
    exclusive="desktop",
    timeout=120,
    loadable=True,
    describe=lambda given: f"Fill in {', '.join(field.label for field in given.fields)}",
)
async def fill_form(
    fields: Annotated[list[Filling], Field(min_length=1, description="Labels and values.")],
    window: Annotated[str | None, Field(description="Title, process or window id. Default: the active window.")] = None,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Fill in fields by their labels and read each back. Returns filled, failed_fields (label, reason) and steps_taken; nothing is submitted."""
    steps = Steps(context)
    filled: list[str] = []
    failed: list[dict[str, str]] = []
    with steps.told():
        if window is not None:
            await bring_forward(steps, of_app(await windows(steps), window)[0])
        for label, value in ((field.label, field.value) for field in fields):
            try:
                await _fill(steps, label, value)
                filled.append(label)
            except ToolError as exc:
                if exc.status != "error":
                    raise
                failed.append({"label": label, "reason": str(exc)})
    result: dict[str, Any] = {"filled": filled, "failed_fields": failed, "steps_taken": steps.taken}
    if not failed:
        return {**result, "effect": "confirmed"}
    return {**result, "status": "error", "note": f"{len(failed)} of {len(fields)} fields were not filled"}


async def _fill(steps: Steps, label: str, value: str | bool | float) -> None:
    field = field_of(await parts(steps), label)
    order: dict[str, Any] = {"action": "set_value", "value": _worded(value)}
    if field.role in BOXES:
        order = {"action": "toggle", "value": _worded(value)}
    elif field.role == "combo box":
        order = {"action": "select", "value": _worded(value)}
    elif field.role == "radio button":
        order = {"action": "select"}
    await steps.take("execute_accessible", element_id=field.id, **order)


def _worded(value: str | bool | float) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


def field_of(shown: Sequence[Part], label: str) -> Part:
    """The field of a label: one that has its name, else the nearest one behind or under a text that says so.

    Behind is to the left where the words of the form go from right to left.
    """
    fields = [part for part in shown if part.role in FIELDS and "offscreen" not in part.states]
    usable = [part for part in fields if part.usable]
    named = [part for part in usable if said_by(label, part.name)]
    if len(named) == 1:
        return named[0]
    if not named and (off := next((part for part in fields if said_by(label, part.name)), None)) is not None:
        raise _disabled(label, off)
    back = right_to_left(part.name for part in shown)
    for said in shown:
        if said.role in ("label", "section", "caption") and said_by(label, said.name) and said.rect:
            near = [
                (far, part)
                for part in fields
                if part.rect and (far := _distance(said.rect, part.rect, back=back)) < NEAR
            ]
            if near:
                nearest = min(near, key=lambda pair: pair[0])[1]
                if not nearest.usable:
                    raise _disabled(label, nearest)
                return nearest
    raise NotFound(
        f"{len(named)} fields are labelled {label!r}" if named else f"no field is labelled {label!r}",
        details={"candidates": sorted({part.name for part in usable if part.name})},
    )


def _disabled(label: str, field: Part) -> Downstream:
    """The error of a field that is the one meant, so that no other may be filled in its place."""
    return Downstream(
        f"the {field.role} of {label!r} is disabled",
        hint="find out what it waits for: a box to tick, another field to fill",
    )


def _distance(label: Rect, field: Rect, *, back: bool) -> float:
    """Pixels from a label to a field behind it on its line, or under it; infinite for any other place. `back`: lines go to the left."""
    line = label.y + label.height / 2
    behind = label.center[0] - field.x - field.width if back else field.x - label.center[0]
    if field.y <= line <= field.y + field.height and behind >= 0:
        return max(0.0, behind - label.width / 2)
    if field.y >= line and field.x <= label.x + label.width and field.x + field.width >= label.x:
        return field.y - label.y - label.height + 1.0
    return float("inf")
