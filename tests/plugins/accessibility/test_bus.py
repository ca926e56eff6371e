"""The connection to an accessibility bus, with a bus that really ends."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from handrail_accessibility.atspi.bus import DBUS_DAEMON, AccessibilityBus, BusLost, CallFailed


@pytest.fixture
def daemon() -> Iterator[subprocess.Popen[str]]:
    command = ["dbus-daemon", "--session", "--nofork", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        yield process
        process.kill()


async def test_a_bus_that_ends_is_lost_for_every_call_and_reported_by_nothing_else(
    daemon: subprocess.Popen[str],
) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    assert daemon.stdout is not None
    bus = await AccessibilityBus._open(daemon.stdout.readline().strip(), "session bus")
    await bus.call(*DBUS_DAEMON, "GetId")
    daemon.kill()
    daemon.wait()
    # Nothing is awaited between the end and these calls: they find out by themselves.
    failures = await asyncio.gather(*(bus.call(*DBUS_DAEMON, "GetId") for _ in range(4)), return_exceptions=True)
    assert [type(failure) for failure in failures] == [BusLost] * 4
    await bus.close()
    del failures, bus
    gc.collect()
    assert reported == []


async def test_more_than_the_kernel_takes_at_once_is_sent_when_it_can_be(daemon: subprocess.Popen[str]) -> None:
    assert daemon.stdout is not None
    bus = await AccessibilityBus._open(daemon.stdout.readline().strip(), "session bus")
    daemon.send_signal(signal.SIGSTOP)
    asked = [
        asyncio.ensure_future(bus.call(*DBUS_DAEMON, "GetNameOwner", "s", ["x" * 1_000_000], timeout=60))
        for _ in range(3)
    ]
    # Each has been made, and the kernel's buffer is full.
    for _ in range(20):
        await asyncio.sleep(0)
    daemon.send_signal(signal.SIGCONT)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers] == [CallFailed] * 3
    await bus.close()
