"""UI Automation as its interfaces behave, over trees that are written down: what was not asked for in the request is not in the cache.

The trees are those of programs of Windows as Microsoft's Inspect shows them, written down by hand.
"""

# Names are the interfaces' own.
# ruff: noqa: N802

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handrail_accessibility.uia.interfaces import UiaCacheRequest, UiaElement, UiaElementArray
from handrail_accessibility.uia.properties import UiaProperty

CHILDREN, DESCENDANTS = 2, 4


class Gone(Exception):
    """What comtypes raises as COMError."""


@dataclass(slots=True)
class Thing:
    """An object of a program, and how its provider behaves. `slow`: it takes as many milliseconds. `hangs`: it answers once that is set."""

    properties: dict[UiaProperty, Any]
    children: list[Thing] = field(default_factory=list["Thing"])
    patterns: dict[int, Any] = field(default_factory=dict[int, Any])
    slow: float = 0.0
    gone: bool = False
    hangs: threading.Event | None = None


@dataclass(slots=True)
class Request:
    """IUIAutomationCacheRequest."""

    TreeScope: int = 1
    TreeFilter: Any = None
    properties: set[int] = field(default_factory=set[int])

    def AddProperty(self, property_id: int, /) -> int:
        self.properties.add(property_id)
        return 0


@dataclass(slots=True)
class Several:
    """IUIAutomationElementArray."""

    things: Sequence[Told]

    @property
    def Length(self) -> int:
        return len(self.things)

    def GetElement(self, index: int, /) -> UiaElement:
        return self.things[index]


@dataclass(slots=True)
class Told:
    """IUIAutomationElement with what a request has put into its cache."""

    world: World
    thing: Thing
    cache: Mapping[int, Any] = field(default_factory=dict[int, Any])
    cached: tuple[Told, ...] | None = None

    def BuildUpdatedCache(self, request: UiaCacheRequest, /) -> UiaElement:
        return self.world.told(self.thing, request)

    def GetCachedPropertyValue(self, property_id: int, /) -> Any:
        if property_id not in self.cache:
            raise AssertionError(f"property {property_id} was not asked for: it would raise on Windows")
        return self.cache[property_id]

    def GetCachedChildren(self) -> UiaElementArray | None:
        assert self.cached is not None, "the request did not ask for children: it would raise on Windows"
        return Several(self.cached) if self.cached else None

    def GetCurrentPattern(self, pattern_id: int, /) -> Any:
        return self.thing.patterns.get(pattern_id)

    def SetFocus(self) -> int:
        self.world.check(self.thing)
        self.world.focus(self.thing)
        return 0


@dataclass(slots=True)
class World:
    """IUIAutomation over the windows of a desktop, by their handles. `calls` counts what goes to other programs."""

    windows: dict[int, Thing]
    ConnectionTimeout: int = 2000
    TransactionTimeout: int = 20000
    ControlViewCondition: Any = "control view"
    calls: int = 0

    def CreateCacheRequest(self) -> UiaCacheRequest:
        return Request()

    def CreatePropertyCondition(self, property_id: int, value: Any, /) -> Any:
        return property_id, value

    def CreateAndCondition(self, one: Any, other: Any, /) -> Any:
        return one, other

    def ElementFromHandleBuildCache(self, window: Any, request: UiaCacheRequest, /) -> UiaElement:
        if window not in self.windows:
            raise Gone("no such window")
        return self.told(self.windows[window], request)

    def told(self, thing: Thing, request: UiaCacheRequest) -> Told:
        """One call to another program, which takes as long as what it tells of, and is given up at the limit."""
        self.calls += 1
        assert isinstance(request, Request)
        self.check(thing)
        assert request.TreeFilter == ("control view", (UiaProperty.OFFSCREEN.value, False))
        for each in _within(thing, request.TreeScope):
            if each.hangs is not None:
                each.hangs.wait()
        if sum(each.slow for each in _within(thing, request.TreeScope)) > self.TransactionTimeout:
            raise Gone("timed out")
        return self._cached(thing, request, request.TreeScope)

    def check(self, thing: Thing) -> None:
        if thing.gone:
            raise Gone("no such object")

    def focus(self, thing: Thing) -> None:
        for root in self.windows.values():
            for each in _within(root, DESCENDANTS):
                each.properties[UiaProperty.FOCUSED] = each is thing

    def _cached(self, thing: Thing, request: Request, scope: int) -> Told:
        cache = {number: thing.properties.get(UiaProperty(number)) for number in request.properties}
        below = scope if scope & DESCENDANTS else 1
        shown = [child for child in thing.children if not child.properties.get(UiaProperty.OFFSCREEN)]
        children = tuple(self._cached(child, request, below) for child in shown) if scope & 6 else None
        return Told(self, thing, cache, children)


def _within(thing: Thing, scope: int) -> Iterator[Thing]:
    yield thing
    if scope & 6:
        for child in thing.children:
            yield from _within(child, scope if scope & DESCENDANTS else 1)
