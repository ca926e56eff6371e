"""Command in a prepared sandbox, which reports the command's end after ending every process that the command left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from handrail import PreparedSandbox
from handrail_cli.process.command_process import CANCEL_S, GRACE_S, TERM_S
from handrail_cli.process.posix_process import PosixProcess


@dataclass(slots=True, eq=False)
class PreparedProcess(PosixProcess):
    """`prepared` runs the command, and `given` are the variables that the command was given."""

    dies_with_us: ClassVar[bool] = True

    prepared: PreparedSandbox = field(kw_only=True)
    given: Mapping[str, str] = field(kw_only=True)
    ends: int = field(kw_only=True)
    """The descriptor that becomes readable when the command ends."""

    @property
    def environment(self) -> Mapping[str, str]:
        return self.given

    @property
    def running(self) -> bool:
        return self.exit_code is None

    def follow(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self.ends, self._hear_end)
        self.watch_later(loop)

    def abandon(self) -> None:
        self.prepared.close()
        self.close()

    async def stop(self, *, patience: float = TERM_S) -> None:
        if self.exit_code is None and patience > CANCEL_S:
            self.interrupt(signal.SIGTERM)
            await self.settle(patience)
        if self.exit_code is None:
            self._end_sandbox()
        await self.settle(GRACE_S + TERM_S)
        self.close()

    async def hang_up(self) -> None:
        await self.stop(patience=0.0)

    def close(self) -> None:
        if self.exit_code is None:
            self._end_sandbox()
        PosixProcess.close(self)

    def _hear_end(self) -> None:
        asyncio.get_running_loop().remove_reader(self.ends)
        code = self.prepared.finish()
        self._finish(-signal.SIGKILL if code is None else code)

    def _end_sandbox(self) -> None:
        """End the command and its entire sandbox; no process in it survives."""
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().remove_reader(self.ends)
        self.prepared.close()
        self._finish(-signal.SIGKILL)

    def _find_left(self) -> bool:
        return False

    def interrupt(self, number: signal.Signals) -> None:
        """Send a signal to all that runs of the command; the sandbox's own processes take none."""
        from handrail_cli.process.process_tree import find_process_tree, send_signal

        send_signal(number, find_process_tree(os.getpgid(self.prepared.pid)) - {self.prepared.pid})
