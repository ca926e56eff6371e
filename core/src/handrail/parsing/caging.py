"""A process that shuts itself in: what it may open is listed, and it reaches no network. Linux: Landlock, where the kernel has it, and seccomp.

Both hold for all that it starts, and nothing takes them off again. Neither needs a privilege. The numbers are those of the kernel's
`linux/landlock.h`, `linux/seccomp.h` and its tables of system calls.
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

# landlock_create_ruleset, landlock_add_rule and landlock_restrict_self have the same numbers everywhere.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL_DEV = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
LOOK = EXECUTE | READ_FILE | READ_DIR
MAKE_SOCKET = 1 << 9
ALL = (1 << 16) - 1
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
# The rights that each version of the interface knows, as the highest bit of them.
RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
# Sockets without a path and signals end where the process does, from version 6 on.
SCOPED, SCOPE = 6, 0b11

NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 1
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
# Numbers of the other interface of x86-64, which mean other calls.
X32 = 0x40000000


@dataclass(frozen=True, slots=True)
class Calls:
    """The numbers of system calls on one kind of processor. `never`: what reaches into other processes or the kernel; `starting`: programs."""

    architecture: int
    socket: int
    never: tuple[int, ...]
    starting: tuple[int, ...]


# ptrace, process_vm_readv and _writev, bpf, io_uring_setup, mount, unshare, setns, keyctl, perf_event_open, userfaultfd; execve, execveat.
CALLS: Mapping[str, Calls] = {
    "x86_64": Calls(0xC000003E, 41, (101, 310, 311, 321, 425, 165, 272, 308, 250, 298, 323), (59, 322)),
    "aarch64": Calls(0xC00000B7, 198, (117, 270, 271, 280, 425, 40, 97, 268, 219, 241, 282), (221, 281)),
}


class Uncaged(Exception):
    """The system has not shut the process in."""


def shut(
    *, readable: Iterable[str], writable: Iterable[str] = (), meeting: Iterable[str] = (), programs: bool = False
) -> None:
    """From now on this thread, and what it starts, opens only what lies there, and no network; local sockets and programs where `programs`.

    `readable` and `writable` are folders or files, `meeting` folders in which a local socket may be made; those that are missing are passed
    over. What is open already stays open. Where the kernel has no Landlock, files are not shut away. `Uncaged` when the system refuses.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    if (version := landlock()) > 0:
        _shut_files(libc, version, ((readable, LOOK), (writable, ALL), (meeting, MAKE_SOCKET)))
    calls = CALLS.get(platform.machine())
    if calls is not None:
        _filter_calls(libc, b"".join(_program(calls, programs=programs)))


def landlock() -> int:
    """The version of Landlock that the kernel has; 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1), 0)


def _shut_files(libc: ctypes.CDLL, version: int, opened: Iterable[tuple[Iterable[str], int]]) -> None:
    rights = (1 << RIGHTS.get(version, 16)) - 1
    wanted = struct.pack("=QQQ", rights, 0, SCOPE) if version >= SCOPED else struct.pack("=Q", rights)
    rules = libc.syscall(CREATE_RULESET, wanted, ctypes.c_size_t(len(wanted)), 0)
    _check(rules, "landlock_create_ruleset")
    try:
        for paths, allowed in opened:
            for path in paths:
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    _open_up(libc, rules, path, allowed & rights)
        _check(libc.syscall(RESTRICT_SELF, rules, 0), "landlock_restrict_self")
    finally:
        os.close(rules)


def _open_up(libc: ctypes.CDLL, rules: int, path: str, allowed: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            allowed &= OF_FILES
        _check(libc.syscall(ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", allowed, fd), 0), "landlock_add_rule")
    finally:
        os.close(fd)


def _program(calls: Calls, *, programs: bool) -> Iterator[bytes]:
    """The filter, instruction by instruction: operation, how far to jump where it is true and where it is not, value."""
    yield _step(LOAD, ARCHITECTURE)
    yield _step(JUMP_EQUAL, calls.architecture, yes=1)
    yield _step(RETURN, KILL)
    yield _step(LOAD, NUMBER)
    if calls.architecture == CALLS["x86_64"].architecture:
        yield _step(JUMP_AT_LEAST, X32, no=1)
        yield _step(RETURN, REFUSE)
    for number in calls.never if programs else calls.never + calls.starting:
        yield _step(JUMP_EQUAL, number, no=1)
        yield _step(RETURN, REFUSE)
    yield _step(JUMP_EQUAL, calls.socket, yes=1)
    yield _step(RETURN, ALLOW)
    if programs:
        # Local sockets are how such programs talk to themselves.
        yield _step(LOAD, FIRST_ARGUMENT)
        yield _step(JUMP_EQUAL, 1, no=1)
        yield _step(RETURN, ALLOW)
    yield _step(RETURN, REFUSE)


def _step(operation: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, yes, no, value)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _filter_calls(libc: ctypes.CDLL, program: bytes) -> None:
    given = _Filter(len(program) // 8, program)
    _check(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(given), 0, 0), "seccomp")


def _check(result: int, what: str) -> None:
    if result < 0:
        raise Uncaged(f"{what}: {os.strerror(ctypes.get_errno())}")
