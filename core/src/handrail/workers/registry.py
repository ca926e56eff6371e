"""Registry of what Handrail has started and what keeps running: a small file for each, checked against its process.

Code that starts something which may outlive its call records it, and removes the record when it has ended. The next
reader notices what was killed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from handrail.errors import HandrailError
from handrail.fs.app_dirs import MARKER_PREFIX, ensure_private_folder
from handrail.workers import processes

__all__ = ["DESKTOP_KIND", "ProcessRegistry", "RunningProgram"]

REGISTRY_FOLDER = "running"
# The kind of a desktop that stays; its name is the desktop's.
DESKTOP_KIND = "desktop"


@dataclass(frozen=True, slots=True)
class RunningProgram:
    """Running program. `kind` and `name` identify it, `what` describes it for the user.

    `pid` and `started` (clock ticks since boot) identify its process uniquely. `mark` is a NAME=value entry in the
    environment of all its descendants. `prefix` is the Python environment that it was started from. `details` are the
    writer's own.
    """

    kind: str
    name: str
    what: str
    pid: int
    started: int
    mark: str | None = None
    prefix: str = sys.prefix
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(
        cls,
        kind: str,
        name: str,
        what: str,
        *,
        pid: int,
        mark: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> RunningProgram:
        """Return a record of the process as it is now.

        A process that is gone, or that the system does not show, is not `alive`.
        """
        found = processes.read_process(pid)
        return cls(kind, name, what, pid, found.started if found else 0, mark, details=details or {})

    @property
    def alive(self) -> bool:
        """True if its process is running."""
        return processes.is_alive(self.pid, self.started)

    def members(self) -> set[int]:
        """Return the ids of its remaining processes: its own, and those that carry its mark."""
        own = {self.pid} if self.alive else set[int]()
        return (
            own
            if self.mark is None
            else own | (processes.find_marked_processes(self.mark) & processes.read_process_table().keys())
        )


class ProcessRegistry:
    """Registry of one user's running programs; `state` is the user's state directory."""

    def __init__(self, state: Path) -> None:
        self.folder = state / REGISTRY_FOLDER

    def write(self, running: RunningProgram) -> None:
        """Write it down, in the place of what had its kind and name."""
        file = self._file(running)
        partial = ensure_private_folder(self.folder) / f".{file.name}.{os.getpid()}"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as opened:
            opened.write(json.dumps(asdict(running)))
        # It is of no use after the machine has gone down: nothing waits for the disk.
        partial.replace(file)

    def remove(self, running: RunningProgram) -> None:
        """Take it out."""
        self._file(running).unlink(missing_ok=True)

    def all(self, kind: str | None = None) -> list[RunningProgram]:
        """Return the running programs, of one kind or of all, by name, and remove the records of those that are gone.

        Raises `HandrailError` naming a file that Handrail did not write.
        """
        found = (self._read(file) for file in sorted(self.folder.glob(f"{kind or '*'}-*.json")))
        return [running for running in found if running is not None]

    @contextmanager
    def kept(self, running: RunningProgram) -> Generator[None]:
        """Written down inside. Where that cannot be, as in a home that is read-only, it runs all the same."""
        if not running.alive:
            yield
            return
        try:
            self.write(running)
        except OSError:
            yield
            return
        try:
            yield
        finally:
            self.remove(running)

    def _file(self, running: RunningProgram) -> Path:
        return self.folder / f"{running.kind}-{running.name}.json"

    def _read(self, file: Path) -> RunningProgram | None:
        try:
            running = _parse_running(json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, IsADirectoryError) as exc:
            raise HandrailError(f"{file} is not what Handrail writes there", hint="remove it") from exc
        if running.alive or running.members():
            return running
        file.unlink(missing_ok=True)
        return None


def _parse_running(about: dict[str, Any]) -> RunningProgram:
    """Parse a record; raises ValueError if it is not ours.

    Its mark must be one of our variables: by another one, unrelated processes would be found.
    """
    running = RunningProgram(**about)
    numbers, mark = (running.pid, running.started), running.mark
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"{numbers} name no process")
    if mark is not None and not (type(mark) is str and mark.startswith(MARKER_PREFIX) and mark.partition("=")[2]):
        raise ValueError(f"{mark!r} marks no process of ours")
    return running
