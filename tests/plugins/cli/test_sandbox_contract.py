"""bubblewrap keeps the contract, and the contract notices when one of its defences is taken out."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from handrail import Bounds, Limits, Sandbox
from handrail.testing import SandboxContract
from handrail.testing.sandbox_harness import SandboxHarness
from handrail_cli.sandboxes import seccomp
from handrail_cli.sandboxes.bubblewrap import BubblewrapSandbox


class TestBubblewrap(SandboxContract):
    @pytest.fixture
    def sandbox(self) -> Sandbox:
        return BubblewrapSandbox()


Words = list[str]


def without(*taken: str) -> Callable[[Words], Words]:
    """The options without a run of words."""

    def change(words: Words) -> Words:
        kept: Words = []
        at = 0
        while at < len(words):
            if tuple(words[at : at + len(taken)]) == taken:
                at += len(taken)
            else:
                kept.append(words[at])
                at += 1
        assert kept != words, f"{taken} is no option of it any more"
        return kept

    return change


def unshared(words: Words) -> Words:
    """The network is the host's."""
    return [*words, "--share-net"]


def whole_disk(words: Words) -> Words:
    """All of the host's disk, read-only, in the place of a few folders."""
    at = words.index("/usr") - 1
    return [*words[:at], "--ro-bind", "/", "/", *words[words.index("--proc") :]]


def writable_programs(words: Words) -> Words:
    """A part of the system as it is."""
    return [*words, "--bind", "/usr/local", "/usr/local"]


def writable_settings(words: Words) -> Words:
    """/proc as bwrap leaves it."""
    at = words.index("--proc")
    return [*words[: at + 2], *words[words.index("--dev") :]]


def host_processes(words: Words) -> Words:
    """The processes of the host are seen."""
    at = words.index("--unshare-all")
    several = ("--unshare-ipc", "--unshare-net", "--unshare-uts")
    words = [*words[:at], *several, *words[at + 1 :]]
    return [word if word != "--proc" else "--bind" for word in words if word != "/proc"] + ["--bind", "/proc", "/proc"]


def drop(**fields: object) -> Callable[[Bounds], Bounds]:
    return lambda bounds: replace(bounds, **fields)


class Weakened(BubblewrapSandbox):
    """bubblewrap without one of its defences."""

    def __init__(
        self, change: Callable[[Words], Words] = list, bounds: Callable[[Bounds], Bounds] = lambda bounds: bounds
    ) -> None:
        super().__init__()
        self.change = change
        self.bounds = bounds

    def options(self, bounds: Bounds, cwd: Path) -> Iterator[str]:
        yield from self.change(list(super().options(self.bounds(bounds), cwd)))


class Unfiltered(BubblewrapSandbox):
    """bubblewrap that lets every system call through."""

    def filtering(self, bounds: Bounds) -> bytes:
        return struct.pack("<HBBI", seccomp.RETURN, 0, 0, seccomp.ALLOW)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root has powers to be dropped")


@pytest.mark.parametrize(
    ("test", "weak"),
    [
        pytest.param("test_there_is_no_power_and_none_can_be_gained", Weakened(without("--cap-drop", "ALL")), marks=AS_ROOT),
        pytest.param("test_nothing_outside_is_written", Weakened(lambda w: [*w, "--bind", "/tmp", "/tmp"]), id="tmp-of-the-host"),
        pytest.param("test_the_system_is_not_written", Weakened(writable_programs), marks=AS_ROOT, id="usr-writable"),
        pytest.param("test_no_setting_of_the_kernel_is_changed", Weakened(writable_settings), marks=AS_ROOT, id="proc-sys"),
        pytest.param("test_the_home_and_other_folders_are_not_read", Weakened(lambda w: [*w, "--ro-bind", "/tmp", "/tmp"]), id="home-shown"),
        pytest.param("test_no_port_of_the_host_is_reached", Weakened(unshared), id="network-of-the-host"),
        pytest.param("test_a_command_with_hosts_finds_the_listener_and_no_other_way_out", Weakened(unshared), id="hosts-beside-the-network"),
        pytest.param("test_nothing_is_typed_into_the_terminal", Weakened(without("--new-session")), id="same-terminal"),
        pytest.param("test_nothing_is_left_when_it_is_killed", Weakened(without("--die-with-parent")), id="outlives"),
        pytest.param("test_secrets_are_not_read", Weakened(bounds=drop(masked=())), id="secrets-shown"),
        pytest.param("test_what_is_kept_cannot_be_changed_moved_or_replaced", Weakened(bounds=drop(kept=())), id="nothing-kept"),
        pytest.param("test_what_is_kept_cannot_be_changed_moved_or_replaced", Weakened(bounds=drop(anchored=())), id="not-anchored"),
        pytest.param("test_tmp_is_private_and_lasts", Weakened(lambda w: [*w, "--bind", "/tmp", "/tmp"]), id="tmp-shared"),
    ],
)  # fmt: skip
def test_the_contract_notices_a_defence_that_is_missing(test: str, weak: Weakened, tmp_path: Path) -> None:
    try:
        with pytest.raises(AssertionError):
            _run(test, weak, tmp_path)
    finally:
        asyncio.run(weak.close())


@pytest.mark.parametrize(
    "args", [("test_a_dangerous_call_is_refused", "keyctl"), ("test_a_dangerous_call_is_refused", "ptrace"), ("test_no_rare_kind_of_socket_is_made",)]
)  # fmt: skip
def test_the_contract_notices_a_missing_filter(args: tuple[str, ...], tmp_path: Path) -> None:
    calls = {"keyctl": "libc.syscall(250, 0, -3, 0)", "ptrace": "libc.ptrace(0, 0, None, None)"}
    name, *which = args
    with pytest.raises(AssertionError):
        getattr(SandboxContract(), name)(
            SandboxHarness(Unfiltered(), tmp_path), *(word for w in which for word in (w, calls[w]))
        )


def test_the_contract_notices_missing_limits(tmp_path: Path) -> None:
    box = SandboxHarness(BubblewrapSandbox(), tmp_path)
    box.bounds = replace(box.bounds, limits=Limits(None, None, None, None))
    with pytest.raises(AssertionError):
        SandboxContract().test_a_fork_bomb_stays_small_and_the_host_goes_on(box)


def _run(test: str, sandbox: Sandbox, folder: Path) -> None:
    getattr(SandboxContract(), test)(SandboxHarness(sandbox, folder))
