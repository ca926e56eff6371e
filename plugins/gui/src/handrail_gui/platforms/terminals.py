"""Detection of terminal windows and of the programs that read their keys.

Found in /proc, where a terminal emulator holds the master of a pseudo-terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PTY_MASTERS = ("/dev/ptmx", "/dev/pts/ptmx")
SHELLS_FILE = Path("/etc/shells")
# Shells of that list whose language is not bash's, not even in part.
OTHER_SHELLS = frozenset(("fish", "pwsh", "csh", "tcsh", "elvish", "nu", "xonsh"))
# Programs that do not tell their process id are known by the class of their window.
TERMINAL_CLASS_PART = "term"


@dataclass(frozen=True, slots=True)
class TerminalWindow:
    """A window in which keys go to what runs on a pseudo-terminal.

    `window` is its id, `active` whether it has the focus. `program` is what reads the keys now, with `pid`; empty when that cannot be told: no
    such process, or several terminals in one program. `shell`: that is a shell like bash, run by this user. `cwd`: its folder.
    """

    window: str
    active: bool
    program: str = ""
    pid: int | None = None
    shell: bool = False
    cwd: str = "/"


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """Fields of /proc/PID/stat.

    Among them the terminal (0: none) and the process group that reads its keys (-1: none).
    """

    pid: int
    parent: int
    terminal: int
    reader: int
    name: str


def identify_terminal(window: str, pid: int | None, classes: Sequence[str], *, active: bool) -> TerminalWindow | None:
    """Return the terminal in a window, or None if it is not a terminal."""
    if pid is None or not has_pty_master(pid):
        known = any(TERMINAL_CLASS_PART in name.casefold() for name in classes)
        return TerminalWindow(window, active) if known else None
    readers = {
        found.terminal: found.reader for found in _iterate_descendants(pid) if found.terminal and found.reader > 0
    }
    if len(readers) != 1:
        return TerminalWindow(window, active)
    reader = next(iter(readers.values()))
    program = _read_process_name(reader)
    try:
        mine = os.stat(f"/proc/{reader}").st_uid == os.getuid()
        cwd = os.readlink(f"/proc/{reader}/cwd")
    except OSError:
        return TerminalWindow(window, active, program, reader)
    return TerminalWindow(window, active, program, reader, shell=mine and program in _read_shell_names(), cwd=cwd)


def has_pty_master(pid: int) -> bool:
    """Return True if a process holds the master side of a pseudo-terminal, as a terminal emulator does."""
    try:
        return any(_read_link(link) in PTY_MASTERS for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def _iterate_descendants(pid: int) -> Iterator[ProcessStat]:
    children: dict[int, list[ProcessStat]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (found := _read_process(int(entry))) is not None:
            children.setdefault(found.parent, []).append(found)
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child.pid)
            yield child


def _read_process(pid: int) -> ProcessStat | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name stands in brackets and may hold anything: proc(5).
    before, _, after = text.rpartition(")")
    fields = after.split()
    return ProcessStat(pid, int(fields[1]), int(fields[4]), int(fields[5]), before.partition("(")[2])


def _read_process_name(pid: int) -> str:
    found = _read_process(pid)
    return found.name if found else ""


def _read_shell_names() -> frozenset[str]:
    """Return the names of this system's shells whose language is like bash's."""
    try:
        lines = SHELLS_FILE.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = ["/bin/sh", "/bin/bash"]
    return frozenset(Path(line).name for line in lines if line.startswith("/")) - OTHER_SHELLS


def _read_link(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
