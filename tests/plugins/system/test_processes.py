"""Processes as `process_info` tells of them: real ones, started here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

import handrail_system.hooks
from handrail import Session, Tool
from handrail.testing import ToolContract, open_test_session
from handrail_system.processes import explain_blind_spot, process_info

BUSY = "while True: pass"
LARGE = "import sys, time; kept = bytearray(80_000_000); print(flush=True); time.sleep(60)"


@pytest.fixture
async def session() -> AsyncGenerator[Session, None]:
    async with open_test_session(plugins={"system": handrail_system.hooks}) as opened:
        yield opened


@pytest.fixture
def named(tmp_path: Path) -> str:
    """A Python under a name that nothing else on the machine has."""
    name = f"hr{os.getpid()}x"
    (tmp_path / name).symlink_to(os.path.realpath(sys.executable))
    return str(tmp_path / name)


@pytest.fixture
def start(named: str) -> Iterator[Any]:
    started: list[subprocess.Popen[str]] = []

    def begin(code: str, *more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([named, "-c", code, *more], stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


async def listed(session: Session, **args: Any) -> Sequence[Mapping[str, Any]]:
    result = await session.call("process_info", args)
    assert result["status"] == "success", result
    return result["processes"]


class TestProcessInfo(ToolContract):
    @pytest.fixture
    def tool(self) -> Tool:
        return process_info

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {"limit": 2}

    @pytest.fixture
    def bad_args(self) -> Sequence[Mapping[str, Any]]:
        return [{"limit": 0}, {"sort": "nice"}, {"limit": 10_000}]


async def test_a_process_is_told_with_all_that_identifies_it(session: Session, start: Any, named: str) -> None:
    process = start(LARGE)
    process.stdout.readline()
    (found,) = await listed(session, name=Path(named).name.upper())
    assert set(found) == {"pid", "name", "cpu", "memory", "user", "started"}
    assert (found["pid"], found["name"]) == (process.pid, Path(named).name)
    assert 80_000_000 < found["memory"] < 400_000_000
    assert found["user"] == psutil.Process().username()
    assert abs((datetime.now(UTC) - datetime.fromisoformat(found["started"])).total_seconds()) < 60


async def test_use_of_the_processor_is_that_of_now_and_not_of_the_whole_life(session: Session, start: Any) -> None:
    busy, idle = start(BUSY), start("sum(range(10**7)); print(flush=True); import time; time.sleep(60)")
    idle.stdout.readline()
    shares = {found["pid"]: found["cpu"] for found in await listed(session, name="hr")}
    # Others may use this machine, too.
    assert shares[busy.pid] > 10
    assert shares[idle.pid] < 5


async def test_what_uses_most_comes_first(session: Session, start: Any) -> None:
    busy = start(BUSY)
    large = start(LARGE)
    large.stdout.readline()
    by_cpu = [found["pid"] for found in await listed(session, name="hr")]
    by_memory = [found["pid"] for found in await listed(session, name="hr", sort="memory")]
    assert by_cpu.index(busy.pid) < by_cpu.index(large.pid)
    assert by_memory.index(large.pid) < by_memory.index(busy.pid)


@pytest.mark.parametrize(
    ("sort", "key", "falling"),
    [("memory", "memory", True), ("pid", "pid", False), ("started", "started", True), ("cpu", "cpu", True)],
)
async def test_the_order_is_that_which_was_asked_for(session: Session, sort: str, key: str, falling: bool) -> None:
    values = [found[key] for found in await listed(session, sort=sort) if found[key] is not None]
    assert values == sorted(values, reverse=falling)


async def test_what_is_left_out_is_counted(session: Session) -> None:
    result = await session.call("process_info", {"limit": 1, "sort": "pid"})
    assert len(result["processes"]) == 1
    assert result["truncated"]
    assert result["total"] > 1


async def test_nothing_found_is_no_failure_and_is_said(session: Session) -> None:
    result = await session.call("process_info", {"name": "no such process"})
    assert (result["status"], result["processes"], result["total"]) == ("success", [], 0)
    assert "'no such process'" in result["note"]


async def test_no_command_line_is_shown(session: Session, start: Any) -> None:
    process = start(LARGE, "--password=hunter2hunter2")
    process.stdout.readline()
    assert "hunter2" not in str(await session.call("process_info", {"name": "hr"}))


async def test_a_process_that_has_ended_but_for_its_number_is_told(session: Session, start: Any) -> None:
    process = start("pass")
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        await anyio.sleep(0.01)
    found = [found for found in await listed(session, name="hr", limit=1000) if found["pid"] == process.pid]
    assert found[0]["name"]
    assert not found[0]["memory"]


async def test_one_that_ends_while_it_is_measured_is_left_out(session: Session, start: Any, named: str) -> None:
    start("import time; time.sleep(0.2)")
    start("print(flush=True); import time; time.sleep(60)").stdout.readline()
    result = await session.call("process_info", {"name": Path(named).name})
    living = [found for found in result["processes"] if found["memory"]]
    assert len(living) == 1


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="starting as another user takes root")
async def test_processes_of_others_are_told_as_far_as_they_can_be_seen(session: Session) -> None:
    async with await anyio.open_process(["setpriv", "--reuid=54321", "--clear-groups", "sleep", "60"]) as other:
        try:
            while psutil.Process(other.pid).name() != "sleep":
                await anyio.sleep(0.01)
            found = {each["pid"]: each for each in await listed(session, name="sleep", limit=1000)}
            # A user whom nobody has given a name.
            assert found[other.pid]["user"] == "54321"
        finally:
            other.kill()


def layout(root: Path, *, mount: str = "rw", namespace: str = "pid:[4026531836]") -> Path:
    (root / "proc/self/ns").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(f"22 27 0:21 / /proc rw,nosuid - proc proc {mount}\n")
    (root / "proc/self/ns/pid").symlink_to(namespace)
    return root


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({}, None),
        ({"mount": "rw,hidepid=0"}, None),
        ({"mount": "rw,hidepid=off"}, None),
        ({"mount": "rw,gid=4,hidepid=2"}, "hides the processes of other users"),
        ({"mount": "rw,hidepid=invisible"}, "hides the processes of other users"),
        ({"namespace": "pid:[4026532201]"}, "container"),
    ],
)
def test_it_is_said_when_there_may_be_more_than_can_be_seen(tmp_path: Path, told: Any, why: str | None) -> None:
    found = explain_blind_spot(layout(tmp_path, **told))
    assert found is None if why is None else why in str(found)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="a namespace of its own takes root")
def test_what_runs_apart_sees_itself_and_says_so() -> None:
    handrail = str(Path(sys.executable).with_name("handrail"))
    command = ["unshare", "--pid", "--fork", "--mount-proc", handrail, "call", "process_info", "--json"]
    result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert [found["pid"] for found in result["processes"]] == [1]
    assert "container" in result["note"]
