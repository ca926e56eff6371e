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

__all__ = ["confine_self"]

# landlock_create_ruleset, landlock_add_rule and landlock_restrict_self have the same numbers everywhere.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL_DEV = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
READ_RIGHTS = EXECUTE | READ_FILE | READ_DIR
MAKE_SOCKET = 1 << 9
ALL_RIGHTS = (1 << 16) - 1
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
# The rights that each version of the interface knows, as the highest bit of them.
RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
# Sockets without a path and signals end where the process does, from version 6 on.
SCOPED, SCOPE = 6, 0b11

NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 1
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
# Numbers of the other interface of x86-64, which mean other calls.
X32_BIT = 0x40000000


@dataclass(frozen=True, slots=True)
class SyscallNumbers:
    """The numbers of system calls on one kind of processor. `never`: what reaches into other processes or the kernel; `starting`: programs."""

    architecture: int
    socket: int
    never: tuple[int, ...]
    starting: tuple[int, ...]


# ptrace, process_vm_readv and _writev, bpf, io_uring_setup, mount, unshare, setns, keyctl, perf_event_open, userfaultfd; execve, execveat.
SYSCALLS_BY_MACHINE: Mapping[str, SyscallNumbers] = {
    "x86_64": SyscallNumbers(0xC000003E, 41, (101, 310, 311, 321, 425, 165, 272, 308, 250, 298, 323), (59, 322)),
    "aarch64": SyscallNumbers(0xC00000B7, 198, (117, 270, 271, 280, 425, 40, 97, 268, 219, 241, 282), (221, 281)),
}


class SandboxFailed(Exception):
    """The system has not shut the process in."""


def confine_self(
    *, readable: Iterable[str], writable: Iterable[str] = (), meeting: Iterable[str] = (), programs: bool = False
) -> None:
    """Confine this thread and what it starts to these paths, without network.

    Local sockets and starting programs are allowed only with `programs`. `readable` and `writable` are directories or
    files, `meeting` are directories in which a local socket may be created; missing ones are skipped. What is already
    open stays open. If the kernel has no Landlock, file access is not restricted. Raises `SandboxFailed` if the system
    refuses.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    _check_syscall_result(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    if (version := get_landlock_version()) > 0:
        _restrict_files(libc, version, ((readable, READ_RIGHTS), (writable, ALL_RIGHTS), (meeting, MAKE_SOCKET)))
    calls = SYSCALLS_BY_MACHINE.get(platform.machine())
    if calls is not None:
        _install_seccomp_filter(libc, b"".join(_build_seccomp_filter(calls, programs=programs)))


def get_landlock_version() -> int:
    """Return the kernel's Landlock version, or 0 if it has none."""
    if sys.platform != "linux":
        return 0
    return max(ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1), 0)


def _restrict_files(libc: ctypes.CDLL, version: int, opened: Iterable[tuple[Iterable[str], int]]) -> None:
    rights = (1 << RIGHTS_BY_VERSION.get(version, 16)) - 1
    wanted = struct.pack("=QQQ", rights, 0, SCOPE) if version >= SCOPED else struct.pack("=Q", rights)
    rules = libc.syscall(CREATE_RULESET, wanted, ctypes.c_size_t(len(wanted)), 0)
    _check_syscall_result(rules, "landlock_create_ruleset")
    try:
        for paths, allowed in opened:
            for path in paths:
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    _add_path_rule(libc, rules, path, allowed & rights)
        _check_syscall_result(libc.syscall(RESTRICT_SELF, rules, 0), "landlock_restrict_self")
    finally:
        os.close(rules)


def _add_path_rule(libc: ctypes.CDLL, rules: int, path: str, allowed: int) -> None:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            allowed &= FILE_RIGHTS
        _check_syscall_result(
            libc.syscall(ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", allowed, fd), 0), "landlock_add_rule"
        )
    finally:
        os.close(fd)


def _build_seccomp_filter(calls: SyscallNumbers, *, programs: bool) -> Iterator[bytes]:
    """Yield the filter's instructions: operation, jump distances if true and if false, value."""
    yield _encode_bpf_step(LOAD, ARCHITECTURE)
    yield _encode_bpf_step(JUMP_EQUAL, calls.architecture, yes=1)
    yield _encode_bpf_step(RETURN, KILL)
    yield _encode_bpf_step(LOAD, NUMBER)
    if calls.architecture == SYSCALLS_BY_MACHINE["x86_64"].architecture:
        yield _encode_bpf_step(JUMP_AT_LEAST, X32_BIT, no=1)
        yield _encode_bpf_step(RETURN, REFUSE)
    for number in calls.never if programs else calls.never + calls.starting:
        yield _encode_bpf_step(JUMP_EQUAL, number, no=1)
        yield _encode_bpf_step(RETURN, REFUSE)
    yield _encode_bpf_step(JUMP_EQUAL, calls.socket, yes=1)
    yield _encode_bpf_step(RETURN, ALLOW)
    if programs:
        # Local sockets are how such programs talk to themselves.
        yield _encode_bpf_step(LOAD, FIRST_ARGUMENT)
        yield _encode_bpf_step(JUMP_EQUAL, 1, no=1)
        yield _encode_bpf_step(RETURN, ALLOW)
    yield _encode_bpf_step(RETURN, REFUSE)


def _encode_bpf_step(operation: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, yes, no, value)


class _SeccompProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _install_seccomp_filter(libc: ctypes.CDLL, program: bytes) -> None:
    given = _SeccompProgram(len(program) // 8, program)
    _check_syscall_result(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(given), 0, 0), "seccomp")


def _check_syscall_result(result: int, what: str) -> None:
    if result < 0:
        raise SandboxFailed(f"{what}: {os.strerror(ctypes.get_errno())}")
