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
    """The living processes of a group, with all their descendants, and those that carry `mark`. Empty where there is no /proc."""
    table = processes.read_process_table()
    members = {
        pid for pid, entry in table.items() if entry.group == group or (mark is not None and _has_mark(pid, mark))
    }
    members |= processes.find_descendants(members, table)
    members.discard(os.getpid())
    return members


def is_group_alive(group: int) -> bool:
    """Whether any process of the group is left. One that has ended and that nobody asked after does not count."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return sys.platform != "linux" or any(entry.group == group for entry in processes.read_process_table().values())


def find_left_running(shell: int, mark: str) -> tuple[int, ...]:
    """What a shell that has ended left running and that moved out of its group: the processes younger than it that carry `mark`.

    Where the system has started nothing since the shell, there is nothing to look for.
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
    """Whether it carries the mark; one that is just turning into another program shows no environment, and is looked at again."""
    while (environ := _read_environ(pid)) == b"" and _is_user_process(pid) and time.monotonic() < ends:
        time.sleep(BECOMING_S / 50)
    return environ is not None and _contains_mark(environ, mark)


def _is_user_process(pid: int) -> bool:
    """Whether it is one, as the kernel's own threads are not."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return False
    return True


def _has_left_group(pid: int, group: int) -> bool:
    entry = processes.read_process(pid)
    return entry is not None and entry.group != group


def pid_exists(pid: int) -> bool:
    """Whether there is a process of that number, whatever it is."""
    return os.path.exists(f"/proc/{pid}")


def filter_alive(pids: Iterable[int], mark: str) -> tuple[int, ...]:
    """Those of the processes that still run, and are still what they were."""
    return tuple(pid for pid in pids if _has_mark(pid, mark))


def _read_last_pid() -> int | None:
    """The number of the process that was started last, by any program; None where the system does not say."""
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
    """Whether it was told to outlive its terminal (`nohup`)."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            line = next((line for line in status if line.startswith("SigIgn:")), "SigIgn: 0")
    except OSError:
        return False
    return bool(int(line.split()[1], 16) & SIGHUP_BIT)


def is_before_exec(pid: int, shell: str) -> bool:
    """Whether it may be about to turn into another program: a fork of the shell, or `nohup` before it has done its work."""
    try:
        exe = f"/proc/{pid}/exe"
        return os.path.samefile(exe, shell) or os.path.basename(os.readlink(exe)) == "nohup"
    except OSError:
        return False


def has_window_library(pids: Iterable[int]) -> bool:
    """Whether any of them has loaded what programs with windows are made with."""
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
    """The environment that a process was given; None where it is gone, or not to be seen."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return environ.read()
    except OSError:
        return None
