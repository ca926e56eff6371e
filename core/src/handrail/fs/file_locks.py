"""Locks on open files: they hold between processes, and the kernel gives them up when the descriptor is closed or the process ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["lock_open_file", "try_lock"]


def lock_open_file(descriptor: int, *, shared: bool = False) -> None:
    """Lock the open file, waiting for those who hold it; `shared` with all who hold it shared, else alone. Raises OSError where it cannot."""
    _lock_descriptor(descriptor, shared=shared, now=False)


def try_lock(descriptor: int) -> bool:
    """Lock the open file exclusively if it is not locked; return True on success.

    Raises OSError if the file cannot be locked at all.
    """
    return _lock_descriptor(descriptor, shared=False, now=True)


def is_held(file: Path) -> bool:
    """Return True if the file is locked; False also if it does not exist or cannot be opened."""
    try:
        # What lies there may be a link, or a pipe that nobody writes to.
        descriptor = os.open(file, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


if sys.platform == "win32":

    def _lock_descriptor(descriptor: int, *, shared: bool, now: bool) -> bool:
        """Lock with LockFileEx, as `msvcrt.locking` has no shared locks and gives up after ten seconds."""
        import ctypes
        import msvcrt
        from ctypes import wintypes

        at_once, alone, lock_violation = 1, 2, 33
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        handle = wintypes.HANDLE(msvcrt.get_osfhandle(descriptor))
        # OVERLAPPED says where: two pointers, the offset, an event. What is locked there nobody else can read or write, so it is a byte
        # far behind all that is ever written.
        place = (ctypes.c_uint64 * 4)(0, 0, 2**62, 0)
        if kernel.LockFileEx(handle, (0 if shared else alone) | (at_once if now else 0), 0, 1, 0, ctypes.byref(place)):
            return True
        code = ctypes.get_last_error()
        if code == lock_violation:
            return False
        raise ctypes.WinError(code)

else:

    def _lock_descriptor(descriptor: int, *, shared: bool, now: bool) -> bool:
        import fcntl

        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (fcntl.LOCK_NB if now else 0))
        except BlockingIOError:
            return False
        return True
