"""A bubblewrap that stays: its first process starts each command, which then costs little more than without a sandbox."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from handrail import PreparedSandbox
from handrail_cli.sandboxes.prepared_init import ANSWER_FORMAT, READY_MESSAGE

# The Python of the system, where the one that runs Handrail is not shown inside.
SYSTEM_PYTHON = Path("/usr/bin/python3")
SYSTEM_FOLDER = Path("/usr")


def find_inner_python(readable: Iterable[Path]) -> Path | None:
    """Return a Python that is visible in a sandbox with these readable directories, or None."""
    own = Path(os.path.realpath(sys.executable))
    if any(own.is_relative_to(folder) for folder in (SYSTEM_FOLDER, *readable)):
        return own
    return SYSTEM_PYTHON if SYSTEM_PYTHON.exists() else None


def create_init_command(python: Path, channel: int, folders: Sequence[str]) -> tuple[str, ...]:
    """Return the words that start the first process, with the descriptor of its channel and the folders that it watches."""
    text = Path(__file__).with_name("prepared_init.py").read_text(encoding="utf-8")
    return (str(python), "-I", "-S", "-c", text, str(channel), *folders)


class PreparedBubblewrap(PreparedSandbox):
    """A started bwrap and the channel to its first process. `release` gives back what is held for it."""

    def __init__(
        self, pid: int, channel: socket.socket, environment: Mapping[str, str], release: Callable[[], object]
    ) -> None:
        self.pid = pid
        self._channel = channel
        self._environment = environment
        self._release = release
        self._waiting_for: bytes = READY_MESSAGE
        self._usable = True

    @property
    def ready(self) -> bool:
        if self._waiting_for == READY_MESSAGE:
            self._hear_first()
        elif not self._waiting_for:
            self._look_for_end()
        return self._usable and not self._waiting_for

    @property
    def usable(self) -> bool:
        return self._usable

    def start(
        self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], descriptors: Mapping[int, int]
    ) -> int:
        given = {**environment, **self._environment}
        pairs = (f"{name}={value}" for name, value in given.items())
        request = os.memfd_create("handrail-request")
        try:
            with open(request, "wb", closefd=False) as file:
                file.write(b"\0".join(map(os.fsencode, (str(len(argv)), argv[0], *argv, *pairs))))
            os.lseek(request, 0, os.SEEK_SET)
            numbers = struct.pack(f"<{len(descriptors)}H", *descriptors)
            socket.send_fds(self._channel, [numbers], [request, *descriptors.values()])
        except OSError:
            self._usable = False
            raise
        finally:
            os.close(request)
        self._waiting_for = b"answer"
        return self._channel.fileno()

    def finish(self) -> int | None:
        answer = b""
        with contextlib.suppress(OSError):
            answer = self._channel.recv(ANSWER_FORMAT.size)
        self._waiting_for = b""
        if len(answer) != ANSWER_FORMAT.size:
            self._usable = False
            return None
        status, clean = ANSWER_FORMAT.unpack(answer)
        self._usable = bool(clean)
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        self._usable = False
        if self.pid == 0:
            return
        pid, self.pid = self.pid, 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        self._channel.close()
        self._release()

    def _look_for_end(self) -> None:
        """Find out whether it has ended while nothing ran in it."""
        try:
            heard = self._channel.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        self._usable = self._usable and heard != b""

    def _hear_first(self) -> None:
        try:
            heard = self._channel.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        self._usable = heard == READY_MESSAGE
        self._waiting_for = b""
