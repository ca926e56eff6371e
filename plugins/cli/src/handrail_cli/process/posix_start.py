"""Start of commands on Linux and macOS: bash in a new session, connected to pipes or a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail import Downstream
from handrail_cli.process.bash_protocol import STATE_DESCRIPTOR, create_bash_arguments, create_bash_script
from handrail_cli.process.charset_detection import find_locale_charset
from handrail_cli.process.command_process import LaunchRequest, OutputStream
from handrail_cli.process.output_capture import HeadTailBuffer, OutputSink
from handrail_cli.process.posix_process import PosixProcess
from handrail_cli.process.prepared_process import PreparedProcess
from handrail_cli.process.process_tree import MARK_VARIABLE
from handrail_cli.process.waiting_shell import COMMAND_DESCRIPTOR, RECEIVING_SCRIPT, ShellStart, WaitingShell
from handrail_cli.sandboxes.descriptors import list_inheritable_descriptors

if TYPE_CHECKING:
    from handrail import Confinement, PreparedSandbox
    from handrail.workers.host_programs import HostPrograms

# What a command does at these is its own affair, whatever Handrail does: `nohup handrail …` ignores the first, Python the last two, and a program
# that writes into a closed pipe has to end.
DEFAULT_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)


class PosixStarter:
    """Starts commands here: finds bash, and keeps from them what this process was given by its parent."""

    def __init__(self) -> None:
        self._strange = list_inheritable_descriptors()
        self._last: ShellStart | None = None
        self._waiting: WaitingShell | None = None

    def shell(self, programs: HostPrograms) -> str | None:
        """Return where bash is: no folder that agents write counts, since most commands are run by it unasked. None when it is not there."""
        return programs.find("bash")

    def start(self, launch: LaunchRequest, mark: str) -> PosixProcess:
        """Start bash, or the sandbox that runs it, in a new session. Raises `Downstream` if that fails."""
        if launch.sandbox is not None:
            prepared = _find_prepared_sandbox(launch.sandbox, launch)
            inside = None if prepared is None else _start_in_prepared(prepared, launch, mark)
            return inside or self._start_confined(launch.sandbox, launch, mark)
        shell = _create_shell_start(launch)
        if shell is None:
            return self._start_on_host(launch, mark)
        # One that comes seldom is not waited for.
        again, self._last = shell == self._last, shell
        process = self._give_to_waiting(shell, launch) or self._start_on_host(launch, mark)
        if again and self._waiting is None:
            self._waiting = self._start_waiting(shell, f"{mark}.next")
        return process

    def close(self) -> None:
        """End the shell that waits for a command."""
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None

    def _give_to_waiting(self, shell: ShellStart, launch: LaunchRequest) -> PosixProcess | None:
        """Run a command in the waiting shell; None if no shell started with these parameters can take it."""
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return None
        if waiting.start != shell:
            waiting.close()
            return None
        if not waiting.give(launch.command, launch.cwd):
            return None
        streams = _create_streams(launch, DescriptorPlan((), waiting.outputs, None, ()))
        return PosixProcess(launch, waiting.mark, waiting.pid, streams, state=waiting.state)

    def _start_waiting(self, shell: ShellStart, mark: str) -> WaitingShell | None:
        """Start a shell that waits for the next command; None if the system starts no more."""
        reading, feed = os.pipe()
        plumbing = _open_pipes(None, feed)
        state = open_scratch_file("state") if shell.keeps else None
        words = ("bash", "-c", f"{RECEIVING_SCRIPT}; {shell.script}", "bash")
        try:
            pid = self._spawn(
                shell.bash,
                words,
                {**shell.environment, MARK_VARIABLE: mark},
                plumbing,
                {COMMAND_DESCRIPTOR: reading},
                state,
            )
        except Downstream:
            return None
        finally:
            os.close(reading)
        return WaitingShell(shell, mark, pid, plumbing.outputs, state, feed)

    def _start_on_host(self, launch: LaunchRequest, mark: str) -> PosixProcess:
        words = create_bash_arguments(launch.command, launch.cwd, keeps=launch.keeps, limits=launch.limits)
        state = open_scratch_file("state") if launch.keeps else None
        plumbing = _create_descriptors(launch)
        pid = self._spawn(launch.bash, words, {**launch.environment, MARK_VARIABLE: mark}, plumbing, {}, state)
        return PosixProcess(launch, mark, pid, _create_streams(launch, plumbing), stdin=plumbing.feed, state=state)

    def _start_confined(self, sandbox: Confinement, launch: LaunchRequest, mark: str) -> PosixProcess:
        words = create_bash_arguments(
            launch.command, launch.cwd, keeps=launch.keeps, confined=sandbox.sandbox.own_processes
        )
        environment = {**launch.environment, MARK_VARIABLE: mark}
        confined = sandbox.confine((launch.bash, *words[1:]), cwd=launch.cwd, environment=environment)
        state = open_scratch_file("state") if launch.keeps else None
        plumbing = _create_descriptors(launch)
        handed = {fd: fd for fd in confined.pass_fds}
        try:
            pid = self._spawn(confined.argv[0], confined.argv, confined.environment, plumbing, handed, state)
        except BaseException:
            confined.ended()
            raise
        finally:
            for fd in handed:
                os.close(fd)
        try:
            confined.started(pid)
        except BaseException:
            # Nobody knows of it: it may not run.
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            _close_descriptors(plumbing.ours, state)
            confined.ended()
            raise
        return PosixProcess(
            launch, mark, pid, _create_streams(launch, plumbing), confined, stdin=plumbing.feed, state=state
        )

    def _spawn(
        self,
        program: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        plumbing: DescriptorPlan,
        handed: Mapping[int, int],
        state: int | None,
    ) -> int:
        """Start a program with these descriptors in a new session and return its pid.

        Raises `Downstream`, with our descriptors closed, if that fails. `handed` maps descriptor numbers in the program
        to our descriptors. This is twice as fast as `subprocess`, which encodes the environment in Python.
        """
        given = handed if state is None else {**handed, STATE_DESCRIPTOR: state}
        actions = [
            *((os.POSIX_SPAWN_CLOSE, fd) for fd in self._strange),
            *plumbing.actions,
            # One onto itself: from then on it is inherited.
            *((os.POSIX_SPAWN_DUP2, fd, number) for number, fd in given.items()),
        ]
        try:
            pid = os.posix_spawn(
                program, list(words), environment, file_actions=actions, setsid=True, setsigdef=DEFAULT_SIGNALS
            )
        except (OSError, ValueError) as exc:
            _close_descriptors(plumbing.ours, state)
            raise Downstream(f"the command could not be started: {exc}") from exc
        finally:
            for fd in plumbing.theirs:
                os.close(fd)
        for fd in plumbing.outputs:
            os.set_blocking(fd, False)
        return pid


def _close_descriptors(descriptors: Sequence[int], state: int | None) -> None:
    for fd in (*descriptors, *(() if state is None else (state,))):
        os.close(fd)


def _create_shell_start(launch: LaunchRequest) -> ShellStart | None:
    """Return the parameters of a command's shell; None for a command that no waiting shell can run."""
    if launch.sandbox is not None or launch.terminal is not None or launch.fed or launch.stdin is not None:
        return None
    script = create_bash_script(keeps=launch.keeps, limits=launch.limits)
    start = ShellStart(launch.bash, script, launch.environment, launch.keeps)
    return start if start.can_wait else None


