"""The processes in which files are parsed."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.plugins.documents.conftest import Call
from tests.plugins.documents.pdf_files import line, pdf

import handrail
from handrail import ToolResult
from handrail.api.approval import yes
from handrail.workers import self_sandbox

SLOW = pdf([b"".join(line("x" * 60, 0, n) for n in range(40_000))] * 40)


def workers() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "handrail.workers.worker_process" in process.cmdline():
                found.append(process)
    return found


async def started() -> psutil.Process:
    while not (found := workers()):
        await asyncio.sleep(0.01)
    return found[0]


async def busy(worker: psutil.Process) -> None:
    """Wait until it is at work: a page that takes long, and not only its own start, has cost it time."""
    deadline = time.monotonic() + 20
    while (used := worker.cpu_times().user) < 0.6 and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert used >= 0.6


@pytest.fixture
async def call(folder: Path) -> AsyncGenerator[Call, None]:
    """Calls in a session of this test alone."""

    async def call(tool: str, path: str, **args: Any) -> ToolResult:
        return await session.call(tool, {"path": path, **args})

    async with handrail.open(cwd=folder, confirm=yes) as session:
        yield call


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    (folder / "slow.pdf").write_bytes(SLOW)
    (folder / "quick.pdf").write_bytes(pdf([line("quick", 0, 0)]))


async def test_a_worker_is_used_again_and_ends_with_the_session(folder: Path) -> None:
    async with handrail.open(cwd=folder) as session:
        await session.call("read_pdf", {"path": "quick.pdf"})
        (worker,) = workers()
        await session.call("read_pdf", {"path": "quick.pdf"})
        assert workers() == [worker]
    assert not worker.is_running()


async def test_a_cancelled_call_leaves_no_worker(call: Call) -> None:
    task = asyncio.create_task(call("read_pdf", "slow.pdf"))  # pyright: ignore[reportArgumentType]
    worker = await started()
    await busy(worker)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert not worker.is_running()
    assert (await call("read_pdf", "quick.pdf")).ok


async def test_a_worker_that_dies_is_told_and_replaced(call: Call) -> None:
    task = asyncio.create_task(call("read_pdf", "slow.pdf"))  # pyright: ignore[reportArgumentType]
    (await started()).send_signal(signal.SIGSEGV)
    result = await task
    assert result.error_code == "downstream_error"
    assert "broke down" in result["error"]["message"]
    assert (await call("read_pdf", "quick.pdf")).ok


async def test_calls_at_once_have_workers_of_their_own_and_no_more_than_two(call: Call) -> None:
    results = await asyncio.gather(*(call("read_pdf", "quick.pdf") for _ in range(8)))
    assert all(result.ok for result in results)
    assert len(workers()) == 2


async def test_a_worker_has_limits_and_knows_no_secrets(call: Call) -> None:
    await call("read_pdf", "quick.pdf")
    (worker,) = workers()
    assert worker.rlimit(psutil.RLIMIT_AS)[0] == 2_147_483_648
    assert worker.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
    assert 0 < worker.rlimit(psutil.RLIMIT_CPU)[0] < 100
    assert not {name for name in worker.environ() if name.startswith("HANDRAIL") or "TOKEN" in name}


async def test_a_worker_is_shut_in(call: Call) -> None:
    await call("read_pdf", "quick.pdf")
    (worker,) = workers()
    told = dict(line.split(":\t") for line in Path(f"/proc/{worker.pid}/status").read_text().splitlines())
    assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")


TRIALS = """
import os, socket, subprocess, sys
from handrail.workers import self_sandbox
self_sandbox.confine_self(readable=[sys.prefix, sys.base_prefix, "/usr/lib", "/lib", sys.argv[1]], writable=[sys.argv[2]])
def trial(name, attempt):
    try:
        attempt()
        print(name, "done")
    except OSError as exc:
        print(name, type(exc).__name__)
trial("network", lambda: socket.socket())
trial("local", lambda: socket.socket(socket.AF_UNIX))
trial("program", lambda: subprocess.Popen(["/bin/true"]))
trial("allowed", lambda: open(os.path.join(sys.argv[1], "quick.pdf")).close())
trial("written", lambda: open(os.path.join(sys.argv[2], "new"), "w").close())
trial("other", lambda: open("/etc/passwd").close())
trial("over", lambda: open(os.path.join(sys.argv[1], "new"), "w").close())
"""


async def test_what_is_shut_in_opens_only_what_it_was_given(folder: Path, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", TRIALS, str(folder), str(tmp_path)), stdout=asyncio.subprocess.PIPE
    )
    told = dict(line.split() for line in (await process.communicate())[0].decode().splitlines())
    refused = {name for name, outcome in told.items() if outcome == "PermissionError"}
    # An older kernel shuts off the network and programs alone.
    files = {"other", "over"} if self_sandbox.get_landlock_version() else set[str]()
    assert (len(told), refused) == (7, {"network", "local", "program"} | files)


HOST = """
import asyncio, sys
import handrail
from handrail import ToolResult
from handrail.api.approval import yes

async def main():
    async with handrail.open() as session:
        await session.call("read_pdf", {"path": "slow.pdf"})

asyncio.run(main())
"""


async def test_a_worker_ends_in_the_middle_when_its_host_is_killed(folder: Path) -> None:
    host = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, cwd=folder)
    worker = await started()
    await busy(worker)
    host.kill()
    await host.wait()
    worker.wait(timeout=5)
