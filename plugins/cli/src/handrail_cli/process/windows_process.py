"""Command on Windows, run by Git's bash or cmd.exe in a job object, with its pipes read by threads.

System access is injected (`ContainedLauncher`), which makes everything else platform-independent and testable.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import IO, TYPE_CHECKING, ClassVar, Protocol

from handrail import Downstream, InvalidArguments, ToolUnavailable
from handrail_cli.process.bash_protocol import MAX_STATE, ShellState, parse_cmd_state, parse_git_bash_state
from handrail_cli.process.charset_detection import find_locale_charset
from handrail_cli.process.command_process import GRACE_S, TERM_S, CommandProcess, LaunchRequest, OutputStream
from handrail_cli.process.output_capture import LARGE_BLOCK, HeadTailBuffer
from handrail_cli.process.process_tree import MARK_VARIABLE
from handrail_cli.process.windows_start import (
    HEADER_BYTES,
    ProcessStart,
    create_bash_start,
    create_cmd_start,
    create_cmd_state_script,
    create_windowed_start,
    find_git_bash,
)

if TYPE_CHECKING:
    from handrail.workers.host_programs import HostPrograms
    from handrail_cli.process.config import HostLimits
    from handrail_cli.sandboxes.windows_job import JobObject

# So much may wait to be read by a program that reads slowly.
MAX_PENDING_INPUT = 65_536
MEGABYTE = 1024 * 1024


class ContainedProgram(Protocol):
    """A program that was started, with all that it starts."""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The program itself."""
        ...

    def active(self) -> int:
        """Return the number of its processes that are running."""
        ...

    def end(self) -> None:
        """End them all."""
        ...

    def close(self) -> None:
        """Release the processes, which ends those still running."""
        ...


class ContainedLauncher(Protocol):
    """Starts a program in a folder, with an input of the kind that `subprocess` knows, and holds together all that it starts."""

    def __call__(
        self, start: ProcessStart, cwd: Path, stdin: int | IO[bytes], limits: Mapping[str, int | None]
    ) -> ContainedProgram: ...


