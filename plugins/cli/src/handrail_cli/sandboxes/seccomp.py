"""A filter of system calls for sandboxed commands, as the program that the kernel takes (classic BPF, seccomp(2)).

What it refuses is of no use to a build or a test, and has been the way out of other sandboxes: tracing, keys, mounting, new namespaces, loading
code into the kernel, rare kinds of sockets, typing into the terminal, files that run as their owner. Numbers are those of Linux's syscall tables.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

# <linux/bpf_common.h>, <linux/seccomp.h>
LOAD, AND, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
# Offsets in struct seccomp_data: the call's number, the architecture, the low half of each argument (both machines are little-endian).
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
X32_BIT = 0x40000000
# A program longer than this is refused by the kernel; jumps reach 255 steps.
MAX_STEPS = 4096

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
F_SETSIG, F_SETLEASE, PR_SET_PDEATHSIG = 10, 1024, 1
SIGKILL, SIGCONT, SIGIO = 9, 18, 29
# The bits of clone's flags that are the signal its parent gets when the child ends.
EXIT_SIGNAL_BITS = 0xFF
# S_ISUID, S_ISGID: whoever runs the file on the host later does so as its owner. O_CREAT, and the bit of its own in O_TMPFILE.
SETUID_BITS = 0o6000
CREATE_FLAGS = 0o100 | 0o20000000
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16


@dataclass(frozen=True, slots=True)
class MachineArchitecture:
    """One architecture: what the kernel calls it, whether a second table hides in it (x32), and the numbers of the calls."""

    audit: int
    calls: Mapping[str, int]
    x32: bool = False


# Calls that are refused with EPERM, whatever their arguments.
REFUSED_CALLS: Mapping[str, tuple[int | None, int | None]] = {
    # Other processes: their memory, registers and descriptors.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    # Keys of the person's session, which no namespace divides.
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # Code and faults inside the kernel.
    "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "create_module": (174, None), "query_module": (178, None), "get_kernel_syms": (177, None),
    # What is mounted where.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    # Namespaces: a new one of users gives every power inside it, and with it much of the kernel to attack.
    "unshare": (272, 97), "setns": (308, 268),
    # The machine as a whole.
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "vhangup": (153, 58),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "uselib": (134, None), "nfsservctl": (180, 42), "lookup_dcookie": (212, 18),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "mbind": (237, 235),
}  # fmt: skip
# Calls that are said not to exist, so that programs take their older way: its arguments cannot be looked at, or it goes around this filter.
UNKNOWN_CALLS: Mapping[str, tuple[int | None, int | None]] = {
    # They can have the kernel send SIGCONT, to a process that is stopped while a program runs on the host.
    "timer_create": (222, 107), "mq_notify": (244, 184),
    "openat2": (437, 437), "clone3": (435, 435), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
}  # fmt: skip
# Calls that are refused by an argument.
CHECKED_CALLS: Mapping[str, tuple[int | None, int | None]] = {
    "clone": (56, 220), "ioctl": (16, 29), "socket": (41, 198), "socketpair": (53, 199),
    "openat": (257, 56), "open": (2, None), "creat": (85, None),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "fcntl": (72, 25), "prctl": (157, 167), "mkdir": (83, None), "mkdirat": (258, 34), "mknod": (133, None), "mknodat": (259, 33),
}  # fmt: skip
# Which argument is the mode of a file. Of calls that open one, it is a mode only with a flag that makes the file, one argument before it.
MODE_ARGUMENTS: Mapping[str, int] = {
    "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mkdir": 1, "mkdirat": 2, "mknod": 1, "mknodat": 2,
}  # fmt: skip
CREATION_MODE_ARGUMENTS: Mapping[str, int] = {"openat": 3, "open": 2}
MACHINES: Mapping[str, MachineArchitecture] = {
    name: MachineArchitecture(
        audit,
        {
            call: n[column]
            for call, n in {**REFUSED_CALLS, **UNKNOWN_CALLS, **CHECKED_CALLS}.items()
            if n[column] is not None
        },  # pyright: ignore[reportArgumentType]
        x32=x32,
    )
    for name, audit, column, x32 in (("x86_64", 0xC000003E, 0, True), ("aarch64", 0xC00000B7, 1, False))
}


@dataclass(slots=True)
class _FilterProgram:
    """Steps in the making; each check falls through to the next when it does not apply."""

    steps: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])

    def add(self, code: int, value: int, *, then: int = 0, otherwise: int = 0) -> None:
        self.steps.append((code, then, otherwise, value))

    def refuse(self, number: int) -> None:
        self.add(RETURN, ERRNO | number)

    def packed(self) -> bytes:
        return b"".join(struct.pack("<HBBI", *step) for step in self.steps)


@cache
def build_filter_program(*, network: bool, local_sockets: bool = True, machine: str | None = None) -> bytes | None:
    """Return the filter for this machine (or the named one); None if its system calls are unknown.

    With the `network` of the host, Unix sockets are refused, too: abstract ones (a desktop's bus, an X server) are
    reachable through it. They are also refused without `local_sockets`.
    """
    found = MACHINES.get(machine or platform.machine())
    if found is None:
        return None
    made = _FilterProgram()
    made.add(LOAD, ARCHITECTURE)
    made.add(JUMP_EQUAL, found.audit, then=1)
    made.add(RETURN, KILL)
    made.add(LOAD, NUMBER)
    if found.x32:
        made.add(JUMP_AT_LEAST, X32_BIT, otherwise=1)
        made.refuse(errno.ENOSYS)
    # First what is called most.
    for call, argument in CREATION_MODE_ARGUMENTS.items():
        _refuse_setuid_mode(made, found, call, argument, only_new=True)
    for call, argument in MODE_ARGUMENTS.items():
        _refuse_setuid_mode(made, found, call, argument)
    for call in REFUSED_CALLS:
        _refuse_call(made, found, call, errno.EPERM)
    for call in UNKNOWN_CALLS:
        _refuse_call(made, found, call, errno.ENOSYS)
    _limit_clone(made, found.calls["clone"])
    _refuse_wake_at_parent_death(made, found.calls["prctl"])
    _refuse_terminal_input(made, found.calls["ioctl"])
    _refuse_leases(made, found.calls["fcntl"])
    named = () if network or not local_sockets else (AF_UNIX,)
    _limit_socket_families(made, found.calls["socket"], families=(*named, AF_INET, AF_INET6))
    _limit_socket_families(made, found.calls["socketpair"], families=(AF_UNIX,), netlink=False)
    made.add(RETURN, ALLOW)
    assert len(made.steps) <= MAX_STEPS
    return made.packed()


def _refuse_call(made: _FilterProgram, machine: MachineArchitecture, call: str, number: int) -> None:
    if call in machine.calls:
        made.add(JUMP_EQUAL, machine.calls[call], otherwise=1)
        made.refuse(number)


def _add_for_call(made: _FilterProgram, number: int, body: Sequence[tuple[int, int, int, int]]) -> None:
    """Add steps for one system call only; its number is loaded again after them."""
    made.add(JUMP_EQUAL, number, otherwise=len(body) + 1)
    made.steps.extend(body)
    made.add(LOAD, NUMBER)


def _refuse_setuid_mode(
    made: _FilterProgram, machine: MachineArchitecture, call: str, argument: int, *, only_new: bool = False
) -> None:
    """Refuse to make or to change a file that runs as its owner or group, as systemd does for RestrictSUIDSGID."""
    if call not in machine.calls:
        return
    refusing = [
        (LOAD, 0, 0, ARGUMENTS + 8 * argument),
        (JUMP_ANY_BIT, 0, 1, SETUID_BITS),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    flags = [(LOAD, 0, 0, ARGUMENTS + 8 * (argument - 1)), (JUMP_ANY_BIT, 1, 0, CREATE_FLAGS), (RETURN, 0, 0, ALLOW)]
    _add_for_call(made, machine.calls[call], [*flags, *refusing] if only_new else refusing)


def _limit_clone(made: _FilterProgram, number: int) -> None:
    """Refuse new namespaces, and a child whose end sends its parent SIGCONT or SIGKILL: either would wake a stopped process."""
    steps = [
        (LOAD, 0, 0, ARGUMENTS),
        (JUMP_ANY_BIT, 3, 0, NEW_NAMESPACES),
        (AND, 0, 0, EXIT_SIGNAL_BITS),
        (JUMP_EQUAL, 1, 0, SIGCONT),
        (JUMP_EQUAL, 0, 1, SIGKILL),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
    ]
    _add_for_call(made, number, steps)


def _refuse_wake_at_parent_death(made: _FilterProgram, number: int) -> None:
    """Refuse to have SIGCONT sent when the parent ends: it would wake a stopped process."""
    steps = [
        (LOAD, 0, 0, ARGUMENTS),
        (JUMP_EQUAL, 0, 3, PR_SET_PDEATHSIG),
        (LOAD, 0, 0, ARGUMENTS + 8),
        (JUMP_EQUAL, 0, 1, SIGCONT),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
    ]
    _add_for_call(made, number, steps)


def _refuse_terminal_input(made: _FilterProgram, number: int) -> None:
    requests = [
        step
        for request in (TIOCSTI, TIOCLINUX)
        for step in ((JUMP_EQUAL, 0, 1, request), (RETURN, 0, 0, ERRNO | errno.EPERM))
    ]
    _add_for_call(made, number, [(LOAD, 0, 0, ARGUMENTS + 8), *requests])


def _refuse_leases(made: _FilterProgram, number: int) -> None:
    """Refuse leases, which make whoever opens the file on the host wait, and a signal of one's choice for what happens to a descriptor.

    SIGCONT would wake a stopped process, and SIGKILL ends one, which wakes what is orphaned by that.
    """
    steps = [
        (LOAD, 0, 0, ARGUMENTS + 8),
        (JUMP_EQUAL, 4, 0, F_SETLEASE),
        (JUMP_EQUAL, 0, 4, F_SETSIG),
        (LOAD, 0, 0, ARGUMENTS + 16),
        (JUMP_EQUAL, 2, 0, 0),
        (JUMP_EQUAL, 1, 0, SIGIO),
        (RETURN, 0, 0, ERRNO | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    _add_for_call(made, number, steps)


def _limit_socket_families(made: _FilterProgram, number: int, *, families: Sequence[int], netlink: bool = True) -> None:
    """Allow only these socket families, and for netlink only interfaces and routes (protocol 0)."""
    _add_for_call(made, number, list(_iter_family_checks(families, netlink)))


def _iter_family_checks(families: Sequence[int], netlink: bool) -> Iterator[tuple[int, int, int, int]]:
    refusal = (RETURN, 0, 0, ERRNO | errno.EAFNOSUPPORT)
    left = len(families)
    behind = 4 if netlink else 1
    yield (LOAD, 0, 0, ARGUMENTS)
    for family in families:
        left -= 1
        yield (JUMP_EQUAL, left + behind, 0, family)
    if netlink:
        yield (JUMP_EQUAL, 0, 2, AF_NETLINK)
        yield (LOAD, 0, 0, ARGUMENTS + 16)
        yield (JUMP_EQUAL, 1, 0, 0)
    yield refusal
