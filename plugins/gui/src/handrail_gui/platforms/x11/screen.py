"""The capability `screen` on X11."""

from __future__ import annotations

from handrail import Frame, Rect, ServiceContext, Window
from handrail_gui.platforms.x11 import windows
from handrail_gui.platforms.x11.capture import ScreenCamera
from handrail_gui.platforms.x11.connection import X11Connection


class X11Screen:
    """Pictures, monitors and windows of one display."""

    def __init__(self, connection: X11Connection) -> None:
        self._connection = connection
        self._camera = ScreenCamera(connection.name)

    async def monitors(self) -> list[Rect]:
        """Return every monitor's rectangle in screen pixels, the primary one first."""
        return await self._connection.run(windows.list_monitors)

    async def capture(self, area: Rect | None = None) -> Frame:
        """Capture the part of `area` that is on the screen, or the whole desktop."""
        return await self._connection.run(lambda client: self._camera.take(client, area))

    async def windows(self) -> list[Window]:
        """Return the managed windows, topmost first."""
        return await self._connection.run(windows.list_windows)

    async def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen and takes clicks, topmost first, with its decoration."""
        return await self._connection.run(windows.list_surfaces)

    async def close(self) -> None:
        """Free the memory of the picture; the connection is closed by its own service."""
        self._camera.close()


async def open_screen(context: ServiceContext) -> X11Screen:
    """Create the service for the context's desktop."""
    return X11Screen(await context.service("x11"))
