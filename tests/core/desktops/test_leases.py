"""One holder at a time, in this process and in others, and a switch that stops everything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from handrail import ToolResult, Write, tool
from handrail.desktop.leases import ResourceLeases
from handrail.desktop.stop_switches import StopSwitches
from handrail.testing import open_test_runtime, open_test_session

HOLDER = """
import anyio, sys
from pathlib import Path
from handrail.desktop.leases import ResourceLeases

async def main():
    async with ResourceLeases(Path(sys.argv[1])).hold(sys.argv[2]):
        print("held", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)

anyio.run(main)
"""


@contextmanager
def another_process(folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the lease until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"]},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        process.stdin.close()
        process.stdout.close()


async def test_tasks_hold_it_one_after_another_first_come_first_served(tmp_path: Path) -> None:
    leases = ResourceLeases(tmp_path)
    order: list[int] = []

    async def use(number: int) -> None:
        async with leases.hold("pen"):
            order.append(number)
            await anyio.sleep(0.01)
            order.append(number)

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(use, number)
            await anyio.lowlevel.checkpoint()
    assert order == [0, 0, 1, 1, 2, 2, 3, 3]


async def test_different_names_do_not_wait_for_each_other(tmp_path: Path) -> None:
    leases = ResourceLeases(tmp_path)
    with anyio.fail_after(30):
        async with leases.hold("pen"), leases.hold("paper"), leases.hold("desktop:x1"), leases.hold("desktop:x2"):
            pass


async def test_a_desktop_is_held_against_other_processes(tmp_path: Path) -> None:
    waited: list[bool] = []
    with another_process(tmp_path, "desktop:x99") as process:
        with anyio.move_on_after(0.1) as scope:
            async with ResourceLeases(tmp_path).hold("desktop:x99", waiting=lambda: waited.append(True)):
                pytest.fail("two processes hold one desktop")
        assert scope.cancelled_caught
        assert waited == [True]
        assert process.stdin is not None
        process.stdin.close()
        with anyio.fail_after(30):
            async with ResourceLeases(tmp_path).hold("desktop:x99"):
                pass


async def test_a_holder_that_is_killed_gives_it_up(tmp_path: Path) -> None:
    with another_process(tmp_path, "desktop:x99") as process:
        process.kill()
        with anyio.fail_after(30):
            async with ResourceLeases(tmp_path).hold("desktop:x99"):
                pass


async def test_a_holder_that_fails_gives_it_up(tmp_path: Path) -> None:
    leases = ResourceLeases(tmp_path)
    with pytest.raises(RuntimeError):
        async with leases.hold("desktop:x1"):
            raise RuntimeError
    with anyio.fail_after(30):
        async with leases.hold("desktop:x1"):
            pass


async def test_waiting_and_giving_up_leaves_nothing_open(tmp_path: Path) -> None:
    leases = ResourceLeases(tmp_path)
    with another_process(tmp_path, "desktop:x99"):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            with anyio.move_on_after(0.03):
                async with leases.hold("desktop:x99"):
                    pass
        assert len(os.listdir("/proc/self/fd")) == before


@tool(exclusive="desktop")
async def press() -> str:
    """Press a key."""
    await anyio.sleep(0.01)
    return "pressed"


async def test_two_sessions_on_one_desktop_take_turns(tmp_path: Path) -> None:
    inside = 0
    most = 0

    @tool(exclusive="desktop")
    async def use() -> None:
        """Use the desktop."""
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await anyio.sleep(0.02)
        inside -= 1

    environment = {"DISPLAY": "fake:0"}
    settings = {"desktop": "current"}
    async with (
        open_test_runtime(tools=[use], environment=environment, settings=settings, folder=tmp_path) as runtime,
        runtime.session() as one,
        runtime.session() as other,
        anyio.create_task_group() as group,
    ):
        for session in (one, other, one, other):
            group.start_soon(session.call, "use")
    assert most == 1


async def test_the_stop_switch_stops_what_runs_and_what_comes_until_it_is_released(tmp_path: Path) -> None:
    started = anyio.Event()

    @tool(effects=[Write("session")])
    async def act() -> None:
        """Act for long."""
        started.set()
        await anyio.sleep(60)

    @tool()
    async def look() -> str:
        """Look."""
        return "seen"

    async with open_test_session(tools=[act, look], folder=tmp_path) as session:
        stops: StopSwitches = session.runtime.stops
        results: list[ToolResult] = []

        async def run() -> None:
            results.append(await session.call("act"))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await started.wait()
                # As another process does it.
                StopSwitches(session.runtime.places.state / "stops").engage()
        assert (results[0].status, results[0].error_code) == ("cancelled", "failsafe")
        refused = await session.call("act")
        assert refused.error_code == "failsafe"
        assert "resume" in refused["error"]["message"]
        assert (await session.call("look")).ok
        assert stops.all() == ["every"]
        assert stops.release()
        assert not stops.release()
        assert not stops.all()


def test_a_switch_of_one_desktop_leaves_the_others(tmp_path: Path) -> None:
    stops = StopSwitches(tmp_path / "stops")
    assert not stops.engaged("x1")
    stops.engage("x1")
    assert stops.engaged("x1")
    assert not stops.engaged("x2")
    stops.engage()
    assert stops.engaged("x2")
    assert stops.all() == ["every", "x1"]
