"""How long to wait for what programs show: longer on a machine that has more to do than its processors can."""

from __future__ import annotations

import os
import sys

# However busy it is, nobody waits longer than this many times.
MAX_SCALE = 3.0


def scale_timeout(seconds: float) -> float:
    """So many seconds of a machine that is not busy."""
    return scale_by_load(seconds, read_load_per_cpu())


def scale_by_load(seconds: float, crowded: float) -> float:
    """The seconds, times what wants to run at once on each processor."""
    return round(seconds * min(MAX_SCALE, max(1.0, crowded)), 2)


def read_load_per_cpu() -> float:
    """What wanted to run at once on each processor, on the average of the last minute; 0 where the system does not count it."""
    if sys.platform == "win32":
        return 0.0
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return 0.0
