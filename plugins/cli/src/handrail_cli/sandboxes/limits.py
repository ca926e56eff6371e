"""Limits of a command: by its own process limits, and by a control group where one can be made."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from handrail import Limits

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
# How long the last process of a group may take to be gone.
LEAVING_S = 1.0
# `ulimit` counts sizes in these.
KILOBYTE, BLOCK = 1024, 512


def limited(argv: Sequence[str], limits: Limits) -> tuple[str, ...]:
    """The command with limits of its own: what is started through /bin/sh has them before its first step."""
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
class Group:
    """A control group for one command. `folders`: one for each hierarchy that it is in."""

    folders: tuple[Path, ...]

    def take(self, pids: Sequence[int]) -> None:
        """Put processes into it, with what they will start."""
        for folder in self.folders:
            for pid in pids:
                with contextlib.suppress(OSError):
                    (folder / "cgroup.procs").write_text(str(pid))

    def end(self) -> None:
        """End what is left in it, and remove it."""
        for folder in self.folders:
            deadline = time.monotonic() + LEAVING_S
            while not _removed(folder) and time.monotonic() < deadline:
                _kill(folder)
                time.sleep(0.005)


def group(limits: Limits, *, root: Path = ROOT, own: Path = OWN) -> Group | None:
    """A new control group with these limits; None where this process may not make one."""
    name = f"handrail-{os.getpid()}-{secrets.token_hex(4)}"
    made: list[Path] = []
    for parent, values in _parents(limits, root, own):
        folder = parent / name
        try:
            folder.mkdir()
        except OSError:
            continue
        if all(_set(folder / file, value) for file, value in values):
            made.append(folder)
        else:
            _removed(folder)
    return Group(tuple(made)) if made else None


def _parents(limits: Limits, root: Path, own: Path) -> Iterator[tuple[Path, Sequence[tuple[str, int]]]]:
    """The groups that new ones can be made in, with the files to be set: the unified hierarchy, or those of the older kind."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    places = {controller: path for _, controllers, path in lines for controller in controllers.split(",")}
    unified = (root / "cgroup.controllers").exists()
    if unified and (path := _delegated(root / places.get("", "/").lstrip("/"), root)) is not None:
        values = [("pids.max", limits.processes), ("memory.max", limits.memory)]
        yield path, [(file, value) for file, value in values if value is not None]
    for controller, file, value in (
        ("pids", "pids.max", limits.processes),
        ("memory", "memory.limit_in_bytes", limits.memory),
    ):
        path = root / controller / places.get(controller, "/").lstrip("/")
        if not unified and controller in places and value is not None and path.is_dir():
            yield path, [(file, value)]


def _delegated(own: Path, root: Path) -> Path | None:
    """The nearest group from our own up in which new ones can be made and limited."""
    for path in (own, *own.parents):
        with contextlib.suppress(OSError):
            if {"pids", "memory"} <= set((path / "cgroup.subtree_control").read_text().split()) and os.access(
                path, os.W_OK
            ):
                return path
        if path == root:
            return None
    return None


def _set(file: Path, value: int) -> bool:
    try:
        file.write_text(str(value))
    except OSError:
        return False
    return True


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _kill(folder: Path) -> None:
    import signal

    with contextlib.suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(pid), signal.SIGKILL)
