"""Finding and ending processes and all their descendants, using /proc only.

Standard library only, because small programs import this at start. Without /proc, nothing is found.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic, sleep

__all__ = [
    "POLL_S",
    "end_processes",
    "find_descendants",
    "find_marked_processes",
    "find_process_family",
    "is_environment_hidden",
    "read_process",
    "read_process_name",
    "read_process_table",
    "reap_children",
    "terminate_process",
]

POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """A line of the process table. `started` (clock ticks since boot) and `pid` together never name two processes."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    started: int


def read_process(pid: int) -> ProcessInfo | None:
    """Return the process with this id, or None if it does not exist or is not visible to us."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name in parentheses may hold anything, also parentheses and spaces.
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return ProcessInfo(pid, int(fields[1]), int(fields[2]), int(fields[3]), fields[0], int(fields[19]))


def is_alive(pid: int, started: int) -> bool:
    """Return True if the process that had this id at that start time is still running."""
    found = read_process(pid)
    return found is not None and found.started == started and found.state != "Z"


def read_process_table() -> dict[int, ProcessInfo]:
    """Return all running processes by id, without zombies."""
    found = (read_process(pid) for pid in _list_process_ids())
    return {p.pid: p for p in found if p is not None and p.state != "Z"}


def read_process_name(pid: int) -> str:
    """Return the name of a process, or an empty string if it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            return comm.read().strip()
    except OSError:
        return ""


def find_marked_processes(mark: str) -> set[int]:
    """Return the ids of the processes that were started with this NAME=value entry in their environment."""
    sign = mark.encode()
    return {pid for pid, environment in _iter_environments() if sign in environment.split(b"\0")}


def is_environment_hidden(pid: int) -> bool:
    """Return True if a process has overwritten its initial environment.

    Chromium does so to show another command line.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return not any(part.startswith((b"PATH=", b"DISPLAY=")) for part in file.read().split(b"\0"))
    except OSError:
        return False


def _iter_environments() -> Iterator[tuple[int, bytes]]:
    for pid in _list_process_ids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            yield pid, file.read()


def _list_process_ids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return []


def find_descendants(roots: Iterable[int], processes: Mapping[int, ProcessInfo]) -> set[int]:
    """Return the direct and indirect children of the roots, without the roots."""
    roots = set(roots)
    found = set(roots)
    while more := {p.pid for p in processes.values() if p.parent in found} - found:
        found |= more
    return found - roots


def find_ancestors(pid: int, processes: Mapping[int, ProcessInfo]) -> set[int]:
    """Return the ids of a process and its ancestors."""
    found: set[int] = set()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found


def find_process_family(roots: set[int], processes: dict[int, ProcessInfo]) -> set[int]:
    """Return the roots, their descendants, and all members of the sessions and process groups that any of these lead.

    This finds programs that hide their environment, as Chromium's helpers do.
    """
    found = {pid for pid in roots if pid in processes}
    size = -1
    while size != len(found):
        size = len(found)
        found |= {p.pid for p in processes.values() if found.intersection((p.parent, p.group, p.session))}
    return found


def terminate_process(pid: int, started: int, *, patience: float) -> bool:
    """Send SIGTERM to exactly this process, then SIGKILL after `patience` seconds, and wait as long again.

    Returns False if it is still running, or if the system has no pidfd.
    """
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        # From here on the number cannot come to mean another one.
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not is_alive(pid, started):
                return True
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
            deadline = monotonic() + patience
            while is_alive(pid, started) and monotonic() < deadline:
                sleep(POLL_S)
        return not is_alive(pid, started)
    finally:
        os.close(descriptor)


def end_processes(members: Callable[[], set[int]], *, grace: float = 0.7, deadline: float = 3.0) -> bool:
    """End all members, asked for again until none is left: SIGTERM, after `grace` seconds SIGKILL. False when some are left.

    Who was a member once stays one: a program's helpers cannot be told from strangers any more when the program has gone before them.
    """
    began = monotonic()
    seen = _stop_all_members(members)
    told: set[int] = set()
    while True:
        running = read_process_table()
        seen |= {pid: running[pid].started for pid in members() if pid in running}
        seen = {pid: at for pid, at in seen.items() if pid in running and running[pid].started == at}
        waited = monotonic() - began
        if not seen or waited > deadline:
            return not seen
        for pid in seen if waited > grace else seen.keys() - told:
            _send_signal(pid, signal.SIGKILL if waited > grace else signal.SIGTERM)
            # What is stopped acts on nothing but SIGKILL until it goes on.
            _send_signal(pid, signal.SIGCONT)
        told |= seen.keys()
        reap_children()
        sleep(POLL_S)


def _stop_all_members(members: Callable[[], set[int]]) -> dict[int, int]:
    """Stop all members and return their start times by process id.

    A running process could start a child while it is being ended, and we would lose track of that child.
    """
    stopped: dict[int, int] = {}
    while True:
        running = read_process_table()
        new = {pid: running[pid].started for pid in members() if pid in running and pid not in stopped}
        if not new:
            return stopped
        for pid in new:
            _send_signal(pid, signal.SIGSTOP)
        stopped |= new


def reap_children() -> dict[int, int]:
    """Take note of ended children: their wait status by process id."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def _send_signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
