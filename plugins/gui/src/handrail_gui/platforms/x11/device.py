"""The capability `device` (scope desktop): the screen's lock, and keeping it awake."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from time import monotonic

import anyio

from handrail import Downstream, ServiceContext
from handrail.fs.file_locks import try_lock
from handrail.workers.host_programs import START_FOLDER
from handrail_gui.platforms.x11 import windows
from handrail_gui.platforms.x11.connection import X11Connection

# What locks a screen, best first: the session's manager, then programs of desktops, then programs that only lock.
LOCK_COMMANDS = (
    ("loginctl", "lock-session"),
    ("xdg-screensaver", "lock"),
    ("xscreensaver-command", "-lock"),
    ("i3lock",),
)
LOCK_TIMEOUT_S = 3.0
KEEPER_EXIT_TIMEOUT_S = 5.0
LOCK_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class DesktopDevice:
    """One desktop's device. `folder` is where the process that keeps it awake is known by a file."""

    connection: X11Connection
    environment: Mapping[str, str]
    folder: Path
    name: str

    async def lock(self, command: Sequence[str] | None) -> str:
        """Lock the screen and say by what; `Downstream` when nothing does."""
        path = self.environment.get("PATH")
        known = [command] if command else [way for way in LOCK_COMMANDS if which(way[0], path=path)]
        for way in known:
            if await self._locks(way):
                return f"the screen is locked by {way[0]}"
        tried = ", ".join(way[0] for way in known) or "none is installed"
        raise Downstream(
            f"the screen was not locked (tried: {tried})",
            hint="install i3lock, or name what locks it: [plugins.gui] lock_command = [...]",
        )

    async def _locks(self, way: Sequence[str]) -> bool:
        """Return True if the command locks the screen: from then on, a program takes all keyboard input."""
        try:
            process = _start_detached(way, self.environment)
        except OSError:
            return False
        deadline = monotonic() + LOCK_TIMEOUT_S
        while monotonic() < deadline:
            if await self.connection.run(windows.is_keyboard_grabbed):
                # A program that locks lives until somebody unlocks; nobody waits for it here.
                process.returncode = process.poll() or 0
                return True
            if process.poll() not in (None, 0):
                return False
            await anyio.sleep(LOCK_POLL_S)
        process.kill()
        process.wait()
        return False

    async def keep_awake(self) -> str:
        """Keep the screen and the machine awake until `let_sleep`, also when this process has ended."""
        if self._keeper() is not None:
            return "it is kept awake already"
        null = subprocess.DEVNULL
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        argv = [sys.executable, "-P", "-m", "handrail_gui.platforms.x11.keep_awake", self.name, str(self._file)]
        done = await anyio.run_process(
            argv,
            env=dict(self.environment),
            cwd=START_FOLDER,
            stdin=null,
            stdout=null,
            stderr=null,
            check=False,
            start_new_session=True,
        )
        if done.returncode or self._keeper() is None:
            raise Downstream("the screen cannot be kept awake: the X server has no screen saver extension")
        return "it stays awake until keep_awake_off"

    async def let_sleep(self) -> str:
        """Let it sleep again."""
        keeper = self._keeper()
        if keeper is None:
            return "nothing kept it awake"
        os.kill(keeper, signal.SIGTERM)
        with anyio.fail_after(KEEPER_EXIT_TIMEOUT_S):
            while self._keeper() is not None:
                await anyio.sleep(LOCK_POLL_S)
        return "it may sleep again"

    @property
    def _file(self) -> Path:
        return self.folder / f"{self.name.replace('/', '_').replace(':', 'x')}.lock"

    def _keeper(self) -> int | None:
        """Return the id of the process that keeps the desktop awake, or None.

        That process holds a lock on its file, so a stale id is not mistaken for it.
        """
        try:
            with self._file.open("rb") as file:
                if try_lock(file.fileno()):
                    return None
        except FileNotFoundError:
            return None
        with contextlib.suppress(ValueError):
            return int(self._file.read_text(encoding="ascii"))
        return None

    async def close(self) -> None:
        """Do nothing; a separate process keeps the desktop awake."""


def _start_detached(argv: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    null = subprocess.DEVNULL
    return subprocess.Popen(
        argv, env=dict(environment), cwd=START_FOLDER, stdin=null, stdout=null, stderr=null, start_new_session=True
    )


async def open_device(context: ServiceContext) -> DesktopDevice:
    """Create the service for the context's desktop."""
    desktop = context.desktop
    # Programs that lock take a variable that is set to nothing for a Wayland session.
    environment = {name: value for name, value in {**context.environment, **desktop.environment}.items() if value}
    return DesktopDevice(await context.service("x11"), environment, context.state / "awake", str(desktop.display))
