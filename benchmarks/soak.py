"""`python -m benchmarks.soak [--sessions N] [--calls N]`: many sessions in one process, one after another and some side by side.

Fails (exit 1) when memory grows once all is warm, or when a task is left. With `--confined N`: one session that runs N commands in the
sandbox, some side by side; it also fails when output is lost, or when descriptors are left.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
from itertools import count
from pathlib import Path

import anyio
import psutil

from benchmarks.sessions import environment, session_with, trivial_runtime
from handrail import Session, ToolCall
from handrail.session.runtime import Runtime

SIDE_BY_SIDE = 4
BATCH = 25
# What the process may grow by between the first third and the end, as a part of what it had then.
GROWTH = 0.05


def main() -> int:
    """Run, print, and say by the exit code whether nothing was left."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--confined", type=int, default=0)
    given = parser.parse_args()
    if given.confined:
        return anyio.run(_confined, given.confined)
    with environment(HANDRAIL_AUDIT_ENABLED="true", HANDRAIL_LIMITS_FAILURES="0") as variables:
        return anyio.run(_soak, variables, given.sessions, given.calls)


async def _soak(variables: dict[str, str], sessions: int, calls: int) -> int:
    sizes: list[int] = []
    process = psutil.Process()
    before = asyncio.all_tasks()
    async with trivial_runtime(variables, {}) as runtime:
        idle = asyncio.all_tasks()
        for done in range(0, sessions, SIDE_BY_SIDE):
            async with anyio.create_task_group() as group:
                for _ in range(min(SIDE_BY_SIDE, sessions - done)):
                    group.start_soon(_session, runtime, calls)
            gc.collect()
            sizes.append(process.memory_info().rss)
        left = asyncio.all_tasks() - idle
    left |= asyncio.all_tasks() - before
    warm, end = sizes[len(sizes) // 3], sizes[-1]
    grown = (end - warm) / warm
    print(f"{sessions} sessions x {calls} calls: {warm / 2**20:.1f} MiB when warm, {end / 2**20:.1f} MiB at the end")
    print(f"grown by {grown:.1%}, {len(left)} tasks left")
    return int(grown > GROWTH or bool(left))


async def _confined(calls: int) -> int:
    """Run many commands that read, and compare each output with what it must be."""
    process = psutil.Process()
    sizes: list[tuple[int, int, int]] = []
    lost = 0
    with tempfile.TemporaryDirectory(prefix="handrail-soak-") as folder:
        Path(folder, "hi.txt").write_text("hi\n", encoding="utf-8")
        async with session_with("cli", cwd=Path(folder)) as session:

            async def one(number: int) -> None:
                nonlocal lost
                command = f"cat hi.txt; seq {number} {number + number % 700}; echo {number} >&2"
                result = await session.call("execute_cli", {"command": command})
                wanted = "hi\n" + "".join(f"{n}\n" for n in range(number, number + number % 700 + 1))
                lost += (result.get("stdout"), result.get("stderr")) != (wanted, f"{number}\n")

            for done in range(0, calls, BATCH):
                for number in range(done, min(done + BATCH - SIDE_BY_SIDE, calls)):
                    await one(number)
                async with anyio.create_task_group() as group:
                    for number in range(done + BATCH - SIDE_BY_SIDE, min(done + BATCH, calls)):
                        group.start_soon(one, number)
                gc.collect()
                sizes.append((process.memory_info().rss, process.num_fds(), len(process.children(recursive=True))))
    (warm, fds, children), (end, fds_end, children_end) = sizes[len(sizes) // 3], sizes[-1]
    grown = (end - warm) / warm
    print(
        f"{calls} confined calls: {lost} lost output; memory {warm / 2**20:.1f} to {end / 2**20:.1f} MiB ({grown:.1%})"
    )
    print(f"descriptors {fds} to {fds_end}, processes {children} to {children_end}")
    return int(bool(lost) or grown > GROWTH or fds_end > fds + SIDE_BY_SIDE or children_end > children + SIDE_BY_SIDE)


async def _session(runtime: Runtime, calls: int) -> None:
    async with runtime.session() as session:
        numbers = count()
        made = 0
        while made < calls:
            made += await _round(session, numbers)
        if session.running:
            raise SystemExit("calls are left under way")


async def _round(session: Session, numbers: count[int]) -> int:
    """Run a batch, some single calls, one that fails, and one that is cancelled."""
    batch = [ToolCall("add", {"a": next(numbers), "b": 1}, f"b{next(numbers)}") for _ in range(BATCH)]
    results = await session.batch(batch)
    for _ in range(BATCH):
        results.append(await session.call("add", {"a": next(numbers), "b": 2}))
    if not all(result.ok for result in results):
        raise SystemExit(f"a call failed: {next(result for result in results if not result.ok)}")
    failed = await session.call("add", {"a": "x"})
    waiting = asyncio.create_task(session.call("wait", {"seconds": 30}, call_id=f"w{next(numbers)}"))
    await asyncio.sleep(0)
    while not session.running:
        await asyncio.sleep(0)
    session.cancel()
    stopped = await waiting
    if (failed.error_code, stopped.status) != ("invalid_arguments", "cancelled"):
        raise SystemExit(f"{failed} {stopped}")
    return len(results) + 2


if __name__ == "__main__":
    sys.exit(main())
