"""Timeouts for what programs display: longer on a machine with more load than its processors can handle."""

from __future__ import annotations

import os
import sys

__all__ = ["scale_timeout"]

# However busy it is, nobody waits longer than this many times.
MAX_SCALE = 3.0


def scale_timeout(seconds: float) -> float:
    """So many seconds of a machine that is not busy."""
    return scale_by_load(seconds, read_load_per_cpu())


def scale_by_load(seconds: float, crowded: float) -> float:
    """Return the seconds multiplied by the load per processor, from 1 up to `MAX_SCALE`."""
    return round(seconds * min(MAX_SCALE, max(1.0, crowded)), 2)


def read_load_per_cpu() -> float:
    """Return the load per processor, averaged over the last minute; 0 if the system does not measure it."""
    if sys.platform == "win32":
        return 0.0
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return 0.0
