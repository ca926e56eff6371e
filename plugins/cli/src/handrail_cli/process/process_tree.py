"""The processes that a command started, found in /proc: by group, by descent, and by a mark in their environment."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable

from handrail.workers import processes

# Laid into the environment of every command, so that what left its process group can still be told.
MARK_VARIABLE = "HANDRAIL_MARK_PROCESS"
# The lowest bit of the signals in /proc.
SIGHUP_BIT = 1
# Seconds in which a process that has just been started is given its environment.
BECOMING_S = 0.05


def find_process_tree(group: int, *, mark: str | None = None) -> set[int]:
    """Return the live processes of a group, all their descendants and the processes that carry `mark`.

    Empty on a system without /proc.
    """
    table = processes.read_process_table()
    members = {
        pid for pid, entry in table.items() if entry.group == group or (mark is not None and _has_mark(pid, mark))
    }
    members |= processes.find_descendants(members, table)
    members.discard(os.getpid())
    return members


def is_group_alive(group: int) -> bool:
    """Return True if any process of the group is alive; a zombie does not count."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return sys.platform != "linux" or any(entry.group == group for entry in processes.read_process_table().values())


def find_left_running(shell: int, mark: str) -> tuple[int, ...]:
    """Return the processes outside its process group that a shell, now ended, left running.

    They are the processes younger than the shell that carry `mark`. If the system has started no process since the
    shell, no search is needed.
    """
    last = _read_last_pid()
    if last is None or last == shell:
        return ()
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return ()
    # Numbers start again from below at the end of their range.
    younger = [pid for pid in numbers if pid > shell or last < shell]
    ends = time.monotonic() + BECOMING_S
    return tuple(pid for pid in younger if _has_mark_after_exec(pid, mark, ends) and _has_left_group(pid, shell))


def _has_mark_after_exec(pid: int, mark: str, ends: float) -> bool:
    """Return True if the process carries the mark.

    A process in the middle of an exec shows no environment and is checked again until `ends` (monotonic clock).
    """
    while (environ := _read_environ(pid)) == b"" and _is_user_process(pid) and time.monotonic() < ends:
        time.sleep(BECOMING_S / 50)
    return environ is not None and _contains_mark(environ, mark)


def _is_user_process(pid: int) -> bool:
    """Return True for a user process, False for a kernel thread."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False
    return True


def _has_left_group(pid: int, group: int) -> bool:
    entry = processes.read_process(pid)
    return entry is not None and entry.group != group


def pid_exists(pid: int) -> bool:
    """Return True if a process with this pid exists, regardless of its program."""
    return os.path.exists(f"/proc/{pid}")


def filter_alive(pids: Iterable[int], mark: str) -> tuple[int, ...]:
    """Return the processes that are still running and still the same process, by their mark."""
    return tuple(pid for pid in pids if _has_mark(pid, mark))


def _read_last_pid() -> int | None:
    """Return the pid of the process started last by any program; None if the system does not report it."""
    try:
        with open("/proc/loadavg", "rb") as load:
            return int(load.read().split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def send_signal(number: signal.Signals, pids: Iterable[int]) -> None:
    """Signal processes; those that are gone, or are not ours any more, are passed over."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def is_hangup_ignored(pid: int) -> bool:
    """Return True if the process is set to outlive its terminal (`nohup`)."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            line = next((line for line in status if line.startswith("SigIgn:")), "SigIgn: 0")
    except OSError:
        return False
    return bool(int(line.split()[1], 16) & SIGHUP_BIT)


def is_before_exec(pid: int, shell: str) -> bool:
    """Return True if the process may be about to exec another program.

    This applies to a fork of the shell, and to `nohup` before its exec.
    """
    try:
        exe = f"/proc/{pid}/exe"
        return os.path.samefile(exe, shell) or os.path.basename(os.readlink(exe)) == "nohup"
    except OSError:
        return False


def has_window_library(pids: Iterable[int]) -> bool:
    """Return True if any of the processes has loaded a library used to display windows."""
    return any(
        b"/libX11.so" in maps or b"/libxcb.so" in maps or b"/libwayland-client.so" in maps
        for maps in map(_read_maps, pids)
    )


def _read_maps(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/maps", "rb") as maps:
            return maps.read()
    except OSError:
        return b""


def _has_mark(pid: int, mark: str) -> bool:
    environ = _read_environ(pid)
    return environ is not None and _contains_mark(environ, mark)


def _contains_mark(environ: bytes, mark: str) -> bool:
    return f"{MARK_VARIABLE}={mark}".encode() in environ.split(b"\0")


def _read_environ(pid: int) -> bytes | None:
    """Return the environment a process was started with; None if it has ended or cannot be inspected."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return environ.read()
    except OSError:
        return None
