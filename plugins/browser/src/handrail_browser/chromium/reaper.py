"""Program that runs a browser while another process holds its standard input open, and cleans up completely.

Run as a program, with the standard library only: `reaper.py PROFILE keep|remove READS WRITES -- COMMAND…`. The browser
gets the descriptors READS and WRITES as 3 and 4, where `--remote-debugging-pipe` expects them. When standard input is
closed for any reason (including `kill -9` of the process that started it), or the browser ends, all of its descendants
are killed, and its profile is removed if that was requested.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import sys
import time
from contextlib import suppress
from types import FrameType

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
IS_LINUX = sys.platform == "linux"
# How long processes that were killed may take to be gone, in seconds.
KILL_TIMEOUT_S = 5.0


def supervise_browser(argv: list[str]) -> int:
    """Start the browser, wait for its end or ours, and clear up; its exit code."""
    profile, disposal, reads, writes, _, *command = argv
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, _ignore_signal)
    # Whoever started it may be told to stop, and decides for both.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if IS_LINUX:
        # What the browser leaves behind becomes a child of this process, and is found.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    browser = _spawn_browser(command, int(reads), int(writes))
    os.close(int(reads))
    os.close(int(writes))
    code = None
    while code is None:
        ready, _, _ = select.select([0, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            code = _reap_children(browser)
        if 0 in ready and not os.read(0, 4096):
            break
    _kill_all(browser)
    if disposal == "remove":
        _remove_profile(profile)
    return code or 0


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal wakes the loop through its wakeup descriptor."""


def _spawn_browser(command: list[str], reads: int, writes: int) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        if IS_LINUX:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDWR)
        # First out of the way of 3 and 4, wherever they are.
        reads, writes = os.dup(reads), os.dup(writes)
        for target, source in ((0, nowhere), (1, nowhere), (3, reads), (4, writes)):
            os.dup2(source, target, inheritable=True)
        os.execvp(command[0], command)
    finally:
        # The child never returns into the code of its parent.
        os._exit(127)


def _reap_children(browser: int) -> int | None:
    """Return the browser's exit code once it has ended, else None. Other children that have ended are reaped, too."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 1
        if pid == 0:
            return None
        if pid == browser:
            return os.waitstatus_to_exitcode(status)


def _kill_all(browser: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(browser, signal.SIGKILL)
    ends = time.monotonic() + KILL_TIMEOUT_S
    while time.monotonic() < ends:
        for pid in _find_descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                # A moment for the kernel to end them.
                time.sleep(0.005)
        except ChildProcessError:
            return


def _find_descendants() -> list[int]:
    """Return all descendants of this process.

    Empty if they cannot be determined (their process group has been killed by then).
    """
    if not IS_LINUX:
        return []
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file,
            ):
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return list(found - {os.getpid()})


def _remove_profile(profile: str) -> None:
    for _ in range(20):
        shutil.rmtree(profile, ignore_errors=True)
        if not os.path.exists(profile):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(supervise_browser(sys.argv[1:]))
