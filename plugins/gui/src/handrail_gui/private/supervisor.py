"""Supervisor process that owns a private desktop and always ends it.

    python -P -m handrail_gui.private.supervisor

It reads JSON lines from standard input and writes JSON lines to standard output. The first line is the order
(`DesktopOrder`); it answers `{"display", "environment", "pids", "width", "height"}` when everything is ready, or
`{"error"}`. After that, `{"run": …}` starts a program whose end is reported as `{"exit": code}`. The desktop ends when
the input does or the owner dies, unless the order says `keep`; on SIGTERM; and when its X server or session bus dies.
A second process, the guard, only waits for this one's death, and cleans up if this one was killed.
Standard library only, so that it starts quickly and stays small.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any

from handrail.workers import processes
from handrail_gui.private.desktop_services import DesktopServices, format_mark
from handrail_gui.private.display_access import list_client_pids
from handrail_gui.private.process_spawn import (
    PR_SET_CHILD_SUBREAPER,
    ProgramSpec,
    StartFailed,
    set_process_property,
    spawn_program,
)

# How often its folder is removed, if it comes back.
MAX_REMOVALS = 50

# A desktop without these is none.
VITAL_PROGRAMS = ("Xvfb", "dbus-daemon")


@dataclass(frozen=True, slots=True)
class DesktopOrder:
    """The order in the first input line.

    `owner` is the process whose death ends the desktop; with `keep`, no process's death does.
    """

    token: str
    width: int
    height: int
    owner: int | None
    keep: bool


@dataclass(slots=True)
class DesktopSupervisor:
    """A desktop's parts, what runs beside them, and how everything ends."""

    order: DesktopOrder
    parts: DesktopServices
    guard: int
    pending: bytes
    wake: int = -1
    ending: bool = False
    programs: set[int] = field(default_factory=set[int])

    def serve(self) -> None:
        """Wait for orders, deaths and signals until the desktop is to end."""
        watched = select.poll()
        watched.register(self.wake, select.POLLIN)
        if not self.order.keep:
            watched.register(0, select.POLLIN)
        if self.order.owner is not None and not self.order.keep:
            with contextlib.suppress(ProcessLookupError):
                watched.register(os.pidfd_open(self.order.owner), select.POLLIN)
        self._obey(b"")
        while not self.ending:
            for descriptor, _ in watched.poll():
                if descriptor == self.wake:
                    os.read(self.wake, 4096)
                    self._note_deaths()
                elif descriptor == 0 and (chunk := os.read(0, 65536)):
                    self._obey(chunk)
                else:
                    self.ending = True

    def hear_signals(self) -> None:
        """Make `wake` readable after a child's death or SIGTERM.

        Called before anyone learns of the desktop, because they may end it at once.
        """
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore_signal)
        signal.signal(signal.SIGTERM, self._end)
        # Whoever died before the handler was set is found then.
        os.write(writing, b"\0")
        self.wake = reading

    def _end(self, *_: object) -> None:
        self.ending = True

    def _note_deaths(self) -> None:
        for pid, status in processes.reap_children().items():
            if pid in self.programs:
                write_message({"exit": os.waitstatus_to_exitcode(status)})
            if pid in (self.parts.pids[name] for name in VITAL_PROGRAMS):
                self.ending = True

    def _obey(self, chunk: bytes) -> None:
        *lines, self.pending = (self.pending + chunk).split(b"\n")
        for line in lines:
            self._run(**json.loads(line)["run"])

    def _run(self, argv: list[str], cwd: str, environment: dict[str, str], stdio: tuple[int, int, int]) -> None:
        """Start a program in the owner's session, so that keys pressed in a terminal reach it."""
        pid = spawn_program(
            ProgramSpec(argv, {**environment, **self.parts.environment}, stdio, cwd=cwd, detached=False)
        )
        for descriptor in stdio:
            os.close(descriptor)
        self.programs.add(pid)
        write_message({"pid": pid})

    def _hidden(self) -> set[int]:
        """Return the programs on the screen whose environment cannot be read.

        Other programs without a mark are guests on the screen, such as our owner.
        """
        display = self.parts.environment.get("DISPLAY")
        try:
            found = list_client_pids(display.removeprefix(":"), timeout=0.5) if display else set[int]()
        except OSError:
            return set()
        return {pid for pid in found if processes.is_environment_hidden(pid)}

    def clean(self) -> None:
        """End every process of the desktop, the servers last, and remove its folder."""
        servers = {*self.parts.pids.values()}
        spared = {self.guard, os.getpid(), *([self.order.owner] if self.order.owner else [])}
        hidden = self._hidden() - spared

        def programs() -> set[int]:
            running = processes.read_process_table()
            ours = {pid for pid, p in running.items() if p.parent == os.getpid()} | processes.find_marked_processes(
                format_mark(self.order.token)
            )
            ours |= hidden
            return processes.find_process_family(ours - servers - spared, running) - servers - spared

        processes.end_processes(programs)
        clean_up_desktop(self.order.token, self.parts.folder, spared=spared)
        os.kill(self.guard, signal.SIGKILL)
        processes.reap_children()