def _find_prepared_sandbox(sandbox: Confinement, launch: LaunchRequest) -> PreparedSandbox | None:
    """Return a prepared sandbox for a command without interaction while it runs, or None."""
    if launch.terminal is not None or launch.fed or launch.followed:
        return None
    return sandbox.prepared()


def _start_in_prepared(prepared: PreparedSandbox, launch: LaunchRequest, mark: str) -> PosixProcess | None:
    """Start bash in a prepared sandbox; None if the sandbox has ended, and then nothing was run."""
    assert launch.sandbox is not None
    given = launch.sandbox.environment({**launch.environment, MARK_VARIABLE: mark})
    words = create_bash_arguments(launch.command, launch.cwd, keeps=launch.keeps, confined=True)
    state = open_scratch_file("state") if launch.keeps else None
    stdin, _ = _open_input(launch)
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    theirs = {1: out_end, 2: err_end} | ({} if stdin is None else {0: stdin})
    try:
        ends = prepared.start(
            (launch.bash, *words[1:]),
            cwd=launch.cwd,
            environment=given,
            descriptors=theirs | ({} if state is None else {STATE_DESCRIPTOR: state}),
        )
    except OSError:
        for fd in (out, err, *(() if state is None else (state,))):
            os.close(fd)
        return None
    finally:
        for fd in theirs.values():
            os.close(fd)
    for fd in (out, err):
        os.set_blocking(fd, False)
    streams = _create_streams(launch, DescriptorPlan((), (out, err), None, ()))
    return PreparedProcess(launch, mark, prepared.pid, streams, state=state, prepared=prepared, given=given, ends=ends)


