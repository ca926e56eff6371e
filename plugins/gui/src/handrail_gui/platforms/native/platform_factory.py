"""Whose calls a desktop is worked by: those of the platform that this runs on."""

from __future__ import annotations

import sys

from handrail import DesktopError, ServiceContext
from handrail.desktop.thread_worker import ThreadWorker
from handrail_gui.platforms.protocol import NativeSystem


def open_native_system() -> NativeSystem:
    """Open this platform's system for the calling thread."""
    if sys.platform == "win32":
        from handrail_gui.platforms.win32.system import open_win32_system as on_windows

        return on_windows()
    if sys.platform == "darwin":
        from handrail_gui.platforms.macos.system import open_mac_system as on_macos

        return on_macos()
    raise DesktopError(f"the desktop of {sys.platform} is not worked by its own calls")


async def open_system(context: ServiceContext) -> ThreadWorker[NativeSystem]:
    """Create the service for the context's desktop: the thread in which everything on it is done."""
    return ThreadWorker(f"the desktop {context.desktop.name!r}", open_native_system, lambda system: system.end())
