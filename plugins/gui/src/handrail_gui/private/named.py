"""Desktops that outlive the command which started them, by name: small JSON files, checked against the process they speak of."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from handrail import Desktop, DesktopError
from handrail.config.places import private_folder, write_private
from handrail.files.locks import lock
from handrail_gui.private import processes
from handrail_gui.private.client import END_S, PrivateDesktop

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
# Words that the setting `desktop` gives another meaning.
TAKEN = frozenset({"current", "private"})


@dataclass(frozen=True, slots=True)
class NamedDesktop:
    """A desktop that was left running. `pid` and `started` (clock ticks since boot) name its supervisor."""

    name: str
    pid: int
    started: int
    display: str
    width: int
    height: int
    environment: dict[str, str]

    @property
    def alive(self) -> bool:
        return processes.alive(self.pid, self.started)

    @property
    def desktop(self) -> Desktop:
        return Desktop(self.name, self.display, environment=self.environment, private=True)

    def line(self) -> dict[str, Any]:
        """What `handrail desktop status` says of it."""
        return {
            "name": self.name,
            "display": self.display,
            "width": self.width,
            "height": self.height,
            "pid": self.pid,
            "environment": self.environment,
        }


@dataclass(frozen=True, slots=True)
class NamedDesktops:
    """The running desktops of one user that have names; `folder` is where their files are."""

    folder: Path

    def all(self) -> list[NamedDesktop]:
        """Those that are running, by name; files of others are removed."""
        found = (self._read(file) for file in sorted(self.folder.glob("*.json")))
        return [desktop for desktop in found if desktop is not None]

    def find(self, name: str) -> NamedDesktop:
        """The running desktop of that name; `DesktopError` names those that are."""
        running = self.all()
        for desktop in running:
            if desktop.name == name:
                return desktop
        names = ", ".join(desktop.name for desktop in running) or "none"
        raise DesktopError(
            f"no desktop {name!r} is running; running: {names}", hint="start it with `handrail desktop start NAME`"
        )

    def start(self, name: str, *, width: int = 1280, height: int = 800) -> NamedDesktop:
        """A new desktop that goes on after this process."""
        if not NAME.fullmatch(name) or name in TAKEN:
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
                named = _named(started)
                write_private(self._file(name), json.dumps(asdict(named)))
            except BaseException:
                started.close()
                raise
            started.let_go()
            return named

    def stop(self, name: str) -> None:
        """End the desktop and everything on it, and wait until it is gone; `DesktopError` when it does not go."""
        desktop = self.find(name)
        with contextlib.suppress(ProcessLookupError):
            os.kill(desktop.pid, signal.SIGTERM)
        if not _gone(desktop):
            # Its guard cleans up behind it.
            with contextlib.suppress(ProcessLookupError):
                os.kill(desktop.pid, signal.SIGKILL)
            if not _gone(desktop):
                raise DesktopError(f"the desktop {name!r} did not end: process {desktop.pid} is still there")
        self._file(name).unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _read(self, file: Path) -> NamedDesktop | None:
        try:
            desktop = NamedDesktop(**json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as exc:
            raise DesktopError(f"{file} is not what `handrail desktop start` writes", hint="remove it") from exc
        if desktop.alive:
            return desktop
        file.unlink(missing_ok=True)
        return None

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Two commands that start a desktop at once take turns."""
        with open(private_folder(self.folder) / "lock", "w", encoding="utf-8") as file:
            lock(file.fileno())
            yield


def _gone(desktop: NamedDesktop) -> bool:
    """Whether it ends within `END_S` seconds."""
    deadline = monotonic() + END_S
    while desktop.alive and monotonic() < deadline:
        sleep(processes.POLL_S)
    return not desktop.alive


def _named(started: PrivateDesktop) -> NamedDesktop:
    found = processes.process(started.process.pid)
    if found is None or started.desktop.display is None:
        raise DesktopError(f"the desktop {started.desktop.name!r} ended as soon as it was started")
    return NamedDesktop(
        started.desktop.name,
        found.pid,
        found.started,
        started.desktop.display,
        started.width,
        started.height,
        dict(started.desktop.environment),
    )
