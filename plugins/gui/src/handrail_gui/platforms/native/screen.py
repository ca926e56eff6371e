"""The capability `screen` by a platform's own calls."""

from __future__ import annotations

from time import monotonic

from handrail import Frame, OutOfRange, Rect, ServiceContext, Window
from handrail.desktop.thread_worker import ThreadWorker
from handrail_gui.platforms.geometry import bounding_rect
from handrail_gui.platforms.protocol import NativeSystem


class NativeScreen:
    """Pictures, monitors and windows of the person's own desktop."""

    def __init__(self, worker: ThreadWorker[NativeSystem]) -> None:
        self._worker = worker

    async def monitors(self) -> list[Rect]:
        """Return every monitor's rectangle in screen pixels, the main one first."""
        return await self._worker.run(_monitor_rects)

    async def capture(self, area: Rect | None = None) -> Frame:
        """Capture the part of `area` that is on the screen, or the whole desktop."""
        return await self._worker.run(lambda system: capture_area(system, area))

    async def windows(self) -> list[Window]:
        """Return the windows of the task list, topmost first."""
        return await self._worker.run(lambda system: system.windowing.windows())

    async def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen and takes clicks, topmost first, with its decoration."""
        return await self._worker.run(lambda system: system.windowing.surfaces())

    async def close(self) -> None:
        """Do nothing; the thread is closed by its own service."""


def capture_area(system: NativeSystem, area: Rect | None) -> Frame:
    """Capture the part of `area` that is on the screen; raise `OutOfRange` if none is."""
    screen = bounding_rect(_monitor_rects(system))
    shown = screen if area is None else area.intersect(screen)
    if shown.empty:
        raise OutOfRange(
            f"the area {area.corners() if area else []} is not on the screen, which is {screen.corners()}",
        )
    return Frame(shown, system.grab(shown), monotonic())


def _monitor_rects(system: NativeSystem) -> list[Rect]:
    return [monitor.rect for monitor in system.windowing.monitors()]


async def open_screen(context: ServiceContext) -> NativeScreen:
    """Create the service for the context's desktop."""
    return NativeScreen(await context.service("system"))
