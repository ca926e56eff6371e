"""Descriptors that this process was given by its parent, and that no command should have."""

from __future__ import annotations

import os


def list_inheritable_descriptors() -> tuple[int, ...]:
    """Return the open descriptors, beside the first three, that a program started now would inherit."""
    try:
        return tuple(fd for fd in map(int, os.listdir("/dev/fd")) if fd > 2 and _is_inheritable(fd))
    except OSError:
        return ()


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False
