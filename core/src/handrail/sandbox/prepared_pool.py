"""The prepared sandboxes of a session: set up once, and used again as long as they show what the next command may see."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from handrail.api.sandbox import Bounds, PreparedSandbox

MAX_PREPARED = 2
# The device and inode that a path had; None where there was nothing.
FileIdentity = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class _PreparedEntry:
    """Prepared sandbox and what it shows.

    A mount shows what its path resolved to when it was made, so the entry keeps the `identities` from that time.
    """

    sandbox: PreparedSandbox
    bounds: Bounds
    identities: tuple[FileIdentity, ...]


class PreparedPool:
    """Prepared sandboxes for one session. The first command of a session never waits for one, and a session of one command makes none."""

    def __init__(self) -> None:
        self._prepared: list[_PreparedEntry] = []
        self._asked = False

    def take(self, bounds: Bounds, prepare: Callable[[], PreparedSandbox | None]) -> PreparedSandbox | None:
        """Return a ready sandbox with these bounds, or None if it does not exist yet.

        In the latter case `prepare` may be called to make one. Sandboxes that show anything else are ended.
        """
        if not self._asked:
            self._asked = True
            return None
        now = tuple(_iter_identities(bounds))
        kept: list[_PreparedEntry] = []
        for one in self._prepared:
            fits = one.bounds == bounds and one.identities == now
            busy = one.sandbox.usable and not one.sandbox.ready
            if one.sandbox.usable and (fits or busy):
                kept.append(one)
            else:
                one.sandbox.close()
        self._prepared = kept
        fitting = [one for one in kept if one.bounds == bounds and one.identities == now]
        if (ready := next((one for one in fitting if one.sandbox.ready), None)) is not None:
            return ready.sandbox
        if len(kept) < MAX_PREPARED and (made := prepare()) is not None:
            self._prepared.append(_PreparedEntry(made, bounds, now))
        return None

    def close(self) -> None:
        """End all of them."""
        for one in self._prepared:
            one.sandbox.close()
        self._prepared.clear()


def _iter_identities(bounds: Bounds) -> Iterator[FileIdentity]:
    for path in (*bounds.readable, *bounds.masked, *bounds.shown.values(), bounds.temporary):
        try:
            found = os.lstat(path)
        except OSError:
            yield None
        else:
            yield found.st_dev, found.st_ino