def _ignore_signal(*_: object) -> None:
    """Do nothing; installing this handler lets the signal wake up the waiting poll."""


def clean_up_desktop(token: str, folder: Path, *, spared: set[int]) -> None:
    """End every process that bears the desktop's mark, with what it started, and remove the desktop's folder."""
    processes.end_processes(
        lambda: (
            processes.find_process_family(
                processes.find_marked_processes(format_mark(token)), processes.read_process_table()
            )
            - spared
        )
    )
    # Somebody may still write into it for a moment.
    for _ in range(MAX_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        sleep(processes.POLL_S)


def start_guard(token: str, folder: Path) -> int:
    """Start a process that cleans up once this one is dead; return its id."""
    watched = os.pidfd_open(os.getpid())
    guard = os.fork()
    if guard:
        os.close(watched)
        return guard
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    held = os.dup2(watched, 3) if watched != 3 else watched
    # The owner learns of the supervisor's end by its pipes: nobody else may hold them.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.closerange(4, 1024)
    select.select([held], [], [])
    clean_up_desktop(token, folder, spared={os.getpid()})
    os._exit(0)


def write_message(message: dict[str, Any]) -> None:
    """Write a JSON line for the owner, who may be gone."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")


def read_order() -> tuple[DesktopOrder, bytes]:
    """Read the first line of the input; return it with what came after it."""
    told = b""
    while b"\n" not in told:
        chunk = os.read(0, 65536)
        if not chunk:
            raise StartFailed("the owner was gone before it said what it wants")
        told += chunk
    line, _, rest = told.partition(b"\n")
    return DesktopOrder(**json.loads(line)), rest


def disable_fd_inheritance() -> None:
    """Let no server inherit what the owner passed for a program: a pipe of its would stay open as long as they run."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            os.set_inheritable(int(name), False)


def read_log_tail(folder: Path) -> str:
    """Return the last lines that the servers wrote, for an error message."""
    with contextlib.suppress(OSError):
        lines = (folder / "log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " | ".join(lines[-4:])
    return ""


def run_supervisor() -> int:
    """Start the desktop, serve until its end, and leave nothing behind."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    disable_fd_inheritance()
    order, rest = read_order()
    set_process_property(PR_SET_CHILD_SUBREAPER, 1)
    folder = Path(tempfile.mkdtemp(prefix="handrail-desktop-"))
    guard = start_guard(order.token, folder)
    parts = DesktopServices(folder, order.token, order.width, order.height, dict(os.environ))
    supervisor = DesktopSupervisor(order, parts, guard, rest)
    supervisor.hear_signals()
    try:
        parts.start()
        size = {"width": order.width, "height": order.height}
        write_message(
            {"display": parts.environment["DISPLAY"], "environment": parts.environment, "pids": parts.pids, **size}
        )
        supervisor.serve()
    except StartFailed as exc:
        told = read_log_tail(folder)
        write_message({"error": f"{exc}: {told}" if told else str(exc)})
        return 1
    finally:
        supervisor.clean()
    return 0


if __name__ == "__main__":
    sys.exit(run_supervisor())
