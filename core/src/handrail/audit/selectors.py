"""Selectors: what identifies a thing on the screen after its id is gone, for replayed plans and the audit.

An element's id is valid in one session only. Its name, its role, its window and its position among similar elements
identify it in another session too. A point of a screenshot is described by the element there, or by its position in its
window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from handrail.api.observation import Element, Observation, Observations, Window
from handrail.errors import HandrailError
from handrail.text import fold_text

# What calls say of the screen, and results give, under these names.
ELEMENT_ARGUMENT, OBSERVATION_ARGUMENT = "element_id", "observation_id"
POINT_ARGUMENTS = (("x", "y"), ("to_x", "to_y"))


class PlanPart(BaseModel):
    """A part of a plan: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class ElementSelector(PlanPart):
    """An element by what it is. `window` is a part of its window's title; `nth` says which of several alike, from 1."""

    role: str = ""
    text: str = ""
    automation_id: str = ""
    window: str = ""
    nth: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.role or self.text or self.automation_id):
            raise ValueError("a locator has role, text or automation_id")
        return self

    def fits(self, element: Element) -> bool:
        """Return True if the selector matches the element."""
        return (
            self.role in ("", element.role)
            and self.text in ("", element.text)
            and self.automation_id in ("", element.automation_id)
            and fold_text(self.window) in fold_text(element.window)
        )

    def told(self) -> str:
        """Return the selector as a readable text."""
        return ", ".join(f"{key} {value!r}" for key, value in self.model_dump(exclude_defaults=True).items())


class PointSelector(PlanPart):
    """A point, and for a drag its end, in parts of the window's width and height; of the screen's where no window is named."""

    window: str = ""
    x: float = Field(ge=0, le=1)
    y: float = Field(ge=0, le=1)
    to_x: float | None = Field(default=None, ge=0, le=1)
    to_y: float | None = Field(default=None, ge=0, le=1)


def build_selector(element: Element, seen: Observation | None) -> ElementSelector | None:
    """Return a selector for an element, or None if it has neither name, role nor automation id.

    `seen` is the observation that shows it among other elements.
    """
    if not (element.role or element.text or element.automation_id):
        return None
    alone = ElementSelector(
        role=element.role, text=element.text, automation_id=element.automation_id, window=element.window
    )
    alike = [each.id for each in seen.elements if alone.fits(each)] if seen is not None else []
    nth = alike.index(element.id) + 1 if len(alike) > 1 and element.id in alike else None
    return alone.model_copy(update={"nth": nth})


def find_front_title(seen: Observation) -> str:
    """Return the title of the window that was in front; empty if no window has a title."""
    titled = [window for window in seen.windows if window.title and window.state != "popup"]
    return next((window for window in titled if window.active), titled[0]).title if titled else ""


def describe_targets(args: Mapping[str, Any], takes: Iterable[str], observations: Observations) -> dict[str, Any]:
    """Return what ids and points in the arguments refer to: `{"find": {"element_id": {…}}}`, `{"at": {…}}`, or nothing.

    `takes`: the names of the tool's arguments.
    """
    try:
        if isinstance(id := args.get(ELEMENT_ARGUMENT), str):
            found = build_selector(observations.element(id), observations.showing(id))
            return {"find": {ELEMENT_ARGUMENT: found.model_dump(exclude_defaults=True)}} if found is not None else {}
        if OBSERVATION_ARGUMENT in takes and isinstance(args.get("x"), int) and isinstance(args.get("y"), int):
            return _describe_point(args, ELEMENT_ARGUMENT in takes, observations)
    except HandrailError:
        # What is forgotten or out of range is told by the call itself.
        return {}
    return {}


def _describe_point(args: Mapping[str, Any], by_element: bool, observations: Observations) -> dict[str, Any]:
    seen = observations.get(args.get(OBSERVATION_ARGUMENT))
    if seen.transform is None:
        return {}
    points = [
        seen.transform.to_screen(args[x], args[y])
        for x, y in POINT_ARGUMENTS
        if isinstance(args.get(x), int) and y in args
    ]
    if by_element and len(points) == 1 and (element := _find_named_element(seen, *points[0])) is not None:
        found = build_selector(element, seen)
        assert found is not None
        return {"find": {ELEMENT_ARGUMENT: found.model_dump(exclude_defaults=True)}}
    window = next((each for each in seen.windows if each.rect.contains(*points[0])), None)
    inside = window is not None and bool(window.title) and all(window.rect.contains(*point) for point in points)
    return {
        "at": _build_point_selector(points, window if inside else None, observations.widest() or seen).model_dump(
            exclude_defaults=True
        )
    }


def _find_named_element(seen: Observation, x: int, y: int) -> Element | None:
    """Return the smallest element at a point that is used as one unit and has a name.

    Text fields are left out: in a text, the position of the point matters.
    """
    there = [
        (each.rect.width * each.rect.height, each)
        for each in seen.elements
        if each.rect is not None
        and each.rect.contains(x, y)
        and each.actions
        and each.value is None
        and (each.text or each.automation_id)
    ]
    return min(there, key=lambda found: found[0])[1] if there else None


def _build_point_selector(
    points: Sequence[tuple[int, int]], window: Window | None, whole: Observation
) -> PointSelector:
    assert whole.transform is not None
    area = window.rect if window is not None else whole.transform.screen
    parts = [(round((x - area.x + 0.5) / area.width, 5), round((y - area.y + 0.5) / area.height, 5)) for x, y in points]
    named = {
        name: value
        for names, part in zip(POINT_ARGUMENTS, parts, strict=False)
        for name, value in zip(names, part, strict=True)
    }
    return PointSelector.model_validate({"window": window.title if window is not None else "", **named})


def is_secret_input(args: Mapping[str, Any], observations: Observations) -> bool:
    """Return True if the text will be typed into a field that hides it, as far as was seen."""
    id = args.get(ELEMENT_ARGUMENT)
    try:
        if isinstance(id, str):
            return "password" in observations.element(id).states
    except HandrailError:
        return False
    latest = observations.latest()
    return latest is not None and any({"password", "focused"} <= each.states for each in latest.elements)
