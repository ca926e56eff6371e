"""Starting the programs of a desktop as children that cannot outlive it. Standard library only."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


class StartFailed(Exception):
    """A part of the desktop that did not start; the text is for the person."""


def set_process_property(option: int, value: int) -> None:
    """Set one property of this process, as prctl does in C."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """Program to start, and how; it gets the signal `last_word` when the process that starts it dies.

    `keep` are descriptors it inherits under their own numbers. `detached` gives it a session of its own, out of reach
    of a terminal's Ctrl-C.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    stdio: tuple[int, int, int]
    keep: Sequence[int] = ()
    cwd: str | None = None
    detached: bool = True
    last_word: signal.Signals = signal.SIGKILL


def spawn_program(program: ProgramSpec) -> int:
    """Start a program and return its process id, which the caller waits for with `reap_children`."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        _exec_program(program, parent)
    except OSError as exc:
        os.write(2, f"{program.argv[0]}: {exc.strerror}\n".encode())
        os._exit(126 if isinstance(exc, PermissionError) else 127)
    # The child must never return into the parent's code, whatever went wrong.
    except BaseException:  # noqa: BLE001
        os.write(2, traceback.format_exc(limit=1).encode())
    os._exit(127)


def _exec_program(program: ProgramSpec, parent: int) -> None:
    set_process_property(PR_SET_PDEATHSIG, program.last_word)
    if os.getppid() != parent:
        os._exit(127)
    if program.detached:
        os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    for target, source in enumerate([os.dup(descriptor) for descriptor in program.stdio]):
        os.dup2(source, target, inheritable=True)
    for descriptor in program.keep:
        os.set_inheritable(descriptor, True)
    if program.cwd is not None:
        os.chdir(program.cwd)
    os.execvpe(program.argv[0], list(program.argv), dict(program.environment))


def read_first_line(descriptor: int, *, of: str, pid: int, deadline: float) -> str:
    """Read the first line that a program writes to a pipe.

    Raises `StartFailed` if the program ends or `deadline` (monotonic) passes first.
    """
    told = b""
    while b"\n" not in told:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - monotonic()))
        if not ready:
            raise StartFailed(f"{of} was not ready in time")
        chunk = os.read(descriptor, 4096)
        if not chunk:
            raise StartFailed(f"{of} ended at its start{_describe_exit(pid)}")
        told += chunk
    return told.partition(b"\n")[0].decode()


def _describe_exit(pid: int) -> str:
    done, status = os.waitpid(pid, os.WNOHANG)
    return f" (exit code {os.waitstatus_to_exitcode(status)})" if done else ""


def read_output(argv: Sequence[str], *, environment: Mapping[str, str], log: int, deadline: float) -> str:
    """Return the output of a short program.

    Raises `StartFailed` with its exit code, or if `deadline` (monotonic) passes.
    """
    reading, writing = os.pipe()
    try:
        pid = spawn_program(ProgramSpec(argv, environment, stdio=(log, writing, log)))
    finally:
        os.close(writing)
    told = b""
    try:
        while True:
            ready, _, _ = select.select([reading], [], [], max(0.0, deadline - monotonic()))
            if not ready:
                os.kill(pid, signal.SIGKILL)
                raise StartFailed(f"{argv[0]} {argv[-1]} had no answer in time")
            chunk = os.read(reading, 65536)
            if not chunk:
                break
            told += chunk
    finally:
        os.close(reading)
        _, status = os.waitpid(pid, 0)
    if status:
        raise StartFailed(f"{' '.join(argv)} failed with exit code {os.waitstatus_to_exitcode(status)}")
    return told.decode(errors="replace")
