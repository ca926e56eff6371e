"""The sandboxed commands of a session that run, or whose changes were not searched yet, and those of other sessions beside them."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.api.sandbox import Bounds, Confined, PreparedSandbox
from handrail.api.verdict import View
from handrail.errors import NoSandbox
from handrail.sandbox.interface import Sandbox
from handrail.sandbox.quarantine import COARSE_CLOCK_NS, POLL_INTERVAL_S, HostRun, ProcessHold
from handrail.sandbox.shared_runs import SETUP_TIMEOUT_S, FileIdentities, SharedRun, SharedRuns

if TYPE_CHECKING:
    from handrail.sandbox.confinement import Confinement

# What the host and what a sandboxed command writes is told apart by the time: so much lies between, as the clock of files is not ours.
APART_NS = COARSE_CLOCK_NS + 10_000_000
# Where files are bound, one that is replaced on the host is bound no longer.
HAS_BIND_MOUNTS = sys.platform == "linux"
# So many of the places that a command is kept from are watched; each takes a descriptor while it runs.
MAX_BOUND = 200


@dataclass(slots=True)
class StartedCommand:
    """Something that was started in the sandbox, and whether it is over."""

    given: Confinement
    over: bool = False
    # The process of the host that it is, once that is known.
    pid: int | None = None
    # What it is kept from, each open: a number of a file that is gone would be given to another one.
    bound: dict[Path, int] = field(default_factory=dict[Path, int])
    # What of that was replaced while it ran.
    replaced: list[Path] = field(default_factory=list[Path])
    # It ends in another thread.
    lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Open what it is kept from. A file that takes such a place on the host later is not protected."""
        for place in (*self.given.bounds.kept, *self.given.bounds.masked)[:MAX_BOUND]:
            with contextlib.suppress(OSError):
                self.bound[place] = os.open(place, os.O_PATH | os.O_NOFOLLOW)

    def shared(self) -> SharedRun:
        """Return what other sessions need to know of it."""
        bounds = self.given.bounds
        return SharedRun(
            kept=_read_identities(bounds.kept),
            masked=_read_identities(bounds.masked),
            obeyed=frozenset(map(str, self.given.before.autorun)),
            missing=frozenset(str(place) for places in self.given.missing.values() for place in places),
        )

    def look(self) -> bool:
        """Return True if a file that it is kept from was replaced while it ran."""
        with self.lock:
            self.replaced = [place for place, fd in self.bound.items() if not _is_same_file(place, fd)] or self.replaced
            return bool(self.replaced)

    def end(self) -> None:
        """Record that it is over, and changes nothing any more."""
        self.look()
        self.over = True
        self.forget()

    def forget(self) -> None:
        """Close what it was kept from."""
        with self.lock:
            for fd in self.bound.values():
                os.close(fd)
            self.bound.clear()


