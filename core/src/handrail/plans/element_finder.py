"""The things that a plan names by what they are, found on the screen as it is now, by the plan's own look."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Protocol, TypeVar, cast

import anyio

from handrail.api.observation import Element, Observation
from handrail.api.result import ToolResult
from handrail.audit.selectors import (
    OBSERVATION_ARGUMENT,
    POINT_ARGUMENTS,
    ElementSelector,
    PointSelector,
    find_front_title,
)
from handrail.errors import HandrailError
from handrail.json_types import is_mapping
from handrail.plans.expressions import fill_variables
from handrail.plans.plan_file import LookCall, PlanStep
from handrail.session.session import Session
from handrail.text import find_similar_texts, fold_text

__all__ = ["StepCaller"]

# Seconds between the first two looks; each time twice as long.
SCREEN_POLL_S = 0.2
MOST_NAMED = 5


class StepCaller(Protocol):
    """Function that makes a step's call.

    `call_id` is a name for the call; it becomes the call's id where the caller may choose one.
    """

    async def __call__(self, name: str, args: Mapping[str, Any], call_id: str, /) -> ToolResult: ...


class ElementNotFound(HandrailError):
    """Raised if what a step names is not on the screen, or is not unique."""


class ElementFinder:
    """Finder of elements on the screen for one run of a plan; each look is a call through the full call path."""

    def __init__(self, session: Session, call: StepCaller, look: LookCall | None) -> None:
        self._session = session
        self._call = call
        self._look = look
        self._looks = 0

    async def found(self, step: PlanStep, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments for what the step names; raises `ElementNotFound` if it does not appear in time."""
        args: dict[str, Any] = {}
        if step.front:
            await self._in_front(str(fill_variables(step.front, variables)))
        for argument, locator in step.find.items():
            args[argument] = (await self._element(_fill_selector(locator, variables))).id
        if step.at is not None:
            args |= await self._point(_fill_selector(step.at, variables))
        return args

    async def picture(self) -> ToolResult | None:
        """Return how the screen looks now, or None if the plan does not say how to look."""
        return await self._seen("") if self._look is not None else None

    async def _in_front(self, title: str) -> None:
        waiting = self._waiting()
        while True:
            seen = self._observation(result := await self._seen(""))
            front = find_front_title(seen) if seen is not None else ""
            if fold_text(title) in fold_text(front):
                return
            if not await waiting():
                raise ElementNotFound(_error_message(result) or f"the window in front is {front!r}, expected {title!r}")

    async def _element(self, locator: ElementSelector) -> Element:
        waiting = self._waiting()
        while True:
            failure, elements = await self._elements(locator.window)
            fitting = [each for each in elements if locator.fits(each)]
            if locator.nth is not None and len(fitting) >= locator.nth:
                return fitting[locator.nth - 1]
            if locator.nth is None and len(fitting) == 1:
                return fitting[0]
            if not await waiting():
                raise ElementNotFound(failure or _describe_mismatch(locator, fitting, elements))

    async def _elements(self, window: str) -> tuple[str, Sequence[Element]]:
        """Return an error message, empty on success, and the elements seen."""
        result = await self._seen(window)
        seen = self._observation(result)
        return (_error_message(result), ()) if seen is None else ("", seen.elements)

    async def _point(self, place: PointSelector) -> dict[str, Any]:
        waiting = self._waiting()
        while (seen := self._observation(result := await self._seen(place.window))) is None or seen.transform is None:
            if not await waiting():
                raise ElementNotFound(_error_message(result) or "the look gave no picture")
        sizes = (seen.transform.width, seen.transform.height)
        given = place.model_dump(exclude_none=True)
        return {OBSERVATION_ARGUMENT: seen.id} | {
            name: min(int(given[name] * size), size - 1)
            for names in POINT_ARGUMENTS
            for name, size in zip(names, sizes, strict=True)
            if name in given
        }

    def _waiting(self) -> Callable[[], Awaitable[bool]]:
        """Return a function that waits, longer each time, and returns True if another look is due."""
        assert self._look is not None
        deadline, pause = monotonic() + self._look.seconds, SCREEN_POLL_S

        async def wait() -> bool:
            nonlocal pause
            if (left := deadline - monotonic()) <= 0:
                return False
            await anyio.sleep(min(pause, left))
            pause *= 2
            return True

        return wait

    async def _seen(self, window: str) -> ToolResult:
        assert self._look is not None
        self._looks += 1
        tool = self._session.listing.known(self._look.tool)
        given = {"window": window} if window and tool is not None and "window" in tool.fields else {}
        return await self._call(self._look.tool, {**self._look.args, **given}, f"look{self._looks}")

    def _observation(self, result: ToolResult) -> Observation | None:
        id = result.get(OBSERVATION_ARGUMENT)
        return self._session.observations.get(id) if isinstance(id, str) else None


P = TypeVar("P", ElementSelector, PointSelector)


def _fill_selector(part: P, variables: Mapping[str, Any]) -> P:
    filled = cast("dict[str, Any]", fill_variables(part.model_dump(exclude_unset=True), variables))
    # A variable may be a number, and what it stands for in a text is its digits.
    texts = {key: str(value) if isinstance(getattr(part, key), str) else value for key, value in filled.items()}
    return type(part).model_validate(texts)


def _error_message(result: ToolResult) -> str:
    error = result.get("error")
    return str(error["message"]) if is_mapping(error) else ""


def _describe_mismatch(locator: ElementSelector, fitting: Sequence[Element], elements: Sequence[Element]) -> str:
    if len(fitting) > 1:
        return f"{len(fitting)} elements have {locator.told()}; say which by `nth`"
    near = find_similar_texts(locator.text, [each.text for each in elements if each.text], most=MOST_NAMED)
    shown = near or [each.text for each in elements if each.text and each.role == locator.role]
    return f"no element has {locator.told()}{_format_alternatives(shown)}"


def _format_alternatives(texts: Iterable[str]) -> str:
    names = list(dict.fromkeys(texts))[:MOST_NAMED]
    return f"; there are {', '.join(map(repr, names))}" if names else ""
