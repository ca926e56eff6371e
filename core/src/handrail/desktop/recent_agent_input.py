"""Time of agents' latest input to the user's screen or browser; a key press just then may be the agent's."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from handrail.errors import HandrailError
from handrail.fs.app_dirs import ensure_private_folder
from handrail.fs.file_locks import lock_open_file, try_lock

# Seconds that a browser may take from a press to what it sends, on a loaded machine.
RECENT_INPUT_S = 5.0


class AgentInputRecord:
    """Kept as one file: who acts holds it locked, and its time is when the last one ended."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @contextmanager
    def made(self) -> Generator[None]:
        """Mark the block as a period of agent input."""
        ensure_private_folder(self._file.parent)
        descriptor = self._opened(os.O_CREAT)
        try:
            lock_open_file(descriptor, shared=True)
            self._touch(descriptor)
            yield
        finally:
            self._touch(descriptor)
            os.close(descriptor)

    def recent(self, *, now: float | None = None) -> bool:
        """Return True if agent input is in progress or was recent. `now`: seconds since 1970."""
        try:
            descriptor = self._opened()
        except FileNotFoundError:
            return False
        try:
            # Of a clock that was set back meanwhile, nothing is waited for.
            return (
                not try_lock(descriptor) or abs((now or time.time()) - os.fstat(descriptor).st_mtime) < RECENT_INPUT_S
            )
        finally:
            os.close(descriptor)

    def _touch(self, descriptor: int) -> None:
        # The open file rather than its name: what was done is done, also where somebody has taken the file away meanwhile.
        os.utime(descriptor if os.utime in os.supports_fd else self._file)

    def _opened(self, flags: int = 0) -> int:
        """Open the record file, which must not be a symlink. Raises `HandrailError` if it cannot be used."""
        safely = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            return os.open(self._file, os.O_RDWR | flags | safely, 0o600)
        except FileNotFoundError:
            raise
        except OSError as exc:
            raise HandrailError(
                f"it cannot be known whether an agent's hands are at work: {self._file} cannot be used: {exc.strerror}",
                hint="take it away; Handrail makes it anew",
            ) from exc
