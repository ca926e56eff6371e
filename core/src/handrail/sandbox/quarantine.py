"""Preparation for programs on the host: hold sandboxed processes and quarantine files that programs would obey.

Changes by sandboxed commands are searched when the commands end. This module handles commands that still run, and files
where the survey does not look (packages, deep directories).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from handrail.fs import path_resolution, sensitive_paths
from handrail.sandbox import repositories
from handrail.sandbox.leftovers import is_aside, is_folder_closed
from handrail.sandbox.survey import (
    FileIdentity,
    PathNames,
    WorkspaceSurvey,
    get_last_names,
    is_folder_kept_back,
    open_closed_folder,
)
from handrail.workers import processes

if TYPE_CHECKING:
    from handrail.sandbox.shared_runs import SharedRun

# How much of a workspace is searched. A tree of this size takes some seconds, and is more than a source tree has.
MAX_ENTRIES = 2_000_000
MAX_SEARCH_S = 20.0
# Names of the places that `repositories` looks after by itself.
GIT_FOLDER = ".git"
# A clock that a file system stamps its changes with may be this much behind ours.
COARSE_CLOCK_NS = 50_000_000
# How long processes may take to stop, and to end where they do not.
HOLD_TIMEOUT_S = 5.0
END_TIMEOUT_S = 5.0
POLL_INTERVAL_S = 0.002
# States of a thread that runs only when another one wakes it, or not again.
STOPPED_STATES = ("T", "t", "Z", "X")
# Where in the kernel a thread waits for the child that it has lent its memory to.
FORK_PATTERN = re.compile(r"fork|clone")


@dataclass(slots=True)
class QuarantineSearch:
    """Search for paths that programs obey and that have changed since a given time.

    `whole` is False if a limit was reached. What the survey covers is checked from `covered_since_ns` on, except for
    paths that were `known` then; it is not checked at all if that is 0.
    """

    survey: WorkspaceSurvey
    since_ns: int
    covered_since_ns: int = 0
    known: frozenset[str] = frozenset()
    most_s: float = MAX_SEARCH_S
    whole: bool = True
    found: list[Path] = field(default_factory=list[Path])
    # Folders of this user that could not be listed, as a sandboxed command may have arranged.
    kept_back: list[Path] = field(default_factory=list[Path])

    def look(self, roots: Sequence[Path]) -> None:
        """Search the folders below the roots that the survey does not cover."""
        with contextlib.ExitStack() as opened:
            self._look(roots, opened)

    def _look(self, roots: Sequence[Path], opened: contextlib.ExitStack) -> None:
        ends = time.monotonic() + self.most_s
        waiting = [str(root) for root in roots]
        entries = 0
        while waiting:
            folder = waiting.pop()
            names, below = self._listed(folder, roots, opened)
            entries += len(names)
            if entries > MAX_ENTRIES or time.monotonic() > ends:
                self.whole = False
                return
            waiting += below
            if not self.survey.covers(folder):
                self.found += self._obeyed(folder, names, get_last_names(folder, roots), self.since_ns)
            elif self.covered_since_ns:
                near = get_last_names(folder, roots)
                found = self._obeyed(folder, names, near, self.covered_since_ns)
                self.found += (place for place in found if str(place) not in self.known)

    def _listed(self, folder: str, roots: Sequence[Path], opened: contextlib.ExitStack) -> tuple[list[str], list[str]]:
        names: list[str] = []
        below: list[str] = []
        try:
            if is_folder_closed(os.stat(folder)):
                open_closed_folder(folder, roots, opened)
            with os.scandir(folder) as entries:
                for entry in entries:
                    names.append(entry.name)
                    if not entry.is_dir(follow_symlinks=False):
                        continue
                    if entry.name != GIT_FOLDER:
                        below.append(entry.path)
                    else:
                        self.found += repositories.iter_leading_elsewhere(Path(entry.path), self._has_changed)
        except OSError as exc:
            # What cannot be listed cannot be told to be harmless.
            self.whole = False
            if exc.errno in (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG) and is_folder_kept_back(folder):
                self.kept_back.append(Path(folder))
        return names, below

    def _obeyed(self, folder: str, names: Sequence[str], near: PathNames, since_ns: int) -> Iterator[Path]:
        if sensitive_paths.is_repository(sensitive_paths.REPOSITORY_NAMES.intersection(names)):
            yield from _iter_if_changed(Path(folder), since_ns)
        everything = sensitive_paths.is_notable(near[-1])
        inside = path_resolution.describe_autorun(PurePosixPath(*near)) is not None
        # In a place that programs obey, what lies at its top counts: the place itself may have been kept.
        around = near[-1:] if inside else near
        for name in names:
            if (everything or sensitive_paths.is_notable(name)) and path_resolution.describe_autorun(
                PurePosixPath(*around, name)
            ):
                place = Path(folder, name)
                if not is_aside(place):
                    yield from _iter_if_changed(place, since_ns)

    def _has_changed(self, place: Path) -> bool:
        try:
            return os.lstat(place).st_ctime_ns >= self.since_ns - COARSE_CLOCK_NS
        except OSError:
            return False


def _iter_if_changed(place: Path, since_ns: int) -> Iterator[Path]:
    """Yield a place that may have come from a sandboxed command, unless it is a repository that names no program."""
    if _is_changed_since(place, since_ns) and not (
        place.name == GIT_FOLDER and repositories.is_harmless_repository(place)
    ):
        yield place


def _is_changed_since(place: Path, since_ns: int) -> bool:
    inside = (place, *(place / name for name in repositories.OBEYED_NAMES))
    for path in inside:
        with contextlib.suppress(OSError):
            if os.lstat(path).st_ctime_ns >= since_ns - COARSE_CLOCK_NS:
                return True
    return False


class ProcessHold:
    """Processes of running sandboxes, stopped until `release`: meanwhile they change nothing that a program on the host reads.

    `held`: anything was stopped. `ended`: some woke one another, and were ended. `woken`: some ran while they were to be stopped.
    """

    def __init__(self) -> None:
        # With what they are, where that can be told. Others may have stopped what is below them before.
        self._stopped: dict[int, processes.ProcessInfo | None] = {}
        # How often each of their threads had been switched to once they were still, by the process that was asked for.
        self._switches: dict[int, Mapping[str, Sequence[str]] | None] = {}
        self.held = False
        self.ended = False
        self.woken = False

    def hold(self, pids: Sequence[int]) -> bool:
        """Stop these processes and all that they have started; end them where they do not stop. Return False if they do neither."""
        if sys.platform == "win32":
            return True
        if sys.platform != "linux":
            for pid in pids:
                self._stop(pid)
            return True
        self.end_woken()
        self.held = self.held or bool(pids)
        self._stopped |= {pid: processes.read_process(pid) for pid in pids}
        deadline = time.monotonic() + HOLD_TIMEOUT_S
        while time.monotonic() < deadline:
            if _are_still(pids):
                self._switches |= {pid: _count_thread_switches([pid]) for pid in pids}
                return True
            for pid in _list_process_tree(pids):
                self._stop(pid)
            time.sleep(POLL_INTERVAL_S)
        return self.end([pid for pid in pids if not _are_still([pid])])

    def end(self, pids: Sequence[int]) -> bool:
        """End these processes and all that they have started. Return False if some are still there after a time."""
        deadline = time.monotonic() + END_TIMEOUT_S
        self.ended = self.ended or bool(pids)
        while living := [pid for pid in _list_process_tree(pids) if not _is_over(pid)]:
            if time.monotonic() > deadline:
                return False
            for pid in living:
                _send_signal(pid, signal.SIGKILL)
            time.sleep(POLL_INTERVAL_S)
        return True

    def end_woken(self) -> None:
        """End those that have run or ended since they were still: they may have changed what a program on the host reads."""
        for pid, switches in list(self._switches.items()):
            if _count_thread_switches([pid]) != switches:
                self.woken = True
                self.end([pid])
                del self._switches[pid]

    def _stop(self, pid: int) -> None:
        self._stopped[pid] = processes.read_process(pid)
        _send_signal(pid, signal.SIGSTOP)
        self.held = True

    def release(self, *, but: Collection[int] = ()) -> None:
        """Let them run on, with all that they have started, `but` those that somebody else keeps stopped, with all that these have started."""
        kept = set(_list_process_tree([*but])) if but else frozenset[int]()
        for pid, known in self._stopped.items():
            if pid in kept:
                continue
            if known is None:
                _send_signal(pid, signal.SIGCONT)
            elif processes.is_alive(pid, known.started):
                for each in _list_process_tree([pid]):
                    if each not in kept:
                        _send_signal(each, signal.SIGCONT)
        self._stopped.clear()
        self._switches.clear()

    def release_below(self, pid: int) -> None:
        """Let one of them run on, with all that it has started."""
        if pid in self._stopped:
            for each in _list_process_tree([pid]):
                _send_signal(each, signal.SIGCONT)
                self._stopped.pop(each, None)


def _are_still(pids: Sequence[int]) -> bool:
    """Return True if none of these processes or their descendants can run until something outside wakes them.

    Two passes must find the same threads, all stopped, with no context switches in between, and no process may have
    been started on this machine meanwhile. Otherwise there could be others: a process that starts its successor and
    exits appears in no list.
    """
    started = _read_last_started_id()
    found = _count_thread_switches(pids)
    return found is not None and found == _count_thread_switches(pids) and started == _read_last_started_id()


def _read_last_started_id() -> str:
    """Return the id of the process or thread that was started last."""
    with open("/proc/loadavg", encoding="ascii") as file:
        return file.read().split()[-1]


def _list_process_tree(pids: Sequence[int]) -> list[int]:
    """Return the ids of these processes and of all that came from them, those that are there."""
    found = list(pids)
    for pid in found:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
    return found


def _count_thread_switches(pids: Sequence[int]) -> Mapping[str, Sequence[str]] | None:
    """Return how often each thread was switched to and from; None where one is not stopped."""
    found: dict[str, Sequence[str]] = {}
    for pid in _list_process_tree(pids):
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8", errors="replace") as file:
                    lines = dict(line.split(":", 1) for line in file.read().splitlines())
                if lines["State"].split()[0] not in STOPPED_STATES and not _is_waiting_for_child(pid, thread):
                    return None
                found[thread] = (lines["voluntary_ctxt_switches"], lines["nonvoluntary_ctxt_switches"])
        except FileNotFoundError:
            # It is over. What it has started is found with another parent by the next look.
            continue
        except (OSError, KeyError):
            return None
    return found


def _is_waiting_for_child(pid: int, thread: str) -> bool:
    """Return True if a thread has lent its memory to a stopped child (`vfork`).

    Nothing wakes the thread until the child continues.
    """
    folder = f"/proc/{pid}/task/{thread}"
    try:
        # Empty or 0 where it may not be read.
        where = Path(folder, "wchan").read_text(encoding="ascii")
        children = [int(child) for child in Path(folder, "children").read_text(encoding="ascii").split()]
    except OSError:
        return False
    if where not in ("", "0") and FORK_PATTERN.search(where) is None:
        return False
    own = _read_memory_map(pid)
    return own is not None and any(_read_memory_map(child) == own and _is_stopped(child) for child in children)


def _read_memory_map(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
    except OSError:
        return None


def _is_stopped(pid: int) -> bool:
    found = processes.read_process(pid)
    return found is not None and found.state in ("T", "t")


def _is_over(pid: int) -> bool:
    found = processes.read_process(pid)
    return found is None or found.state == "Z"


def _send_signal(pid: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, sign)


@dataclass(slots=True, eq=False)
class HostRun:
    """Call during which no other sandboxed command runs: on the host, or in a sandbox that may change a repository.

    It records what was done for the call: the paths quarantined, whether everything was searched, and what is held
    until the call ends.
    """

    # The traffic of a sandboxed call that changes a repository; None for a call on the host.
    confined: object = None
    # Whether a person is or was asked about the call, and whether it has begun: before, only the commands of its own session are held.
    asked: bool = False
    begun: bool = False
    # Records of other sessions' commands, as they were when it began.
    elsewhere: Sequence[SharedRun] = ()
    hold: ProcessHold = field(default_factory=ProcessHold)
    aside: Sequence[str] = ()
    whole: bool = True
    # What is still there under names that programs obey. Nothing may run on the host then.
    left: Sequence[str] = ()
    # What programs obey, as it was when all was searched, while sandboxed commands were held that still have to be looked after.
    obeyed: Mapping[Path, FileIdentity] | None = None
    # How many commands had begun in the sandbox by then.
    commands_begun: int = 0
    # Sandboxed commands that go on, and could neither be paused nor ended. Nothing may run on the host then either.
    unheld: bool = False

    def notes(self) -> Iterator[str]:
        """Yield what the caller should know."""
        if self.hold.woken:
            yield (
                "Sandboxed commands that were to be paused have run or ended meanwhile, and were ended: "
                "what this call read in the workspace may have been changed by them."
            )
        elif self.hold.held:
            yield f"Sandboxed commands that still run were paused until this {'was over' if self.confined else 'had run on the host'}."
        if self.hold.ended:
            yield "Sandboxed commands that still ran were ended: they woke one another, or what they may not change was replaced."
        if not self.whole:
            yield (
                "Not all of the workspace could be searched for files that a sandboxed command has left and that programs run unasked: "
                "it is too large, or parts of it cannot be read."
            )
