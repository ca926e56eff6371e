"""The capability `desktops`: the person's own desktop, private ones, and those that were left running."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread

from handrail import Desktop, DesktopError, ServiceContext
from handrail_gui.private.named_desktops import NamedDesktops
from handrail_gui.private.supervisor_client import PrivateDesktop

# What stands for the one screen of a platform that has no displays by name.
NATIVE_DISPLAYS = {"win32": "windows", "darwin": "macos"}
# What a program needs to appear on a person's own screen.
SESSION_VARIABLES = (
    "DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "WAYLAND_DISPLAY",
    "XDG_SESSION_TYPE",
)


@dataclass(slots=True)
class LocalDesktops:
    """Desktops on this machine; those it started end with `close`, or with this process."""

    state: Path
    environment: Mapping[str, str]
    _started: list[PrivateDesktop] = field(default_factory=list[PrivateDesktop])

    async def current(self) -> Desktop:
        """Return the user's own desktop; `display` is None without a screen."""
        own = {name: self.environment[name] for name in SESSION_VARIABLES if self.environment.get(name)}
        # Elsewhere a screen needs no variable to be found by.
        return Desktop("current", own.get("DISPLAY") or NATIVE_DISPLAYS.get(sys.platform), environment=own)

    async def start(self, name: str, *, width: int = 1280, height: int = 800) -> Desktop:
        """Start a private desktop that ends with this process; raise `DesktopError` saying what is missing."""

        begun: list[PrivateDesktop] = []

        def begin() -> None:
            begun.append(PrivateDesktop.start(name, width=width, height=height, environment=self.environment))
            self._started.extend(begun)

        # Not abandoned when cancelled: what was started must be known, so that it can be ended.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(begin)
        await anyio.lowlevel.checkpoint()
        return begun[0].desktop

    async def attach(self, name: str) -> Desktop:
        """Return a desktop that `handrail desktop start` left running; raise `DesktopError` with those that are."""
        return NamedDesktops(self.state).find(name).desktop

    async def stop(self, desktop: Desktop) -> None:
        """End a desktop that `start` gave, with everything on it."""
        for started in self._started:
            if started.desktop is desktop:
                self._started.remove(started)
                await anyio.to_thread.run_sync(started.close)
                return
        raise DesktopError(f"the desktop {desktop.name!r} was not started here")

    async def close(self) -> None:
        """End every desktop that was started here."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as group:
                while self._started:
                    group.start_soon(anyio.to_thread.run_sync, self._started.pop().close)


async def open_desktops(context: ServiceContext) -> LocalDesktops:
    """Create the service; opening it starts nothing."""
    environment = context.environment
    return LocalDesktops(context.state, environment)
