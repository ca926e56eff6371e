"""Limits of a command: by its own process limits, and by a control group where one can be made."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from handrail import Limits

CGROUP_ROOT = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
# How long the last process of a group may take to be gone.
REMOVAL_TIMEOUT_S = 1.0
MAX_FREE = 4
GROUP_PREFIX = "handrail-"
# `ulimit` counts sizes in these.
KILOBYTE, BLOCK = 1024, 512


def wrap_with_limits(argv: Sequence[str], limits: Limits) -> tuple[str, ...]:
    """Wrap a command in limits: /bin/sh sets them before it runs the command."""
    wanted = [
        ("-c", 0),
        # Not the address space, of which some runtimes reserve far more than they use: what is really written to.
        ("-d", None if limits.memory is None else limits.memory // KILOBYTE),
        ("-f", None if limits.file_size is None else limits.file_size // BLOCK),
        ("-t", limits.cpu_seconds),
    ]
    lines = [f"ulimit {flag} {value}" for flag, value in wanted if value is not None]
    if limits.processes is not None:
        # The letter differs between shells.
        lines.append(f"{{ ulimit -u {limits.processes} || ulimit -p {limits.processes}; }} 2>/dev/null")
    return ("/bin/sh", "-c", f'{" && ".join(lines)} || exit 125; exec "$@"', "sh", *argv)


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """A control group for one command. `folders`: one for each hierarchy that it is in."""

    folders: tuple[Path, ...]

    def put(self, pid: int) -> None:
        """Put a process into it, with what it will start."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                (folder / "cgroup.procs").write_text(str(pid))

    def empty(self) -> bool:
        """End what is left in it; whether nothing is any more."""
        deadline = time.monotonic() + REMOVAL_TIMEOUT_S
        while any(_kill_members(folder) for folder in self.folders):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return True

    def remove(self) -> None:
        """Make an end of it."""
        for folder in self.folders:
            _remove_folder(folder)


class ControlGroupPool:
    """Control groups, each used for one command at a time and again for a later one: making one takes as long as starting a program."""

    def __init__(self) -> None:
        self._free: list[tuple[Limits, ControlGroup]] = []
        self._used: dict[ControlGroup, Limits] = {}
        self._possible = True
        self._swept = False
        self._lock = threading.Lock()

    def take(self, limits: Limits) -> ControlGroup | None:
        """Return a group with these limits; None if this process may not create one."""
        with self._lock:
            for at, (kept, free) in enumerate(self._free):
                if kept == limits:
                    del self._free[at]
                    self._used[free] = limits
                    return free
        if not self._possible:
            return None
        if not self._swept:
            self._swept = True
            _remove_stale_groups(limits)
        made = create_control_group(limits)
        self._possible = made is not None
        if made is not None:
            self._used[made] = limits
        return made

    def give_back(self, group: ControlGroup) -> None:
        """Take back the group of a finished command; processes the command left behind are ended."""
        limits = self._used.pop(group)
        with self._lock:
            if group.empty() and len(self._free) < MAX_FREE:
                self._free.append((limits, group))
                return
        group.remove()

    def close(self) -> None:
        """Remove those that are free."""
        with self._lock:
            for _, group in self._free:
                group.remove()
            self._free.clear()


def create_control_group(limits: Limits, *, root: Path = CGROUP_ROOT, own: Path = OWN_CGROUP) -> ControlGroup | None:
    """Create a control group with these limits; None if this process may not."""
    name = f"{GROUP_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    made: list[Path] = []
    for parent, values in _iter_parent_groups(limits, root, own):
        folder = parent / name
        try:
            folder.mkdir()
        except OSError:
            continue
        if all(_write_limit(folder / file, value) for file, value in values):
            made.append(folder)
        else:
            _remove_folder(folder)
    return ControlGroup(tuple(made)) if made else None


def _iter_parent_groups(limits: Limits, root: Path, own: Path) -> Iterator[tuple[Path, Sequence[tuple[str, int]]]]:
    """Yield the groups that new ones can be created in, with the files to set.

    These are in the unified hierarchy or in those of the older kind.
    """
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    places = {controller: path for _, controllers, path in lines for controller in controllers.split(",")}
    unified = (root / "cgroup.controllers").exists()
    if unified and (path := _find_delegated_group(root / places.get("", "/").lstrip("/"), root)) is not None:
        values = [("pids.max", limits.processes), ("memory.max", limits.memory)]
        yield path, [(file, value) for file, value in values if value is not None]
    for controller, file, value in (
        ("pids", "pids.max", limits.processes),
        ("memory", "memory.limit_in_bytes", limits.memory),
    ):
        path = root / controller / places.get(controller, "/").lstrip("/")
        if not unified and controller in places and value is not None and path.is_dir():
            yield path, [(file, value)]


def _find_delegated_group(own: Path, root: Path) -> Path | None:
    """Return the nearest group, upward from our own, in which groups can be created and limited; else None."""
    for path in (own, *own.parents):
        with contextlib.suppress(OSError):
            if {"pids", "memory"} <= set((path / "cgroup.subtree_control").read_text().split()) and os.access(
                path, os.W_OK
            ):
                return path
        if path == root:
            return None
    return None


def _remove_stale_groups(limits: Limits) -> None:
    """Remove the groups of processes that are gone."""
    for parent, _ in _iter_parent_groups(limits, CGROUP_ROOT, OWN_CGROUP):
        for folder in parent.glob(f"{GROUP_PREFIX}*"):
            owner = folder.name[len(GROUP_PREFIX) :].partition("-")[0]
            if owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
                _remove_folder(folder)


def _write_limit(file: Path, value: int) -> bool:
    try:
        file.write_text(str(value))
    except OSError:
        return False
    return True


def _remove_folder(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _kill_members(folder: Path) -> bool:
    """End what is in a group; whether there was anything."""
    try:
        pids = (folder / "cgroup.procs").read_text().split()
    except OSError:
        return False
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(pid), signal.SIGKILL)
    return bool(pids)
