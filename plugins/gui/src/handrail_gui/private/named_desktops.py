"""Desktops that outlive the command which started them, by name: written down in the ledger of what runs."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handrail import Desktop, DesktopError
from handrail.fs.app_dirs import ensure_private_folder
from handrail.fs.file_locks import lock_open_file
from handrail.text import format_suggestion
from handrail.workers import processes
from handrail.workers.registry import DESKTOP_KIND, ProcessRegistry, RunningProgram
from handrail_gui.private.supervisor_client import STOP_TIMEOUT_S, PrivateDesktop

DESKTOP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
# Words that the setting `desktop` gives another meaning.
RESERVED_NAMES = frozenset({"current", "private"})
LIST_HINT = "`handrail desktop status` lists those that are"


@dataclass(frozen=True, slots=True)
class NamedDesktop:
    """A desktop that was left running; `running` is its supervisor."""

    running: RunningProgram
    display: str
    width: int
    height: int
    environment: dict[str, str]

    @property
    def name(self) -> str:
        return self.running.name

    @property
    def desktop(self) -> Desktop:
        return Desktop(self.name, self.display, environment=self.environment, private=True)

    def line(self) -> dict[str, Any]:
        """Return the line shown by `handrail desktop status`."""
        return {
            "name": self.name,
            "display": self.display,
            "width": self.width,
            "height": self.height,
            "pid": self.running.pid,
            "environment": self.environment,
        }


@dataclass(frozen=True, slots=True)
class NamedDesktops:
    """The running desktops of one user that have names; `state` is the folder of the user's state."""

    state: Path

    def all(self) -> list[NamedDesktop]:
        """Return the running named desktops."""
        return [NamedDesktop(running, **running.details) for running in self._ledger.all(DESKTOP_KIND) if running.alive]

    def find(self, name: str) -> NamedDesktop:
        """Return the running desktop of that name; raise `DesktopError` with suggestions if there is none."""
        found = self._by_name
        if name in found:
            return found[name]
        start = f"start it with `handrail desktop start {name}`" if DESKTOP_NAME.fullmatch(name) else LIST_HINT
        raise DesktopError(
            f"no desktop {name!r} is running{format_suggestion(name, found.keys() | RESERVED_NAMES)}", hint=start
        )

    def start(self, name: str, *, width: int = 1280, height: int = 800) -> NamedDesktop:
        """Start a new desktop that outlives this process."""
        if not DESKTOP_NAME.fullmatch(name) or name in RESERVED_NAMES:
            raise DesktopError(
                f"{name!r} cannot be a desktop's name",
                hint="use letters, digits, '.', '_' and '-', at most 63; 'current' and 'private' are taken",
            )
        with self._alone():
            if any(desktop.name == name for desktop in self.all()):
                raise DesktopError(
                    f"a desktop {name!r} is running already", hint=f"stop it with `handrail desktop stop {name}`"
                )
            started = PrivateDesktop.start(name, width=width, height=height, keep=True)
            try:
                named = _build_named_desktop(started)
                self._ledger.write(named.running)
            except BaseException:
                started.close()
                raise
            started.let_go()
            return named

    def stop(self, name: str) -> None:
        """End the desktop and everything on it, and wait until it is gone; `DesktopError` when it does not go."""
        found = self._by_name
        if name not in found:
            raise DesktopError(f"no desktop {name!r} is running{format_suggestion(name, found)}", hint=LIST_HINT)
        running = found[name].running
        # Where it has to be killed, its guard cleans up behind it.
        if not processes.terminate_process(running.pid, running.started, patience=STOP_TIMEOUT_S):
            raise DesktopError(f"the desktop {name!r} did not end: process {running.pid} is still there")
        self._ledger.remove(running)

    @property
    def _by_name(self) -> dict[str, NamedDesktop]:
        return {desktop.name: desktop for desktop in self.all()}

    @property
    def _ledger(self) -> ProcessRegistry:
        return ProcessRegistry(self.state)

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Serialize commands that start a desktop at the same time."""
        with open(ensure_private_folder(self._ledger.folder) / "lock", "w", encoding="utf-8") as file:
            lock_open_file(file.fileno())
            yield


def _build_named_desktop(started: PrivateDesktop) -> NamedDesktop:
    desktop = started.desktop
    about: dict[str, Any] = {
        "display": desktop.display,
        "width": started.width,
        "height": started.height,
        "environment": dict(desktop.environment),
    }
    running = RunningProgram.of(
        DESKTOP_KIND,
        desktop.name,
        f"the desktop {desktop.name!r}",
        pid=started.process.pid,
        mark=started.mark,
        details=about,
    )
    if not running.alive or desktop.display is None:
        raise DesktopError(f"the desktop {desktop.name!r} ended as soon as it was started")
    return NamedDesktop(running, **about)
