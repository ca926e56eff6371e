"""Finding out what has to be put right of the places that an application tells: see `compute_transform`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handrail import Rect, ToolUnavailable, Window
from handrail_accessibility.atspi.bus import DBUS_DAEMON, AccessibilityBus, call_or_none, gather_results
from handrail_accessibility.atspi.coordinate_transform import (
    IDENTITY_TRANSFORM,
    CoordinateTransform,
    compute_transform,
    disambiguate_window,
    find_process_windows,
    rect_size,
)
from handrail_accessibility.atspi.nodes import ACCESSIBLE_INTERFACE, AtSpiNode, fetch_extents, fetch_node
from handrail_accessibility.atspi.roles import AtSpiState
from handrail_accessibility.atspi.toolkits import fetch_toolkit

ServiceLookup = Callable[[str], Awaitable[Any]]
# The path of a pane and of what holds it.
PanePath = tuple[str, str]
PaneBoxes = tuple[Rect, Rect]


@dataclass(frozen=True, slots=True)
class PlacedObject:
    """An object that has a place: its path, that of the window that it is in or hangs over, and the pane that it lies in."""

    path: str
    window: str
    pane: PanePath | None


@dataclass(frozen=True, slots=True)
class WindowLayout:
    """Coordinate transform of each object in a window, and that window's `Window.id`, empty if unknown."""

    placings: Mapping[PlacedObject, CoordinateTransform]
    window_id: str = ""


@dataclass(frozen=True, slots=True)
class TransformResolver:
    """Asks the screen and the applications of one desktop."""

    bus: AccessibilityBus
    services: ServiceLookup

    async def of(self, window: AtSpiNode, spots: Iterable[PlacedObject]) -> WindowLayout:
        """Return the layout of a window and its objects.

        A window unknown to the window manager, such as an open menu, gets the transform of the window it hangs over.
        """
        real = await self._real(window, await self._shown())
        placed = await self._of_window(window, real) or IDENTITY_TRANSFORM
        spots = list(spots)
        app = window.app
        boxes = {pane: await self._boxes(app, pane) for pane in {spot.pane for spot in spots}}
        found = {spot: _transform_in_pane(placed, boxes[spot.pane]) for spot in spots}
        moved = [spot for spot in spots if found[spot] != placed and _is_container_filled(boxes[spot.pane])]
        found |= dict.fromkeys(await self._of_gtk(app, moved), placed)
        return WindowLayout(found, real.id if real else "")

    async def of_one(self, app: str, spot: PlacedObject) -> CoordinateTransform:
        """Return the coordinate transform for one object in a window."""
        node = await call_or_none(fetch_node, self.bus, app, spot.window)
        return IDENTITY_TRANSFORM if node is None else (await self.of(node, [spot])).placings[spot]

    async def ids(self, windows: Sequence[AtSpiNode]) -> list[str]:
        """Return the `Window.id` of each window, empty if unknown."""
        shown = await self._shown()
        found = await gather_results(self._real(window, shown) for window in windows)
        return [real.id if real else "" for real in found]

    async def with_id(self, id: str, windows: Sequence[AtSpiNode]) -> list[AtSpiNode]:
        """Return the windows that have this `Window.id`."""
        shown = await self._shown()
        if all(window.id != id for window in shown):
            return []
        return [window for window, own in zip(windows, await self.ids(windows), strict=True) if own == id]

    async def _of_gtk(self, app: str, spots: Sequence[PlacedObject]) -> list[PlacedObject]:
        """Return the objects that are GTK 3's own widgets, which know their position whatever contains them."""
        answers = await self.bus.calls(
            app, [(spot.path, ACCESSIBLE_INTERFACE, "GetAttributes", "", ()) for spot in spots]
        )
        told = zip(spots, answers, strict=True)
        return [
            spot for spot, answer in told if not isinstance(answer, Exception) and answer[0].get("toolkit") == "gtk"
        ]

    async def _real(self, window: AtSpiNode, shown: Sequence[Window]) -> Window | None:
        """Return the screen's record of the window, or None."""
        active = window.has(AtSpiState.ACTIVE)
        fitting = find_process_windows(shown, pid=await self._process(window.app), title=window.name, active=active)
        if len(fitting) <= 1:
            return next(iter(fitting), None)
        toolkit = await fetch_toolkit(self.bus, window.app)
        # Windows of GTK 4 do not know where they are.
        place = None if toolkit.is_gtk4 else await call_or_none(fetch_extents, self.bus, window)
        return disambiguate_window(fitting, place=place, active=active)

    async def _of_window(self, window: AtSpiNode, real: Window | None) -> CoordinateTransform | None:
        if real is None:
            return None
        toolkit = await fetch_toolkit(self.bus, window.app)
        return compute_transform(
            real.rect, await call_or_none(fetch_extents, self.bus, window), relative=toolkit.is_gtk4
        )

    async def _boxes(self, app: str, pane: PanePath | None) -> PaneBoxes | None:
        """Return the rectangles reported by a pane and by its container."""
        if pane is None:
            return None
        inner, outer = await gather_results(self._box(app, path) for path in pane)
        return None if inner is None or outer is None else (inner, outer)

    async def _box(self, app: str, path: str) -> Rect | None:
        node = await call_or_none(fetch_node, self.bus, app, path)
        return None if node is None else await call_or_none(fetch_extents, self.bus, node)

    async def _shown(self) -> Sequence[Window]:
        try:
            return await (await self.services("screen")).windows()
        # No plugin knows the screen: places are as they are told.
        except ToolUnavailable:
            return ()

    async def _process(self, app: str) -> int | None:
        if app not in self.bus.processes and (
            reply := await call_or_none(self.bus.call, *DBUS_DAEMON, "GetConnectionUnixProcessID", "s", [app])
        ):
            self.bus.processes[app] = reply[0]
        return self.bus.processes.get(app)


def _transform_in_pane(placed: CoordinateTransform, boxes: PaneBoxes | None) -> CoordinateTransform:
    return placed if boxes is None else placed.inside(*boxes)


def _is_container_filled(boxes: PaneBoxes | None) -> bool:
    """Return True if a pane fills its container."""
    return boxes is not None and rect_size(boxes[0]) == rect_size(boxes[1])
