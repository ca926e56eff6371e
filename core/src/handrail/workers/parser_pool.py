"""Files parsed in processes that can be killed, kept warm for a session."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from handrail.errors import Downstream, InvalidArguments, NotFound, ToolError
from handrail.workers import wire_protocol
from handrail.workers.host_programs import START_FOLDER

__all__ = ["ParserPool"]

# More would only take each other's processors.
MAX_WORKERS = 2
# What Python needs to start and to find its packages; parsers need none of the rest.
INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "SYSTEMROOT")


class ParserPool:
    """Workers of one session: started when needed, used again, killed when a call is cancelled or the session ends.

    `jobs` is a module in which `JOBS` names the module of each job.
    """

    def __init__(self, environment: Mapping[str, str], *, jobs: str) -> None:
        self._jobs = jobs
        self._environment = {name: environment[name] for name in INHERITED_VARIABLES if name in environment}
        self._idle: list[_WorkerProcess] = []
        self._busy: set[_WorkerProcess] = set()
        self._free = anyio.Semaphore(MAX_WORKERS)

    async def run(self, job: str, args: Mapping[str, Any], *, fd: int | None = None) -> tuple[dict[str, Any], bytes]:
        """Run a job on the open file and return its result, as JSON types and bytes.

        Raises `ToolError` if the job was refused, and `Downstream` if the worker crashed on it.
        """
        async with self._free:
            worker = self._idle.pop() if self._idle else _WorkerProcess(self._environment, self._jobs)
            self._busy.add(worker)
            try:
                answer, data = await anyio.to_thread.run_sync(
                    partial(worker.do, {"job": job, "args": args}, fd), abandon_on_cancel=True
                )
            except BaseException:
                worker.kill()
                raise
            finally:
                self._busy.discard(worker)
            if worker.reusable(answer):
                self._idle.append(worker)
            else:
                worker.kill()
        if (refused := answer.get("refused")) is not None:
            raise _build_tool_error(refused)
        return answer["result"], data

    async def close(self) -> None:
        """End every worker."""
        for worker in (*self._idle, *self._busy):
            worker.kill()
        self._idle.clear()


class _WorkerProcess:
    """One process and the channel to it."""

    def __init__(self, environment: Mapping[str, str], jobs: str) -> None:
        self._channel, far = socket.socketpair()
        with far:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "handrail.workers.worker_process", str(far.fileno()), jobs],
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=dict(environment),
                cwd=START_FOLDER,
                start_new_session=True,
            )

    def do(self, request: Mapping[str, Any], fd: int | None) -> tuple[Any, bytes]:
        """Have it do one job; blocks until it has or is dead."""
        try:
            wire_protocol.send_message(self._channel, request, fd=fd)
            answer, data, _ = wire_protocol.receive_message(self._channel)
        except (OSError, EOFError) as exc:
            raise Downstream("the file could not be read: " + self._end()) from exc
        return answer, data

    def _end(self) -> str:
        code = self._process.wait()
        if code == -signal.SIGXCPU:
            return "it took too much processor time, and reading it was stopped"
        return f"the process that parsed it broke down ({f'signal {-code}' if code < 0 else f'exit {code}'})"

    def reusable(self, answer: Mapping[str, Any]) -> bool:
        """Return True unless something happened in the worker that it may not recover from."""
        return answer.get("refused", {}).get("kind") != "limit"

    def kill(self) -> None:
        """Kill the worker now, leaving nothing behind."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)
        self._channel.close()
        self._process.kill()
        self._process.wait()


def _build_tool_error(refused: Mapping[str, Any]) -> ToolError:
    kinds: Mapping[str, type[ToolError]] = {"arguments": InvalidArguments, "not_found": NotFound}
    kind = kinds.get(refused["kind"], Downstream)
    return kind(refused["message"], hint=refused["hint"], details={"reason": refused["kind"]})
