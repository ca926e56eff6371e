"""Supervised program: it ends together with the process that started it, however that ends, and leaves nothing."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio

from handrail.workers.host_programs import START_FOLDER

REAPER_PATH = Path(__file__).with_name("reaper.py")


@dataclass(frozen=True, slots=True)
class ReaperProcess:
    """The process that keeps a program; the end of its standard input is the program's end."""

    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def gone(self) -> bool:
        """Return True if the program has ended."""
        return self.process.poll() is not None

    async def end(self, closing: Callable[[], Awaitable[None]]) -> None:
        """End the program, with `closing` for what speaks to it; when this returns, no process of it is left."""
        # Also where the call that ends it was stopped.
        with anyio.CancelScope(shield=True):
            assert self.process.stdin is not None
            with suppress(OSError):
                self.process.stdin.close()
            try:
                await closing()
            finally:
                await asyncio.to_thread(self.process.wait)


def start_reaper(argv: Sequence[str], profile: Path, environment: Mapping[str, str]) -> ReaperProcess:
    """Start the reaper with its arguments after the profile. Blocks only for the moment that starting takes."""
    reads, writes = int(argv[1]), int(argv[2])
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(REAPER_PATH), str(profile), *argv],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(reads, writes),
        env=dict(environment), cwd=START_FOLDER, start_new_session=True,
    )  # fmt: skip
    return ReaperProcess(process)
