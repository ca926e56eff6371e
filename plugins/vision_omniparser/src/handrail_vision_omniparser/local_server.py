"""OmniParser server that Handrail starts if the configuration says so: a process group that is ended as a whole."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from handrail import BackendUnavailable
from handrail.redaction import remove_credentials
from handrail.sanitize.envelope import clean_text
from handrail.workers.host_programs import find_own_programs, resolve_start_place

# Seconds that it has to end by itself.
STOP_GRACE_S = 3.0
CHUNK = 65_536
# Of what it writes, the end that is kept to say why it ended.
LAST_WORDS = 4_096
MAX_LAST_WORDS = 300


class LocalServer:
    """OmniParser server started by `start` and ended by `stop`, any number of times. `ready` is set by its user."""

    def __init__(self, command: Sequence[str], *, cwd: str | None, environment: Mapping[str, str]) -> None:
        self._command, self._cwd = resolve_start_place(command, cwd, Path.cwd())
        self._environment = remove_credentials(environment)
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._words = b""
        self.ready = False

    @property
    def started(self) -> bool:
        return self._process is not None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start the server; raise `BackendUnavailable` if the program does not exist or cannot be started."""
        self._words = b""
        program, *arguments = self._command
        try:
            self._process = await asyncio.create_subprocess_exec(
                program if "/" in program or os.sep in program else _find_program(program),
                *arguments,
                cwd=self._cwd,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=sys.platform != "win32",
            )
        except OSError as exc:
            raise BackendUnavailable(
                f"backends.omniparser.command cannot be started: {self._command[0]!r}: {exc.strerror}"
            ) from exc
        self._listening = asyncio.get_running_loop().create_task(self._listen(self._process))

    async def stop(self) -> str:
        """End it, and what it has started; its last words."""
        process, self._process, self.ready = self._process, None, False
        if process is None:
            return ""
        with anyio.CancelScope(shield=True):
            self._signal(process, signal.SIGTERM)
            with anyio.move_on_after(STOP_GRACE_S):
                await process.wait()
            # Also when it has ended: what it started may live.
            self._signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
            await process.wait()
            if self._listening is not None:
                # Whoever still holds the pipe is of no interest.
                await asyncio.wait((self._listening,), timeout=STOP_GRACE_S)
                self._listening.cancel()
            # The pipe's transport is closed by the loop only when it notices; until then its descriptors are open.
            transport = getattr(process, "_transport", None)
            if transport is not None:
                transport.close()
        words = clean_text(self._words.decode(errors="replace")).text.strip().splitlines()
        return f"exit code {process.returncode}{f': {words[-1][:MAX_LAST_WORDS]}' if words else ''}"

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while chunk := await process.stdout.read(CHUNK):
            self._words = (self._words + chunk)[-LAST_WORDS:]

    @staticmethod
    def _signal(process: asyncio.subprocess.Process, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, number)


def _find_program(name: str) -> str:
    programs = find_own_programs()
    found = programs.find(name)
    if found is None:
        raise BackendUnavailable(f"backends.omniparser.command cannot be started: {programs.why_missing(name)}")
    return found