@dataclass(frozen=True, slots=True)
class DescriptorPlan:
    """The descriptors between a command and us: `outputs` are read, `feed` is written to, `theirs` are closed here once it has them."""

    actions: Sequence[tuple[int, ...] | tuple[int, int, str, int, int]]
    outputs: tuple[int, ...]
    feed: int | None
    theirs: tuple[int, ...]

    @property
    def ours(self) -> tuple[int, ...]:
        return self.outputs if self.feed is None else (*self.outputs, self.feed)


def _create_descriptors(launch: LaunchRequest) -> DescriptorPlan:
    return _open_pipes(*_open_input(launch)) if launch.terminal is None else _open_terminal(*launch.terminal)


def _open_pipes(stdin: int | None, feed: int | None) -> DescriptorPlan:
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0) if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, out_end, 1),
        (os.POSIX_SPAWN_DUP2, err_end, 2),
    ]
    return DescriptorPlan(actions, (out, err), feed, (out_end, err_end, *(() if stdin is None else (stdin,))))


def _open_terminal(width: int, height: int) -> DescriptorPlan:
    """Open a terminal of that size for a command.

    It becomes the command's controlling terminal because it is the first one its new session opens.
    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", height, width, 0, 0))
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.ttyname(theirs), os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
    ]
    return DescriptorPlan(actions, (ours,), os.dup(ours), (theirs,))


def _create_streams(launch: LaunchRequest, plumbing: DescriptorPlan) -> tuple[OutputStream, OutputStream]:
    def kept(open_sink: Callable[[], OutputSink] | None) -> HeadTailBuffer:
        return HeadTailBuffer(open_sink, limit=launch.output_limit, charset=find_locale_charset(launch.environment))

    if launch.outputs is not None:
        out, err = plumbing.outputs
        return OutputStream("stdout", out, launch.outputs[0]), OutputStream("stderr", err, launch.outputs[1])
    if launch.terminal is None:
        out, err = plumbing.outputs
        return OutputStream("stdout", out, kept(launch.open_sink)), OutputStream("stderr", err, kept(launch.open_sink))
    from handrail_cli.process.terminal_output import TerminalOutput

    feed = plumbing.feed
    assert feed is not None

    def reply(text: str) -> None:
        # A program that asks its terminal and does not read the answer gets none.
        with contextlib.suppress(OSError):
            os.write(feed, text.encode())

    drawn = TerminalOutput(*launch.terminal, kept(launch.open_sink), reply=reply)
    return OutputStream("stdout", plumbing.outputs[0], drawn, wide=True), OutputStream("stderr", None, kept(None))


def _open_input(launch: LaunchRequest) -> tuple[int | None, int | None]:
    """Return the descriptor the command reads (None: no input) and the one for writing to it later, or None."""
    if launch.fed:
        reading, feed = os.pipe()
        os.set_blocking(feed, False)
        return reading, feed
    if launch.stdin is None:
        return None, None
    # A file and not a pipe: a command that does not read all of it cannot make us wait.
    file = open_scratch_file("stdin")
    with open(file, "wb", closefd=False) as writing:
        writing.write(launch.stdin)
    os.lseek(file, 0, os.SEEK_SET)
    return file, None


def open_scratch_file(name: str) -> int:
    """Return the descriptor of an empty file without a directory entry."""
    if sys.platform == "linux":
        return os.memfd_create(name)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
