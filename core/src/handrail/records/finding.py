"""The things that a plan names by what they are, found on the screen as it is now, by the plan's own look."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Protocol, TypeVar, cast

import anyio

from handrail.errors import HandrailError
from handrail.plain import is_mapping
from handrail.records.locators import OBSERVATION, POINTS, Locator, Place, front_of
from handrail.records.matching import fill
from handrail.records.plans import Look, Step
from handrail.results.values import ToolResult
from handrail.session import Session
from handrail.vision.observation import Element, Observation
from handrail.words import folded, similar_texts

# Seconds between the first two looks; each time twice as long.
POLL_S = 0.2
MOST_NAMED = 5


class Caller(Protocol):
    """How a step's call is made; `call_id` is a name for it that is the call's where the caller may choose one."""

    async def __call__(self, name: str, args: Mapping[str, Any], call_id: str, /) -> ToolResult: ...


class NotThere(HandrailError):
    """What a step names is not on the screen, or there are several of it."""


class Eyes:
    """Looks at the screen for one run of a plan, each time by a call through the whole path."""

    def __init__(self, session: Session, call: Caller, look: Look | None) -> None:
        self._session = session
        self._call = call
        self._look = look
        self._looks = 0

    async def found(self, step: Step, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments for what the step names. Raises `NotThere` when it does not appear in time."""
        args: dict[str, Any] = {}
        if step.front:
            await self._in_front(str(fill(step.front, variables)))
        for argument, locator in step.find.items():
            args[argument] = (await self._element(_filled(locator, variables))).id
        if step.at is not None:
            args |= await self._point(_filled(step.at, variables))
        return args

    async def picture(self) -> ToolResult | None:
        """How the screen is now; None where the plan does not say how to look."""
        return await self._seen("") if self._look is not None else None

    async def _in_front(self, title: str) -> None:
        waiting = self._waiting()
        while True:
            seen = self._observation(result := await self._seen(""))
            front = front_of(seen) if seen is not None else ""
            if folded(title) in folded(front):
                return
            if not await waiting():
                raise NotThere(_why(result) or f"the window in front is {front!r}, expected {title!r}")

    async def _element(self, locator: Locator) -> Element:
        waiting = self._waiting()
        while True:
            failure, elements = await self._elements(locator.window)
            fitting = [each for each in elements if locator.fits(each)]
            if locator.nth is not None and len(fitting) >= locator.nth:
                return fitting[locator.nth - 1]
            if locator.nth is None and len(fitting) == 1:
                return fitting[0]
            if not await waiting():
                raise NotThere(failure or _told(locator, fitting, elements))

    async def _elements(self, window: str) -> tuple[str, Sequence[Element]]:
        """Why nothing was seen, and what was seen."""
        result = await self._seen(window)
        seen = self._observation(result)
        return (_why(result), ()) if seen is None else ("", seen.elements)

    async def _point(self, place: Place) -> dict[str, Any]:
        waiting = self._waiting()
        while (seen := self._observation(result := await self._seen(place.window))) is None or seen.transform is None:
            if not await waiting():
                raise NotThere(_why(result) or "the look gave no picture")
        sizes = (seen.transform.width, seen.transform.height)
        given = place.model_dump(exclude_none=True)
        return {OBSERVATION: seen.id} | {
            name: min(int(given[name] * size), size - 1)
            for names in POINTS
            for name, size in zip(names, sizes, strict=True)
            if name in given
        }

    def _waiting(self) -> Callable[[], Awaitable[bool]]:
        """Waits a little, longer each time, and says whether to look again."""
        assert self._look is not None
        deadline, pause = monotonic() + self._look.seconds, POLL_S

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
        id = result.get(OBSERVATION)
        return self._session.observations.get(id) if isinstance(id, str) else None


P = TypeVar("P", Locator, Place)


def _filled(part: P, variables: Mapping[str, Any]) -> P:
    filled = cast("dict[str, Any]", fill(part.model_dump(exclude_unset=True), variables))
    # A variable may be a number, and what it stands for in a text is its digits.
    texts = {key: str(value) if isinstance(getattr(part, key), str) else value for key, value in filled.items()}
    return type(part).model_validate(texts)


def _why(result: ToolResult) -> str:
    error = result.get("error")
    return str(error["message"]) if is_mapping(error) else ""


def _told(locator: Locator, fitting: Sequence[Element], elements: Sequence[Element]) -> str:
    if len(fitting) > 1:
        return f"{len(fitting)} elements have {locator.told()}; say which by `nth`"
    near = similar_texts(locator.text, [each.text for each in elements if each.text], most=MOST_NAMED)
    shown = near or [each.text for each in elements if each.text and each.role == locator.role]
    return f"no element has {locator.told()}{_listed(shown)}"


def _listed(texts: Iterable[str]) -> str:
    names = list(dict.fromkeys(texts))[:MOST_NAMED]
    return f"; there are {', '.join(map(repr, names))}" if names else ""
