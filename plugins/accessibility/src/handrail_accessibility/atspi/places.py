"""Finding out what has to be put right of the places that an application tells: see `placing`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handrail import Rect, ToolUnavailable, Window
from handrail_accessibility.atspi.bus import DBUS, Bus, maybe, together
from handrail_accessibility.atspi.nodes import ACCESSIBLE, Node, extents, fetch_node
from handrail_accessibility.atspi.placing import AS_TOLD, Placing, placing, size, told_apart, windows_of
from handrail_accessibility.atspi.roles import State
from handrail_accessibility.atspi.toolkits import toolkit_of

Services = Callable[[str], Awaitable[Any]]
# The path of a pane and of what holds it.
Pane = tuple[str, str]
Boxes = tuple[Rect, Rect]


@dataclass(frozen=True, slots=True)
class Spot:
    """An object that has a place: its path, that of the window that it is in or hangs over, and the pane that it lies in."""

    path: str
    window: str
    pane: Pane | None


@dataclass(frozen=True, slots=True)
class Layout:
    """What is to be put right of each spot in a window, and that window's `Window.id`, empty where it is not known."""

    placings: Mapping[Spot, Placing]
    window_id: str = ""


@dataclass(frozen=True, slots=True)
class Places:
    """Asks the screen and the applications of one desktop."""

    bus: Bus
    services: Services

    async def of(self, window: Node, spots: Iterable[Spot]) -> Layout:
        """Where a window and its spots are. What the window manager does not know, such as an open menu, is as the window that it hangs over."""
        real = await self._real(window, await self._shown())
        placed = await self._of_window(window, real) or AS_TOLD
        spots = list(spots)
        app = window.app
        boxes = {pane: await self._boxes(app, pane) for pane in {spot.pane for spot in spots}}
        found = {spot: _in_pane(placed, boxes[spot.pane]) for spot in spots}
        moved = [spot for spot in spots if found[spot] != placed and _fills(boxes[spot.pane])]
        found |= dict.fromkeys(await self._of_gtk(app, moved), placed)
        return Layout(found, real.id if real else "")

    async def of_one(self, app: str, spot: Spot) -> Placing:
        """What is to be put right for one thing in a window."""
        node = await maybe(fetch_node, self.bus, app, spot.window)
        return AS_TOLD if node is None else (await self.of(node, [spot])).placings[spot]

    async def ids(self, windows: Sequence[Node]) -> list[str]:
        """The `Window.id` of each window, empty where it is not known."""
        shown = await self._shown()
        found = await together(self._real(window, shown) for window in windows)
        return [real.id if real else "" for real in found]

    async def with_id(self, id: str, windows: Sequence[Node]) -> list[Node]:
        """Those windows that have this `Window.id`."""
        shown = await self._shown()
        if all(window.id != id for window in shown):
            return []
        return [window for window, own in zip(windows, await self.ids(windows), strict=True) if own == id]

    async def _of_gtk(self, app: str, spots: Sequence[Spot]) -> list[Spot]:
        """Those that are widgets of GTK 3's own, which know where they are whatever they lie in."""
        answers = await self.bus.calls(app, [(spot.path, ACCESSIBLE, "GetAttributes", "", ()) for spot in spots])
        told = zip(spots, answers, strict=True)
        return [
            spot for spot, answer in told if not isinstance(answer, Exception) and answer[0].get("toolkit") == "gtk"
        ]

    async def _real(self, window: Node, shown: Sequence[Window]) -> Window | None:
        """The window as the screen knows it."""
        active = window.has(State.ACTIVE)
        fitting = windows_of(shown, pid=await self._process(window.app), title=window.name, active=active)
        if len(fitting) <= 1:
            return next(iter(fitting), None)
        toolkit = await toolkit_of(self.bus, window.app)
        # Windows of GTK 4 do not know where they are.
        place = None if toolkit.is_gtk4 else await maybe(extents, self.bus, window)
        return told_apart(fitting, place=place, active=active)

    async def _of_window(self, window: Node, real: Window | None) -> Placing | None:
        if real is None:
            return None
        toolkit = await toolkit_of(self.bus, window.app)
        return placing(real.rect, await maybe(extents, self.bus, window), relative=toolkit.is_gtk4)

    async def _boxes(self, app: str, pane: Pane | None) -> Boxes | None:
        """What a pane says of its place, and what it fills says."""
        if pane is None:
            return None
        inner, outer = await together(self._box(app, path) for path in pane)
        return None if inner is None or outer is None else (inner, outer)

    async def _box(self, app: str, path: str) -> Rect | None:
        node = await maybe(fetch_node, self.bus, app, path)
        return None if node is None else await maybe(extents, self.bus, node)

    async def _shown(self) -> Sequence[Window]:
        try:
            return await (await self.services("screen")).windows()
        # No plugin knows the screen: places are as they are told.
        except ToolUnavailable:
            return ()

    async def _process(self, app: str) -> int | None:
        if app not in self.bus.processes and (
            reply := await maybe(self.bus.call, *DBUS, "GetConnectionUnixProcessID", "s", [app])
        ):
            self.bus.processes[app] = reply[0]
        return self.bus.processes.get(app)


def _in_pane(placed: Placing, boxes: Boxes | None) -> Placing:
    return placed if boxes is None else placed.inside(*boxes)


def _fills(boxes: Boxes | None) -> bool:
    """Whether a pane fills what holds it."""
    return boxes is not None and size(boxes[0]) == size(boxes[1])
