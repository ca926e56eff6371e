"""Finding and ending every process of a desktop, from /proc alone. Standard library only: the supervisor imports this at start."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic, sleep

# In the environment of everything that is started on a private desktop; the value is the desktop's own token.
MARK = "HANDRAIL_MARK_DESKTOP"

POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Process:
    """A line of the process table. `started` (clock ticks since boot) and `pid` together never name two processes."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    started: int


def process(pid: int) -> Process | None:
    """The process of that id; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The name in parentheses may hold anything, also parentheses and spaces.
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), fields[0], int(fields[19]))


def alive(pid: int, started: int) -> bool:
    """Whether the process that had this id at that time is still running."""
    found = process(pid)
    return found is not None and found.started == started and found.state != "Z"


def table() -> dict[int, Process]:
    """Every running process by its id; dead ones that nobody has waited for are left out."""
    found = (process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {p.pid: p for p in found if p is not None and p.state != "Z"}


def marked(token: str) -> set[int]:
    """The processes that were started with the desktop's token in their environment."""
    sign = f"{MARK}={token}".encode()
    return {pid for pid, environment in _environments() if sign in environment.split(b"\0")}


def hides_its_environment(pid: int) -> bool:
    """Whether a process has written over what it was started with, as Chromium does to show another command line."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return not any(part.startswith((b"PATH=", b"DISPLAY=")) for part in file.read().split(b"\0"))
    except OSError:
        return False


def _environments() -> Iterator[tuple[int, bytes]]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                yield int(name), file.read()


def family(roots: set[int], processes: dict[int, Process]) -> set[int]:
    """The roots, what they started, and the sessions and process groups that any of these leads.

    A program that hides its environment, as Chromium's helpers do, is found this way.
    """
    found = {pid for pid in roots if pid in processes}
    size = -1
    while size != len(found):
        size = len(found)
        found |= {p.pid for p in processes.values() if found.intersection((p.parent, p.group, p.session))}
    return found


def end(members: Callable[[], set[int]], *, grace: float = 0.7, deadline: float = 3.0) -> bool:
    """End all members, asked for again until none is left: SIGTERM, after `grace` seconds SIGKILL. False when some are left.

    Who was a member once stays one: a program's helpers cannot be told from strangers any more when the program has gone before them.
    """
    began = monotonic()
    seen = _stopped(members)
    told: set[int] = set()
    while True:
        running = table()
        seen |= {pid: running[pid].started for pid in members() if pid in running}
        seen = {pid: at for pid, at in seen.items() if pid in running and running[pid].started == at}
        waited = monotonic() - began
        if not seen or waited > deadline:
            return not seen
        for pid in seen if waited > grace else seen.keys() - told:
            _signal(pid, signal.SIGKILL if waited > grace else signal.SIGTERM)
            # What is stopped acts on nothing but SIGKILL until it goes on.
            _signal(pid, signal.SIGCONT)
        told |= seen.keys()
        reap()
        sleep(POLL_S)


def _stopped(members: Callable[[], set[int]]) -> dict[int, int]:
    """All members with their start times, none of them running: what runs may start a child while it is being ended, and lose it to us."""
    stopped: dict[int, int] = {}
    while True:
        running = table()
        new = {pid: running[pid].started for pid in members() if pid in running and pid not in stopped}
        if not new:
            return stopped
        for pid in new:
            _signal(pid, signal.SIGSTOP)
        stopped |= new


def reap() -> dict[int, int]:
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


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
