"""Sandbox in a separate directory, for tests: Python code that runs inside, and its results outside."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from handrail.api.sandbox import Bounds, Limits
from handrail.sandbox.interface import Sandbox

# A sandboxed command of these tests is over long before that.
RUN_TIMEOUT_S = 30.0
# Tried inside before the code of each test: says what came of an attempt, whatever it was.
CODE_PRELUDE = """
import ctypes, errno, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, *args, **kwargs):
    try:
        return what(*args, **kwargs)
    except BaseException as exc:
        return exc
def called(result):
    return errno.errorcode.get(ctypes.get_errno(), "?") if result == -1 else "done"
"""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a sandboxed command."""

    stdout: str
    stderr: str
    code: int
    never: str | None


class SandboxHarness:
    """Sandbox with bounds in a directory.

    `work` is the workspace, `home` the user's home directory, and `outside` is what it must not access.
    """

    def __init__(self, sandbox: Sandbox, folder: Path, python: Sequence[str] = ()) -> None:
        self.sandbox = sandbox
        self.folder = Path(os.path.realpath(folder))
        self.work, self.home, self.outside, self.temporary = (
            self.folder / name for name in ("work", "home", "outside", "private")
        )
        for made in (self.work, self.home, self.outside, self.temporary):
            made.mkdir(exist_ok=True)
        interpreter = os.path.realpath(sys.executable)
        self.python = tuple(python) or (interpreter, "-I")
        readable = tuple({Path(sys.base_prefix), Path(interpreter).parent}) if not python else ()
        self.bounds = Bounds(
            writable=(self.work,),
            temporary=self.temporary,
            home=self.home,
            readable=readable,
            limits=Limits(processes=64),
        )

    def run(self, code: str, *, environment: Mapping[str, str] | None = None, **bounds: Any) -> CommandResult:
        """Run code for Python inside, with changed bounds; what it printed and how it ended."""
        with self.started(code, environment=environment, **bounds) as (process, confined):
            stdout, stderr = process.communicate(timeout=RUN_TIMEOUT_S)
        return CommandResult(stdout, stderr, process.returncode, confined.never)

    @contextlib.contextmanager
    def started(
        self, code: str, *, environment: Mapping[str, str] | None = None, stdin: int = subprocess.DEVNULL, **bounds: Any
    ) -> Generator[tuple[subprocess.Popen[str], _CommandHandle]]:
        """Code for Python that runs inside as long as the block; killed at its end."""
        import fcntl
        import termios

        text = CODE_PRELUDE + textwrap.dedent(code)
        confined = self.sandbox.confine(
            (*self.python, "-c", text),
            cwd=self.work,
            environment={"PATH": os.defpath, **(environment or {})},
            bounds=replace(self.bounds, **bounds),
        )
        handle = _CommandHandle(channel=confined.channel)
        try:
            process = subprocess.Popen(
                confined.argv,
                env=dict(confined.environment),
                pass_fds=confined.pass_fds,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                # With a terminal as its standard input that is its own, as a shell's is.
                preexec_fn=None if stdin < 0 else lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
            )
        finally:
            for fd in confined.pass_fds:
                os.close(fd)
        confined.started(process.pid)
        try:
            with process:
                try:
                    yield process, handle
                finally:
                    process.kill()
        finally:
            handle.never = confined.ended()
            if confined.channel is not None:
                confined.channel.close()


@dataclass(slots=True)
class _CommandHandle:
    never: str | None = None
    channel: socket.socket | None = None


def skip_unless_confined(box: SandboxHarness, what: str) -> None:
    """Skip the test where the sandbox does not say that it confines this."""
    if what not in box.sandbox.confines:
        pytest.skip(f"{box.sandbox.name} does not say that it confines {what!r}")


def is_socket_reached(take: Callable[[], Any]) -> bool:
    """Return True if something arrived at a non-blocking socket."""
    try:
        came = take()
    except BlockingIOError:
        return False
    if not isinstance(came, bytes):
        came[0].close()
    return True


def create_secret_file(folder: Path) -> Path:
    """Create a file with a secret in the directory."""
    secret = folder / ".env"
    secret.write_text("TOKEN=hunter2")
    return secret
