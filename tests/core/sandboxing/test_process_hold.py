"""Processes of sandboxes that are stopped while a program runs on the host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from handrail.sandbox.quarantine import HostRun

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are stopped and looked at through /proc")
# Counts, so that it is seen to run.
COUNTING = """
import sys
sys.stdout.write("x"); sys.stdout.flush()
while sys.stdin.read(1):
    sys.stdout.write("x"); sys.stdout.flush()
"""


@contextmanager
def counting() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", COUNTING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        try:
            yield process
        finally:
            process.kill()


def test_a_process_that_stays_stopped_runs_on_afterwards() -> None:
    run = HostRun()
    with counting() as process:
        assert run.hold.hold([process.pid])
        run.hold.end_woken()
        assert not run.hold.woken
        run.hold.release()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"n")
        process.stdin.flush()
        assert process.stdout.read(1) == b"x"
    assert "were paused" in next(run.notes())


@pytest.mark.parametrize("again", [False, True])
def test_a_process_that_woke_is_ended_and_told_of(again: bool) -> None:
    run = HostRun()
    with counting() as process:
        assert run.hold.hold([process.pid])
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"n")
        process.stdin.flush()
        os.kill(process.pid, signal.SIGCONT)
        process.stdout.read(1)
        if again:
            # Stopped again, it looks as it did.
            os.kill(process.pid, signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
        run.hold.end_woken()
        assert run.hold.woken
        assert process.wait(10) == -signal.SIGKILL
    assert "have run or ended meanwhile" in next(run.notes())


def test_a_process_that_ended_while_it_was_stopped_is_told_of() -> None:
    run = HostRun()
    with counting() as process:
        assert run.hold.hold([process.pid])
        process.kill()
        process.wait(10)
        run.hold.end_woken()
    assert run.hold.woken
