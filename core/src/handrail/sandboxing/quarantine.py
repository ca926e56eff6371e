"""Before a program runs on the host: hold what still runs in the sandbox, and put aside what sandboxed commands have left for it to obey.

Sandboxed commands are looked through when they end. What still runs then, and what lies where the survey does not look (packages, deep folders),
is looked for here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from handrail.files import known_places, paths
from handrail.running import processes
from handrail.sandboxing import repositories
from handrail.sandboxing.aside import is_closed
from handrail.sandboxing.survey import Names, Survey, is_kept_back, near_names, open_closed

# How much of a workspace is searched. A tree of this size takes some seconds, and is more than a source tree has.
MAX_ENTRIES = 2_000_000
MAX_SEARCH_S = 20.0
# Names of the places that `repositories` looks after by itself.
REPOSITORY = ".git"
# A clock that a file system stamps its changes with may be this much behind ours.
COARSE_CLOCK_NS = 50_000_000
MAX_HOLD_ROUNDS = 50


@dataclass(slots=True)
class Search:
    """A search for places that programs obey and that have changed since a time. `whole` is false if a bound was reached."""

    survey: Survey
    since_ns: int
    whole: bool = True
    found: list[Path] = field(default_factory=list[Path])
    # Folders of this user that could not be listed, as a sandboxed command may have arranged.
    kept_back: list[Path] = field(default_factory=list[Path])

    def look(self, roots: Sequence[Path]) -> None:
        """Search the folders below the roots that the survey does not cover."""
        with contextlib.ExitStack() as opened:
            self._look(roots, opened)

    def _look(self, roots: Sequence[Path], opened: contextlib.ExitStack) -> None:
        ends = time.monotonic() + MAX_SEARCH_S
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
                self.found += self._obeyed(folder, names, near_names(folder, roots))

    def _listed(self, folder: str, roots: Sequence[Path], opened: contextlib.ExitStack) -> tuple[list[str], list[str]]:
        names: list[str] = []
        below: list[str] = []
        try:
            if is_closed(os.stat(folder)):
                open_closed(folder, roots, opened)
            with os.scandir(folder) as entries:
                for entry in entries:
                    names.append(entry.name)
                    if entry.name != REPOSITORY and entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
        except OSError as exc:
            # What cannot be listed cannot be told to be harmless.
            self.whole = False
            if exc.errno in (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG) and is_kept_back(folder):
                self.kept_back.append(Path(folder))
        return names, below

    def _obeyed(self, folder: str, names: Sequence[str], near: Names) -> Iterator[Path]:
        if known_places.is_repository(known_places.REPOSITORY_NAMES.intersection(names)):
            yield from self._if_changed(Path(folder))
        everything = known_places.is_notable(near[-1])
        inside = paths.autorun(PurePosixPath(*near)) is not None
        # In a place that programs obey, what lies at its top counts: the place itself may have been kept.
        around = near[-1:] if inside else near
        for name in names:
            if (everything or known_places.is_notable(name)) and paths.autorun(PurePosixPath(*around, name)):
                yield from self._if_changed(Path(folder, name))

    def _if_changed(self, place: Path) -> Iterator[Path]:
        """Yield a place that may have come from a sandboxed command, unless it is a repository that names no program."""
        if _changed_since(place, self.since_ns) and not (place.name == REPOSITORY and repositories.harmless(place)):
            yield place


def _changed_since(place: Path, since_ns: int) -> bool:
    inside = (place, *(place / name for name in repositories.OBEYED))
    for path in inside:
        with contextlib.suppress(OSError):
            if os.lstat(path).st_ctime_ns >= since_ns - COARSE_CLOCK_NS:
                return True
    return False


class Hold:
    """Processes of running sandboxes, stopped until `release`: meanwhile they change nothing that a program on the host reads.

    `held`: anything was stopped.
    """

    def __init__(self) -> None:
        self._stopped: set[int] = set()
        self.held = False

    def hold(self, pids: Sequence[int]) -> None:
        """Stop these processes and all that they have started."""
        for pid in pids:
            self._stop(pid)
        for _ in range(MAX_HOLD_ROUNDS):
            # One that was just forked is stopped in the next round; a stopped one forks no more.
            table = processes.table()
            living = processes.descendants(set(pids), table) - self._stopped
            if not living:
                return
            for pid in living:
                self._stop(pid)

    def _stop(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGSTOP)
        self._stopped.add(pid)
        self.held = True

    def release(self) -> None:
        """Let them run on."""
        for pid in self._stopped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)
        self._stopped.clear()


@dataclass(slots=True)
class HostRun:
    """What was done for a call that runs on the host: places put aside, whether all was searched, and what is held until it ends."""

    hold: Hold = field(default_factory=Hold)
    aside: Sequence[str] = ()
    whole: bool = True
    # What is still there under names that programs obey. Nothing may run on the host then.
    left: Sequence[str] = ()

    def notes(self) -> Iterator[str]:
        """Yield what the caller should know."""
        if self.hold.held:
            yield "Sandboxed commands that still run were paused while this ran on the host."
        if not self.whole:
            yield (
                "Not all of the workspace could be searched for files that a sandboxed command has left and that programs run unasked: "
                "it is too large, or parts of it cannot be read."
            )
