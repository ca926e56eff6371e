"""How long to wait for what programs show: longer on a machine that has more to do than its processors can."""

from __future__ import annotations

import os
import sys

# However busy it is, nobody waits longer than this many times.
MOST = 3.0


def patience(seconds: float) -> float:
    """So many seconds of a machine that is not busy."""
    return patient(seconds, crowding())


def patient(seconds: float, crowded: float) -> float:
    """The seconds, times what wants to run at once on each processor."""
    return round(seconds * min(MOST, max(1.0, crowded)), 2)


def crowding() -> float:
    """What wanted to run at once on each processor, on the average of the last minute; 0 where the system does not count it."""
    if sys.platform == "win32":
        return 0.0
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return 0.0
