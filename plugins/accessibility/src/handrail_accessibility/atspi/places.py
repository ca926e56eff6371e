"""Finding out what has to be put right of the places that an application tells: see `placing`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from handrail import Rect, ToolUnavailable, Window
from handrail_accessibility.atspi.bus import DBUS, Bus, maybe, together
from handrail_accessibility.atspi.nodes import Node, extents, fetch_node
from handrail_accessibility.atspi.placing import AS_TOLD, Placing, placing, window_of
from handrail_accessibility.atspi.roles import State
from handrail_accessibility.atspi.toolkits import toolkit_of

Services = Callable[[str], Awaitable[Any]]
# The path of a pane and of what holds it.
Pane = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Places:
    """Asks the screen and the applications of one desktop."""

    bus: Bus
    services: Services

    async def of(self, windows: Sequence[Node], panes: Iterable[Pane | None]) -> dict[tuple[str, Pane | None], Placing]:
        """What is to be put right, by window and pane; the windows belong to one application, its pop-ups come after the first.

        What the window manager does not know, such as an open menu, is as the first.
        """
        shown = await self._shown()
        pid = await self._process(windows[0].app)
        first, *rest = await together(self._of_window(window, pid, shown) for window in windows)
        placings = {windows[0].path: first or AS_TOLD}
        placings |= {node.path: found or first or AS_TOLD for node, found in zip(windows[1:], rest, strict=True)}
        moves = {pane: await self._move(windows[0].app, pane) for pane in set(panes)}
        return {(path, pane): placed.moved(*move) for path, placed in placings.items() for pane, move in moves.items()}

    async def of_one(self, app: str, window: str, pane: Pane | None) -> Placing:
        """What is to be put right for one thing in a window."""
        node = await maybe(fetch_node(self.bus, app, window))
        return AS_TOLD if node is None else (await self.of([node], [pane]))[window, pane]

    async def _of_window(self, window: Node, pid: int | None, shown: Sequence[Window]) -> Placing | None:
        real = window_of(shown, pid=pid, title=window.name, active=window.has(State.ACTIVE))
        if real is None:
            return None
        toolkit = await toolkit_of(self.bus, window.app)
        return placing(real.rect, await maybe(extents(self.bus, window)), relative=toolkit.is_gtk4)

    async def _move(self, app: str, pane: Pane | None) -> tuple[int, int]:
        """How far a pane is from what it fills."""
        if pane is None:
            return 0, 0
        inner, outer = await together(self._box(app, path) for path in pane)
        if inner is None or outer is None or (inner.width, inner.height) != (outer.width, outer.height):
            return 0, 0
        return outer.x - inner.x, outer.y - inner.y

    async def _box(self, app: str, path: str) -> Rect | None:
        node = await maybe(fetch_node(self.bus, app, path))
        return None if node is None else await maybe(extents(self.bus, node))

    async def _shown(self) -> Sequence[Window]:
        try:
            return await (await self.services("screen")).windows()
        # No plugin knows the screen: places are as they are told.
        except ToolUnavailable:
            return ()

    async def _process(self, app: str) -> int | None:
        if app not in self.bus.processes and (
            reply := await maybe(self.bus.call(*DBUS, "GetConnectionUnixProcessID", "s", [app]))
        ):
            self.bus.processes[app] = reply[0]
        return self.bus.processes.get(app)
