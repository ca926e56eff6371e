"""Time limit for comparing texts in a thread, which cannot be interrupted from outside."""

from __future__ import annotations

from time import monotonic

from handrail import TimedOut


class TimeLimit:
    """Limit for work in a thread: the work asks now and then whether it may go on."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = monotonic() + seconds

    def stop(self) -> None:
        """Make the work end at its next check, after its result became irrelevant."""
        self._until = 0.0

    def check(self) -> None:
        """Raise `TimedOut` if the time is over."""
        if monotonic() > self._until:
            raise TimedOut(
                f"finding what to change takes longer than {self._seconds:g} s; nothing was written",
                hint="give old_string as it is in the file, and less of it",
            )