class StartedCommands:
    """Sandboxed commands of one session.

    `host_runs` are the session's calls that run on the host now. `shared` knows about other sessions; None if nothing
    does.
    """

    def __init__(self, host_runs: Sequence[HostRun], shared: SharedRuns | None) -> None:
        self._host_runs = host_runs
        self._shared = shared
        # Oldest first, until what one left was put aside.
        self._started: dict[int, StartedCommand] = {}
        # Files that were replaced while a command ran which was kept from them, and when that was noticed.
        self._doubted: dict[Path, int] = {}
        # Since when commands may have left something that was not searched for, and whether one began since the workspace was last searched.
        self.first_ns = 0
        self.unsearched = False
        # How many commands that can write have begun.
        self.begun = 0
        # When the last call on the host ended.
        self._host_ended_ns = 0

    @property
    def is_busy(self) -> bool:
        """True while a command runs, or has left what is not looked through yet."""
        return bool(self._started)

    def is_running(self) -> bool:
        """Return True while a command of any session runs in the sandbox in this workspace."""
        return bool(self._pids()) or bool(self.elsewhere())

    def has_host_run(self) -> bool:
        """Return True while any session runs a call in this workspace that excludes sandboxed commands."""
        return any(run.begun for run in self._host_runs) or (self._shared is not None and self._shared.has_host_run())

    def is_held(self) -> bool:
        """Return True while a newly started sandboxed command would be held."""
        return bool(self._host_runs) or self.has_host_run()

    def has_to_wait(self, given: Confinement) -> bool:
        """Return True while a newly started command would be held and could hold what it then waits for."""
        if given.view is not View.READ and 0 <= time.time_ns() - self._host_ended_ns < APART_NS:
            return True
        if any(run.confined is given.traffic for run in self._host_runs):
            return False
        if given.view is View.READ or given.bounds.network:
            own = any(run.begun and run.confined is not None for run in self._host_runs)
            return own or (self._shared is not None and self._shared.runs_alone())
        return self.is_held()

    @property
    def oldest(self) -> Confinement | None:
        """The confinement of the oldest command that still runs or whose changes were not searched yet."""
        return next((one.given for one in self._started.values()), None)

    @property
    def confinements(self) -> list[Confinement]:
        """Return those of the commands that were not searched yet."""
        return [one.given for one in self._started.values()]

    def elsewhere(self) -> list[SharedRun]:
        """Return the commands that run in other sessions in this workspace."""
        return self._shared.others() if self._shared is not None else []

    def following(self, given: Confinement, confined: Confined) -> Confined:
        """Return the command wrapped to record its start and end here too."""
        # The same call may be given more to read or to see: its traffic is what stays the same.
        started = self._started[id(given.traffic)] = StartedCommand(given)
        if HAS_BIND_MOUNTS:
            started.begin()
        self.first_ns = self.first_ns or time.time_ns()
        self.unsearched = True
        self.begun += 1

        def begun(pid: int) -> None:
            started.pid = pid
            if self._shared is not None and self._shared.begin_command(id(given.traffic), pid, started.shared()):
                self._let_wait(given, pid)
            for run in self._host_runs:
                if _is_held_for(given, run):
                    run.unheld = not run.hold.hold([pid]) or run.unheld
            confined.started(pid)

        def over() -> str | None:
            started.end()
            return confined.ended()

        return replace(confined, started=begun, ended=over)

    def _let_wait(self, given: Confinement, pid: int) -> None:
        """Hold a command that begins at the same moment as one of another session on the host."""
        assert self._shared is not None
        if not given.bounds.network:
            hold = ProcessHold()
            hold.hold([pid])
            self._shared.when_free(hold.release)

    def set_up(self, sandbox: Sandbox, confine: Callable[[], Confined]) -> Confined:
        """Have a sandbox made while nothing else runs in one: it could exchange a place for a link at the moment when it is bound."""
        if not HAS_BIND_MOUNTS:
            return confine()
        with self._alone() as alone:
            confined = confine()
            kept = alone.pop_all()

        def begun(pid: int) -> None:
            try:
                confined.started(pid)
            except BaseException:
                # Paused commands have to go on, whatever it was.
                kept.close()
                raise
            _close_after_setup(kept, sandbox, pid)

        def over() -> str | None:
            kept.close()
            return confined.ended()

        return replace(confined, started=begun, ended=over)

    def prepare(self, sandbox: Sandbox, bounds: Bounds) -> PreparedSandbox | None:
        """Have a sandbox for many commands set up while nothing runs in another one; None where none can be."""
        with self._alone() as alone:
            made = sandbox.prepare(bounds)
            if made is not None:
                _close_after_setup(alone.pop_all(), sandbox, made.pid)
        return made

    @contextlib.contextmanager
    def _alone(self) -> Generator[contextlib.ExitStack]:
        """Pause the sandboxed commands of all sessions until what is given is closed. Raises `NoSandbox` where that cannot be done."""
        with contextlib.ExitStack() as stack:
            if self._shared is not None:
                stack.enter_context(self._shared.setting_up())
            hold = ProcessHold()
            if not hold.hold([*self._pids(), *(other.pid for other in self.elsewhere())]):
                raise NoSandbox("nothing was run: sandboxed commands still run, and can be neither paused nor ended")
            stack.callback(self.release, hold)
            yield stack

    def release(self, hold: ProcessHold) -> None:
        """Resume held commands, unless a call still needs them held; its end resumes them then."""
        try:
            needed = self.has_host_run()
        except NoSandbox:
            # What others do cannot be read, and no sandboxed command begins beside it.
            needed = False
        if needed:
            # What others are held for is not held itself.
            for pid in self._running_alone():
                hold.release_below(pid)
            return
        asked = [*self._pids()] if self._host_runs else []
        hold.release(but={*asked, *(self._shared.asking() if self._shared is not None else ())})

    def _running_alone(self) -> list[int]:
        alone = {id(run.confined) for run in self._host_runs if run.begun and run.confined is not None}
        started = list(self._started.items())
        return [one.pid for key, one in started if key in alone and not one.over and one.pid is not None]

    def _pids(self) -> list[int]:
        return [one.pid for one in list(self._started.values()) if not one.over and one.pid is not None]

    def searched(self, given: Confinement) -> None:
        """Forget this command if it has ended, now that its leftovers were quarantined."""
        started = self._started.get(id(given.traffic))
        if started is not None and started.over:
            self._doubt(started)
            del self._started[id(given.traffic)]
            if self._shared is not None:
                self._shared.end_command(id(given.traffic))

    # While something runs on the host

    def hold_own(self, run: HostRun) -> None:
        """Hold this session's commands while the user is prompted about a call on the host."""
        if self._shared is not None:
            self._shared.begin_question(id(run))
        self._wait_until_set_up()
        run.unheld = not run.hold.hold(self._held_for(run))

    def _wait_until_set_up(self) -> None:
        """Wait until the sandboxes of this session's commands are set up.

        A sandbox stopped before that would be ended for taking too long.
        """
        ends = time.monotonic() + SETUP_TIMEOUT_S
        for one in list(self._started.values()):
            while HAS_BIND_MOUNTS and not one.over and one.pid is not None and not one.given.sandbox.is_set_up(one.pid):
                if time.monotonic() > ends:
                    return
                time.sleep(POLL_INTERVAL_S)

    def _held_for(self, run: HostRun) -> list[int]:
        started = [one for one in list(self._started.values()) if not one.over and _is_held_for(one.given, run)]
        return [one.pid for one in started if one.pid is not None]

    def announce(self, run: HostRun) -> bool:
        """Tell other sessions of a call; return False if it has to wait for one of theirs. Takes a moment at most, and no other thread."""
        if self._shared is None:
            return True
        if run.confined is None:
            others = self._shared.begin_host_run(id(run))
        else:
            # A sandbox that another session sets up at this moment has to be whole before it is held.
            others = self._shared.begin_alone(id(run))
        run.elsewhere = others or ()
        return others is not None

    def hold(self, run: HostRun) -> list[Confinement]:
        """Hold everything that runs beside an announced call; return the confinements of this session's commands.

        If a sandbox has full network access, none of this session's commands in it are held for a call on the host,
        which may have to talk to them.
        """
        started = list(self._started.values())
        pids = self._held_for(run)
        running = [other for other in run.elsewhere if other.is_alive]
        run.unheld = not run.hold.hold([*pids, *(other.pid for other in running)]) or run.unheld
        for one in started:
            self._doubt(one)
        self.end_detached(run)
        for other in running:
            self._doubted |= dict.fromkeys(map(Path, other.replaced()), time.time_ns())
            if other.is_detached:
                run.hold.end([other.pid])
        return [one.given for one in started]

    def begin_anew(self) -> None:
        """Look later for what commands leave from now on. They are held, and all was searched before."""
        time.sleep(APART_NS / 1e9)
        self.first_ns = time.time_ns()
        if self._shared is not None and not self._shared.others():
            self._shared.searched(self.first_ns)

    def have_changed_nothing(self, run: HostRun) -> bool:
        """Return True if all that was started in the sandbox was held while a call ran on the host, and nothing was started meanwhile."""
        started = list(self._started.values())
        return (
            not run.unheld
            and self.begun == run.commands_begun
            and all(one.over or _is_held_for(one.given, run) for one in started)
        )

    def over(self, run: HostRun) -> None:
        """Record the end of a call that others were held for, and release them."""
        if run.confined is None:
            self._host_ended_ns = time.time_ns()
        run.hold.end_woken()
        self.end_detached(run)
        if self._shared is None:
            self.release(run.hold)
            return
        for other in self._shared.others():
            if other.is_detached:
                run.hold.end([other.pid])
        self._shared.end_host_run(id(run))
        self.release(run.hold)

    def end_detached(self, run: HostRun) -> None:
        """End sandboxed commands that a protected file no longer protects: on the host, another file took its place."""
        # They may end meanwhile.
        for one in list(self._started.values()):
            if not one.over and one.pid is not None and one.look():
                run.hold.end([one.pid])
                one.forget()
                one.replaced.clear()

    def searched_whole(self, began_ns: int) -> None:
        """Record that all of the workspace was searched for leftovers, starting at `began_ns`."""
        self.unsearched = bool(self._started)
        self.first_ns = began_ns if self._started else 0
        if self._shared is not None:
            self._shared.searched(began_ns)

    def _doubt(self, one: StartedCommand) -> None:
        """Record the files that a command was kept from and may have changed, as they were replaced while it ran."""
        now_ns = time.time_ns()
        one.look()
        self._doubted |= {place: now_ns for place in one.replaced if place in one.given.bounds.kept}

    @property
    def doubted(self) -> list[str]:
        """Files that a sandboxed command may have changed and that were not saved or removed since."""
        for place, since_ns in list(self._doubted.items()):
            if not os.path.lexists(place) or os.lstat(place).st_ctime_ns > since_ns:
                del self._doubted[place]
        return [str(place) for place in self._doubted]

    def close(self) -> None:
        """Remove the session's records when it ends."""
        if self._shared is not None:
            self._shared.close()


def _is_held_for(given: Confinement, run: HostRun) -> bool:
    if run.confined is not None:
        return run.confined is not given.traffic
    return not given.bounds.network


def _close_after_setup(alone: contextlib.ExitStack, sandbox: Sandbox, pid: int) -> None:
    """Close `alone` in a thread once this process has set its sandbox up."""

    def wait() -> None:
        with alone:
            ends = time.monotonic() + SETUP_TIMEOUT_S
            while not sandbox.is_set_up(pid):
                if time.monotonic() > ends:
                    # What runs on could exchange what is not bound yet.
                    ProcessHold().end([pid])
                time.sleep(POLL_INTERVAL_S)

    threading.Thread(target=wait, name="handrail-setup", daemon=True).start()


def _read_identities(places: Iterable[Path]) -> FileIdentities:
    found: dict[str, tuple[int, int]] = {}
    for place in places:
        with contextlib.suppress(OSError):
            status = os.lstat(place)
            found[str(place)] = status.st_dev, status.st_ino
    return found


def _is_same_file(place: Path, fd: int) -> bool:
    """Return True if what is at a place is what this descriptor is open for."""
    try:
        return os.path.samestat(os.lstat(place), os.fstat(fd))
    except OSError:
        return False
