"""The capability `screen` by a platform's own calls."""

from __future__ import annotations

from time import monotonic

from handrail import Frame, OutOfRange, Rect, ServiceContext, Window
from handrail.desktops.worker import Worker
from handrail_gui.geometry import whole
from handrail_gui.native.system import System


class NativeScreen:
    """Pictures, monitors and windows of the person's own desktop."""

    def __init__(self, worker: Worker[System]) -> None:
        self._worker = worker

    async def monitors(self) -> list[Rect]:
        """Every monitor's rectangle in screen pixels, the main one first."""
        return await self._worker.run(_monitors)

    async def capture(self, area: Rect | None = None) -> Frame:
        """A picture of the part of `area` that is on the screen, or of the whole desktop."""
        return await self._worker.run(lambda system: take(system, area))

    async def windows(self) -> list[Window]:
        """The windows of the task list, topmost first."""
        return await self._worker.run(lambda system: system.windowing.windows())

    async def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen and takes clicks, topmost first, with its decoration."""
        return await self._worker.run(lambda system: system.windowing.surfaces())

    async def close(self) -> None:
        """The thread has an owner of its own."""


def take(system: System, area: Rect | None) -> Frame:
    """The part of `area` that is on the screen; `OutOfRange` when none is."""
    screen = whole(_monitors(system))
    shown = screen if area is None else area.intersect(screen)
    if shown.empty:
        raise OutOfRange(
            f"the area {area.corners() if area else []} is not on the screen, which is {screen.corners()}",
        )
    return Frame(shown, system.grab(shown), monotonic())


def _monitors(system: System) -> list[Rect]:
    return [monitor.rect for monitor in system.windowing.monitors()]


async def open_screen(context: ServiceContext) -> NativeScreen:
    """The service for the context's desktop."""
    return NativeScreen(await context.service("system"))
