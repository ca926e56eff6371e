"""The filter of system calls, carried out step by step as the kernel does."""

from __future__ import annotations

import errno
import struct

import pytest

from handrail_cli.sandboxes import seccomp
from handrail_cli.sandboxes.seccomp import ALLOW, ERRNO, KILL, MACHINES, X32_BIT, build_filter_program

CLONE_THREAD = 0x10000
REFUSED = ERRNO | errno.EPERM
ABSENT = ERRNO | errno.ENOSYS
NO_FAMILY = ERRNO | errno.EAFNOSUPPORT


def outcome(machine: str, call: str | int, *args: int, network: bool = False, audit: int | None = None) -> int:
    """What the filter says to a call."""
    found = MACHINES[machine]
    number = found.calls[call] if isinstance(call, str) else call
    given = [*args, *[0] * (6 - len(args))]
    data = struct.pack("<IIQ6Q", number, found.audit if audit is None else audit, 0, *given)
    code = build_filter_program(network=network, machine=machine)
    assert code is not None
    steps = [struct.unpack_from("<HBBI", code, at) for at in range(0, len(code), 8)]
    at, loaded = 0, 0
    while True:
        kind, then, otherwise, value = steps[at]
        at += 1
        match kind:
            case seccomp.LOAD:
                loaded = struct.unpack_from("<I", data, value)[0]
            case seccomp.RETURN:
                return value
            case seccomp.AND:
                loaded &= value
            case seccomp.JUMP_EQUAL:
                at += then if loaded == value else otherwise
            case seccomp.JUMP_AT_LEAST:
                at += then if loaded >= value else otherwise
            case seccomp.JUMP_ANY_BIT:
                at += then if loaded & value else otherwise
            case _:
                raise AssertionError(kind)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "args", "expected"),
    [
        *(
            pytest.param(call, (), REFUSED, id=call)
            for call in seccomp.REFUSED_CALLS
            if call in MACHINES["aarch64"].calls
        ),
        *(pytest.param(call, (), ABSENT, id=call) for call in seccomp.UNKNOWN_CALLS),
        pytest.param("clone", (CLONE_THREAD | 17,), ALLOW, id="a-thread"),
        pytest.param("clone", (0x10000000 | 17,), REFUSED, id="a-namespace-of-users"),
        pytest.param("clone", (0x00020000,), REFUSED, id="a-namespace-of-mounts"),
        pytest.param("ioctl", (0, 0x5401), ALLOW, id="TCGETS"),
        pytest.param("ioctl", (0, 0x5412), REFUSED, id="TIOCSTI"),
        pytest.param("ioctl", (0, 0xFFFFFFFF_00005412), REFUSED, id="TIOCSTI-with-a-high-half"),
        pytest.param("ioctl", (0, 0x541C), REFUSED, id="TIOCLINUX"),
        pytest.param("clone", (0x1200000 | 18,), REFUSED, id="a-child-whose-end-wakes"),
        pytest.param("clone", (0x1200000 | 9,), REFUSED, id="a-child-whose-end-kills"),
        pytest.param("clone", (0x1200000 | 17,), ALLOW, id="an-ordinary-child"),
        pytest.param("prctl", (1, 18), REFUSED, id="to-be-woken-by-a-parent's-end"),
        pytest.param("prctl", (1, 9), ALLOW, id="to-end-with-the-parent"),
        pytest.param("prctl", (15, 18), ALLOW, id="a-name"),
        pytest.param("fcntl", (3, 10, 18), REFUSED, id="to-be-woken-by-a-file"),
        pytest.param("fcntl", (3, 10, 9), REFUSED, id="to-be-ended-by-a-file"),
        pytest.param("fcntl", (3, 10, 10), REFUSED, id="any-other-signal-for-a-file"),
        pytest.param("fcntl", (3, 10, 0), ALLOW, id="the-usual-signal-for-a-file"),
        pytest.param("fcntl", (3, 1024, 1), REFUSED, id="to-make-others-wait-for-a-file"),
        pytest.param("fcntl", (3, 10, 29), ALLOW, id="another-signal-for-a-file"),
        pytest.param("fcntl", (3, 4, 18), ALLOW, id="flags-of-a-file"),
        pytest.param("openat", (0, 0, 0o100, 0o644), ALLOW, id="a-new-file"),
        pytest.param("openat", (0, 0, 0o100, 0o4755), REFUSED, id="a-new-file-that-runs-as-its-owner"),
        pytest.param("openat", (0, 0, 0o20200002, 0o2755), REFUSED, id="a-file-without-a-name-that-runs-as-its-group"),
        pytest.param("openat", (0, 0, 0o2, 0o6000), ALLOW, id="a-mode-that-is-none-without-a-new-file"),
        pytest.param("fchmod", (0, 0o1777), ALLOW, id="sticky"),
        pytest.param("fchmod", (0, 0o4755), REFUSED, id="fchmod"),
        pytest.param("fchmodat", (0, 0, 0o2755), REFUSED, id="fchmodat"),
        pytest.param("fchmodat2", (0, 0, 0o6755, 0), REFUSED, id="fchmodat2"),
        pytest.param("mknodat", (0, 0, 0o104755, 0), REFUSED, id="mknodat"),
        pytest.param("mknodat", (0, 0, 0o010644, 0), ALLOW, id="a-pipe"),
        pytest.param("mkdirat", (0, 0, 0o755), ALLOW, id="a-folder"),
        pytest.param("socket", (1, 1, 0), ALLOW, id="unix"),
        pytest.param("socket", (2, 1, 0), ALLOW, id="inet"),
        pytest.param("socket", (10, 1, 0), ALLOW, id="inet6"),
        pytest.param("socket", (16, 3, 0), ALLOW, id="netlink-route"),
        pytest.param("socket", (16, 3, 9), NO_FAMILY, id="netlink-audit"),
        pytest.param("socket", (17, 3, 0), NO_FAMILY, id="packet"),
        pytest.param("socket", (40, 1, 0), NO_FAMILY, id="vsock"),
        pytest.param("socketpair", (1, 1, 0), ALLOW, id="a-pair"),
        pytest.param("socketpair", (16, 3, 0), NO_FAMILY, id="a-pair-of-netlink"),
    ],
)
def test_a_call_is_let_through_or_refused(machine: str, call: str, args: tuple[int, ...], expected: int) -> None:
    assert outcome(machine, call, *args) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_with_the_network_of_the_host_no_socket_of_a_file_is_made(machine: str) -> None:
    assert outcome(machine, "socket", 1, 1, 0, network=True) == NO_FAMILY
    assert outcome(machine, "socket", 2, 1, 0, network=True) == ALLOW
    assert outcome(machine, "socketpair", 1, 1, 0, network=True) == ALLOW


def test_another_architecture_is_killed_and_x32_does_not_exist() -> None:
    assert outcome("x86_64", 0, audit=0x40000003) == KILL
    assert outcome("x86_64", X32_BIT | 0) == ABSENT
    assert outcome("x86_64", X32_BIT | 521) == ABSENT


@pytest.mark.parametrize("machine", MACHINES)
def test_ordinary_calls_pass(machine: str) -> None:
    known = {*MACHINES[machine].calls.values()}
    passed = [number for number in range(300) if number not in known]
    assert all(outcome(machine, number) == ALLOW for number in passed)


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    assert build_filter_program(network=False, machine="sparc") is None


@pytest.mark.parametrize(
    ("call", "args"), [("chmod", (0, 0o4755)), ("creat", (0, 0o2755)), ("open", (0, 0o101, 0o4755))]
)
def test_calls_of_one_machine_alone_make_no_file_that_runs_as_its_owner(call: str, args: tuple[int, ...]) -> None:
    assert outcome("x86_64", call, *args) == REFUSED
    assert outcome("x86_64", call, *args[:-1], 0o755) == ALLOW
