"""The first process inside a prepared sandbox: it starts one command after another and ends all that each has left.

Run by the Python that is found inside, from this file's text: it imports nothing but the standard library. A request is a message with the
numbers that the descriptors sent with it get in the command; the first descriptor is a file with the program, its words and its environment.
The answer is the wait status, and whether the sandbox is as it was before.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import signal
import socket
import struct
import sys

PR_SET_DUMPABLE = 4
# Descriptors of a request are kept above all numbers that a command gets.
FIRST_FREE_DESCRIPTOR = 300
MAX_DESCRIPTORS = 16
READY_MESSAGE = b"R"
# The wait status, and 1 if the sandbox is as it was.
ANSWER_FORMAT = struct.Struct("<iB")
# Python and this process ignore these; a command finds them as a shell would start it.
RESET_SIGNALS = [
    number
    for number in signal.valid_signals()
    if number not in (signal.SIGKILL, signal.SIGSTOP) and number < signal.SIGRTMIN
]
LIMIT_NAMES = [name for name in dir(resource) if name.startswith("RLIMIT_")]
IGNORED_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


def serve_commands(channel: socket.socket, folders: tuple[str, ...]) -> None:
    """Run commands until the other end is closed."""
    # Its memory and its descriptors are closed to the commands, which run as the same user.
    if ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        return
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    before = capture_state(folders)
    channel.sendall(READY_MESSAGE)
    while True:
        numbers, descriptors, _, _ = socket.recv_fds(
            channel, 2 * MAX_DESCRIPTORS, MAX_DESCRIPTORS + 1, socket.MSG_CMSG_CLOEXEC
        )
        if not numbers:
            return
        status = run_request(numbers, descriptors)
        channel.sendall(ANSWER_FORMAT.pack(status, capture_state(folders) == before))


def run_request(numbers: bytes, descriptors: list[int]) -> int:
    """Start the command of a request, wait for its end, end all that it has left, and return its wait status."""
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR) for fd in descriptors]
    for fd in descriptors:
        os.close(fd)
    request, *given = moved
    places = struct.unpack(f"<{len(numbers) // 2}H", numbers)
    try:
        program, words, environment = read_request(request)
        actions = [] if 0 in places else [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, fd, place) for fd, place in zip(given, places, strict=True)]
        try:
            pid = os.posix_spawn(
                program, words, environment, file_actions=actions, setsid=True, setsigmask=[], setsigdef=RESET_SIGNALS
            )
        except OSError as exc:
            os.write(given[places.index(2)], f"{os.fsdecode(program)}: {exc.strerror}\n".encode())
            return 126 << 8
    finally:
        for fd in moved:
            os.close(fd)
    status = reap_processes(pid)
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return status
    reap_processes(None)
    return status


def read_request(request: int) -> tuple[bytes, list[bytes], dict[bytes, bytes]]:
    """Read the program, its words and its environment."""
    with open(request, "rb", closefd=False) as file:
        count, program, *rest = file.read().split(b"\0")
    words = rest[: int(count)]
    return program, words, dict(pair.split(b"=", 1) for pair in rest[int(count) :] if pair)


def reap_processes(pid: int | None) -> int:
    """Wait for processes until the one with this number has ended, or all have; return its wait status."""
    while True:
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return 0
        if ended == pid:
            return status


def capture_state(folders: tuple[str, ...]) -> list[object]:
    """Return what a command could leave for the next one: files in these folders, and limits of this process."""
    found: list[object] = [resource.getrlimit(getattr(resource, name)) for name in LIMIT_NAMES]
    found += [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0)]
    for folder in folders:
        space, entry = os.statvfs(folder), os.lstat(folder)
        found.append((space.f_ffree, space.f_bfree, entry.st_mode, entry.st_uid, entry.st_ino))
    return found


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as served:
        os.set_inheritable(served.fileno(), False)
        serve_commands(served, tuple(sys.argv[2:]))
