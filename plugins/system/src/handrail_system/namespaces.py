"""Namespace check: whether this process is isolated from the machine on which it runs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

# The machine's own namespaces have fixed numbers, those of containers never; from the kernel's include/linux/proc_ns.h.
INITIAL_NAMESPACES = {"pid": "pid:[4026531836]", "uts": "uts:[4026531838]"}


def is_isolated(root: Path = Path("/"), *kinds: str) -> bool:
    """Return True if a namespace of one of these kinds (default: pid or uts) is not the machine's own.

    Returns False if that cannot be determined.
    """
    for kind in kinds or INITIAL_NAMESPACES:
        with suppress(OSError):
            if os.readlink(root / "proc/self/ns" / kind) != INITIAL_NAMESPACES[kind]:
                return True
    return False
