"""Whose calls a desktop is worked by: those of the platform that this runs on."""

from __future__ import annotations

import sys

from handrail import DesktopError, ServiceContext
from handrail.desktops.worker import Worker
from handrail_gui.native.system import System


def begin() -> System:
    """The system of this platform, for the calling thread."""
    if sys.platform == "win32":
        from handrail_gui.win32.system import begin as on_windows

        return on_windows()
    if sys.platform == "darwin":
        from handrail_gui.macos.system import begin as on_macos

        return on_macos()
    raise DesktopError(f"the desktop of {sys.platform} is not worked by its own calls")


async def open_system(context: ServiceContext) -> Worker[System]:
    """The service for the context's desktop: the thread that everything on it is done in."""
    return Worker(f"the desktop {context.desktop.name!r}", begin, lambda system: system.end())