@dataclass(slots=True, eq=False)
class WindowsProcess(CommandProcess):
    """`state` is the folder in which its shell writes what it leaves."""

    dies_with_us: ClassVar[bool] = True

    contained: ContainedProgram = field(kw_only=True)
    state: tempfile.TemporaryDirectory[str] | None = None
    _inbox: queue.SimpleQueue[bytes | None] = field(default_factory=queue.SimpleQueue["bytes | None"])
    _waits_to_be_read: int = 0
    _deaf: bool = False

    @property
    def fed(self) -> bool:
        return self.contained.process.stdin is not None and not self._deaf

    @property
    def running(self) -> bool:
        return self.exit_code is None or (self.left and self.contained.active() > 0)

    def follow(self) -> None:
        loop = asyncio.get_running_loop()
        for stream in self.streams:
            if stream.fd is not None:
                threading.Thread(target=self._read, args=(loop, stream, stream.fd), daemon=True).start()
        if self.contained.process.stdin is not None:
            threading.Thread(target=self._feed, args=(self.contained.process.stdin,), daemon=True).start()
        threading.Thread(target=self._await_end, args=(loop,), daemon=True).start()

    def abandon(self) -> None:
        self.contained.end()
        self.close()

    async def stop(self, *, patience: float = TERM_S) -> None:
        """End it and everything in its job, at once: programs without a console in common cannot be asked."""
        self.contained.end()
        await self.settle(GRACE_S + TERM_S)
        self.close()
        await self.give_back()

    async def hang_up(self) -> None:
        await self.stop()

    def write(self, data: bytes) -> int:
        if not self.fed:
            raise self._no_input()
        self.fed_at = time.monotonic()
        taken = data[: max(0, MAX_PENDING_INPUT - self._waits_to_be_read)]
        if taken:
            self._waits_to_be_read += len(taken)
            self._inbox.put(taken)
        return len(taken)

    def end_input(self) -> None:
        if not self._deaf:
            self._deaf = True
            self._inbox.put(None)

    def interrupt(self, number: signal.Signals) -> None:
        """Send ctrl-break to its group; where that does not reach it, end what runs."""
        try:
            self.contained.process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", number))
        # It has no console in common with us.
        except OSError:
            self.contained.end()

    def left_behind(self) -> bytes | None:
        if self.state is None:
            return b""
        try:
            with open(_get_state_path(self.state), "rb") as file:
                written = file.read(MAX_STATE + 1)
        # A shell that was replaced, or that left by itself, wrote nothing.
        except OSError:
            written = b""
        self._forget_state()
        return written if len(written) <= MAX_STATE else None

    def parse_left(self, written: bytes) -> ShellState | None:
        if not self.launch.bash:
            return parse_cmd_state(written, given=self.environment)
        given = {name.upper(): value for name, value in self.environment.items()}
        root = next(
            folder for folder in PureWindowsPath(self.launch.bash).parents if folder.name.lower() not in ("bin", "usr")
        )
        return parse_git_bash_state(written, root=str(root), temporary=given.get("TEMP", str(root / "tmp")))

    def close(self) -> None:
        self._listen_no_more()
        self.end_input()
        self._forget_state()
        self.contained.close()
        for stream in self.streams:
            stream.kept.close()

    def _forget_state(self) -> None:
        if self.state is not None:
            self.state.cleanup()
            self.state = None

    def _read(self, loop: asyncio.AbstractEventLoop, stream: OutputStream, fd: int) -> None:
        """Pass output to the event loop piece by piece until it ends; runs in a thread."""
        taken = threading.Event()
        while True:
            try:
                data = os.read(fd, LARGE_BLOCK)
            except OSError:
                data = b""
            taken.clear()
            try:
                loop.call_soon_threadsafe(self._got, stream, data, taken)
            # The loop is closed: nobody reads any more.
            except RuntimeError:
                data = b""
            if not data:
                break
            taken.wait()
        os.close(fd)

    def _got(self, stream: OutputStream, data: bytes, taken: threading.Event) -> None:
        rest = memoryview(data)
        while rest:
            space = stream.kept.space()
            size = min(len(space), len(rest))
            space[:size] = rest[:size]
            stream.kept.took(size)
            rest = rest[size:]
        taken.set()
        if not data:
            stream.fd = None
            self._settle_if_done()
            return
        self.heard = time.monotonic()
        if self.launch.listening():
            self._tell(stream, data)

    def _feed(self, stdin: IO[bytes]) -> None:
        """Write pending input to the program; runs in a thread."""
        with contextlib.suppress(OSError):
            while (data := self._inbox.get()) is not None:
                stdin.write(data)
                stdin.flush()
                self._waits_to_be_read -= len(data)
        self._deaf = True
        with contextlib.suppress(OSError):
            stdin.close()

    def _await_end(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for the program itself to end; runs in a thread."""
        code = self.contained.process.wait()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._ended, code)

    def _find_left(self) -> bool:
        return self.contained.active() > 0


class WindowsStarter:
    """Starter of commands on Windows: by Git's bash if it is installed, else by cmd.exe; windowed programs directly."""

    def __init__(
        self, contain: ContainedLauncher | None = None, is_file: Callable[[str], bool] = os.path.isfile
    ) -> None:
        self._contain = contain if contain is not None else _start_in_job
        self._is_file = is_file

    def shell(self, programs: HostPrograms) -> str | None:
        """Return the path of Git's bash, or an empty string without it: cmd.exe is always available."""
        return find_git_bash(programs.environment, self._is_file) or ""

    def start(self, launch: LaunchRequest, mark: str) -> WindowsProcess:
        """Start a command in a new job object. Raises `Downstream` if that fails."""
        if launch.terminal is not None:
            raise ToolUnavailable("execute_cli: there is no terminal (pty) on Windows", hint="leave `pty` out")
        limits = create_job_limits(launch.limits if launch.sandbox is None else None)
        state = tempfile.TemporaryDirectory(prefix="handrail-") if launch.keeps else None
        try:
            start, confined = self._start(launch, mark, state), None
            if launch.sandbox is not None:
                confined = launch.sandbox.confine(start.words, cwd=launch.cwd, environment=start.environment)
                start = ProcessStart(
                    tuple(confined.argv), dict(confined.environment), start.rest, start.flags, start.waited
                )
            with _open_input(launch) as stdin:
                contained = self._contain(start, launch.cwd, stdin, limits)
        except (OSError, ValueError) as exc:
            if state is not None:
                state.cleanup()
            raise Downstream(f"the command could not be started: {exc}") from exc
        process = contained.process
        if confined is not None:
            confined.started(process.pid)
        assert process.stdout is not None
        assert process.stderr is not None
        # Descriptors of our own, which are closed by who reads them.
        out, err = os.dup(process.stdout.fileno()), os.dup(process.stderr.fileno())
        process.stdout.close()
        process.stderr.close()
        streams = (_create_stream("stdout", out, launch), _create_stream("stderr", err, launch))
        shown = None if start.waited else PureWindowsPath(start.words[0]).name
        return WindowsProcess(
            launch, mark, process.pid, streams, confined, shown=shown, contained=contained, state=state
        )

    def close(self) -> None:
        """Do nothing: no resources are kept for later commands."""

    def _start(self, launch: LaunchRequest, mark: str, state: tempfile.TemporaryDirectory[str] | None) -> ProcessStart:
        environment = {**launch.environment, MARK_VARIABLE: mark}
        file = None if state is None else _get_state_path(state)
        if (
            by_itself := create_windowed_start(launch.command, environment, is_file=self._is_file, head=_read_header)
        ) is not None:
            return by_itself
        if launch.bash:
            return create_bash_start(launch.bash, launch.command, str(launch.cwd), environment, state=file)
        leaving = None
        if state is not None and file is not None:
            leaving = os.path.join(state.name, "leave.cmd")
            # cmd.exe reads its files in the code page of its console.
            Path(leaving).write_text(
                create_cmd_state_script(file), encoding="oem" if os.name == "nt" else "utf-8", newline=""
            )
        try:
            return create_cmd_start(launch.command, environment, leaving=leaving)
        except ValueError as exc:
            raise InvalidArguments(f"execute_cli: {exc}") from exc


@dataclass(frozen=True, slots=True)
class JobProgram:
    """A program in a job object."""

    process: subprocess.Popen[bytes]
    job: JobObject

    def active(self) -> int:
        return self.job.active()

    def end(self) -> None:
        self.job.end()

    def close(self) -> None:
        self.job.close()


def _start_in_job(
    start: ProcessStart, cwd: Path, stdin: int | IO[bytes], limits: Mapping[str, int | None]
) -> JobProgram:
    from handrail_cli.sandboxes.windows_job import JobObject

    job = JobObject(limits)
    try:
        process = subprocess.Popen(
            start.line,
            executable=start.words[0],
            cwd=cwd,
            env=dict(start.environment),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            creationflags=start.flags,
        )
        job.take_in(process)
    except OSError:
        job.close()
        raise
    return JobProgram(process, job)


def create_job_limits(limits: HostLimits | None) -> Mapping[str, int | None]:
    """Return the settings in `[plugins.cli.limits]` as limits of a job object.

    Raises `ToolUnavailable` for a limit that job objects do not have, because nothing may run without it.
    """
    if limits is None:
        return {}
    if limits.file_size is not None:
        raise ToolUnavailable(
            "plugins.cli.limits.file_size cannot be set on Windows", hint="leave it out of the configuration"
        )
    memory = None if limits.memory is None else limits.memory * MEGABYTE
    return {"memory": memory, "cpu_seconds": limits.cpu_seconds, "processes": limits.processes}


@contextlib.contextmanager
def _open_input(launch: LaunchRequest) -> Generator[int | IO[bytes]]:
    if launch.fed:
        yield subprocess.PIPE
    elif launch.stdin is None:
        yield subprocess.DEVNULL
    else:
        # A file and not a pipe: a command that does not read all of it cannot make us wait.
        with tempfile.TemporaryFile() as file:
            file.write(launch.stdin)
            file.seek(0)
            yield file


def _create_stream(name: str, fd: int, launch: LaunchRequest) -> OutputStream:
    # Programs with a console write in its code page.
    charset = find_locale_charset(launch.environment) or ("oem" if os.name == "nt" else None)
    kept = HeadTailBuffer(launch.open_sink, limit=launch.output_limit, charset=charset)
    return OutputStream(name, fd, kept)


def _get_state_path(state: tempfile.TemporaryDirectory[str]) -> str:
    return os.path.join(state.name, "state")


def _read_header(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(HEADER_BYTES)
    except OSError:
        return b""
