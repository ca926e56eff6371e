"""Rate limit for the requests to each host."""

from __future__ import annotations

import math
from collections import deque
from time import monotonic

from handrail import Downstream

WINDOW_S = 60.0


class RateLimitExceeded(Downstream):
    """A host was asked as often as it may be; in a while it can be asked again."""

    retryable = True


class HostRateLimiter:
    """Counts what each host is asked within a minute."""

    def __init__(self) -> None:
        self._asked: dict[str, deque[float]] = {}

    def take(self, host: str, most: int) -> None:
        """Note that a host is asked now; `RateLimitExceeded` when that would be more than `most` times a minute (0: any)."""
        now = monotonic()
        self._asked = {name: times for name, times in self._asked.items() if now - times[-1] < WINDOW_S}
        times = self._asked.setdefault(host, deque())
        while times and now - times[0] >= WINDOW_S:
            times.popleft()
        if most and len(times) >= most:
            wait = math.ceil(WINDOW_S - (now - times[0]))
            raise RateLimitExceeded(
                f"{host!r} was asked {most} times within a minute, which is the limit",
                hint=f"try again in {wait} s; plugins.browser.fetch_per_minute is the limit",
                details={"retry_after_s": wait},
            )
        times.append(now)
