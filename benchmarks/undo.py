"""Cost of undo: recorded calls with and without it, and a workspace of many files."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.measure import Effort, Timing, take_turns
from benchmarks.report import Measurement, Row, duration
from benchmarks.sessions import session_with, succeed
from handrail import Session
from handrail.config.settings import UndoSettings
from handrail.undo.keeper import CallScope, UndoKeeper
from handrail.undo.store import CallRecord

# Calls of one turn.
CALLS = 10
FEW, MIDDLE, MANY = 1_000, 5_000, 20_000
IN_A_FOLDER = 25


async def edit(effort: Effort) -> Row:
    """Measure `edit_file` of a small file, with and without undo."""

    def change(folder: Path, number: int) -> tuple[str, dict[str, Any]]:
        path = folder / "small.txt"
        if not path.exists():
            path.write_text("version 0\n" + "a line that stays\n" * 200)
        old = path.read_text().partition("\n")[0]
        return "edit_file", {"file_path": path.name, "old_string": old, "new_string": f"version {number + 1}"}

    async with _sessions(1, "files") as sessions:
        timings = await _turns(sessions, change, rounds=effort.rounds(30))
    return _overhead("undo: `edit_file` of a small file", timings, goal=2.5)


async def mkdir(effort: Effort) -> Row:
    """Measure `execute_cli` of a command that changes files among 5,000, with and without undo."""

    def change(folder: Path, number: int) -> tuple[str, dict[str, Any]]:
        return "execute_cli", {"command": f"mkdir made{number}"}

    async with _sessions(MIDDLE, "cli") as sessions:
        timings = await _turns(sessions, change, rounds=effort.rounds(15))
    return _ratio("undo: `mkdir x` in the sandbox among 5,000 files", timings, goal=1.3)


async def read(effort: Effort) -> Row:
    """Measure `execute_cli` of a read-only command among 5,000 files, with and without undo."""

    def look(folder: Path, number: int) -> tuple[str, dict[str, Any]]:
        return "execute_cli", {"command": "ls d0"}

    async with _sessions(MIDDLE, "cli") as sessions:
        timings = await _turns(sessions, look, rounds=effort.rounds(15))
    return _ratio("undo: `ls` in the sandbox among 5,000 files", timings, goal=1.05)


async def many(effort: Effort) -> Row:
    """Measure a check of 20,000 files of which a few have changed.

    The note gives the time of the first check, and of a later session's first check.
    """
    first: dict[int, float] = {}
    by_stat: dict[int, float] = {}
    for count in (FEW, MANY):
        first[count], by_stat[count], timing = await _looks(count, effort.rounds(25))
    return Row(
        "undo: look for what changed among 20,000 files",
        value=timing.median * 1e3,
        goal=40,
        unit="ms",
        ours=f"p95 {duration(timing.p95)}",
        note="; ".join(
            f"{count:,} files: first copy {duration(first[count])}, a later session's first look {duration(by_stat[count])}"
            for count in (FEW, MANY)
        ),
        timings={"handrail": timing},
    )


async def _looks(count: int, rounds: int) -> tuple[float, float, Timing]:
    """Return the seconds for the first check of that many files, and for another session's first; and later timings.

    Another session's first check examines every file.
    """
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as name:
        work = _filled(Path(name, "work"), count)
        keeper = UndoKeeper(Path(name, "undo"), UndoSettings(), ())
        scope, never = CallScope((str(work),), anywhere=True, confined=True, named=True), threading.Event()
        numbers = itertools.count()

        def begin() -> int:
            id = f"c{next(numbers)}"
            return keeper.begin(CallRecord(0, "bench", id, id, "tool", "what", time.time()), scope, never).id

        began = perf_counter()
        keeper.end(begin(), never)
        first = perf_counter() - began
        keeper.settle()

        async def look() -> float:
            id, number = begin(), next(numbers)
            for each in range(3):
                (work / f"d{(number * 7 + each) % (count // IN_A_FOLDER)}" / "f0").write_text(f"changed {number}")
            began = perf_counter()
            keeper.end(id, never)
            return perf_counter() - began

        timings = await take_turns({"handrail": look}, rounds=rounds)
        keeper.close()
        whole: list[float] = []
        for _ in range(max(3, rounds // 5)):
            # Another session's first call: it knows the files from the store, and nothing has watched them since.
            keeper = UndoKeeper(Path(name, "undo"), UndoSettings(), ())
            began = perf_counter()
            keeper.end(begin(), never)
            whole.append(perf_counter() - began)
            keeper.close()
    return first, min(whole), timings["handrail"]


def _filled(folder: Path, count: int) -> Path:
    """Create a directory with that many small files, all with different content."""
    for number in range(count):
        path = folder / f"d{number // IN_A_FOLDER}" / f"f{number % IN_A_FOLDER}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(64) * 30)
    return folder


@asynccontextmanager
async def _sessions(count: int, plugin: str) -> AsyncGenerator[Mapping[str, tuple[Session, Path]]]:
    """Open a session with undo and one without, each with its own files."""
    root = Path(tempfile.mkdtemp(prefix="handrail-bench-", dir="/var/tmp"))
    async with AsyncExitStack() as opened:
        opened.callback(shutil.rmtree, root)
        sessions: dict[str, tuple[Session, Path]] = {}
        for name in ("without", "handrail"):
            folder = _filled(root / name, count)
            settings: dict[str, Any] = {"mode": "accept_edits", "undo": {"enabled": name == "handrail"}}
            sessions[name] = await opened.enter_async_context(session_with(plugin, cwd=folder, **settings)), folder
        yield sessions


async def _turns(sessions: Mapping[str, tuple[Session, Path]], change: Any, *, rounds: int) -> dict[str, Timing]:
    numbers = itertools.count()

    def turn(session: Session, folder: Path) -> Any:
        async def contender() -> float:
            spent = 0.0
            for _ in range(CALLS):
                tool, args = change(folder, next(numbers))
                began = perf_counter()
                await succeed(session, tool, args)
                spent += perf_counter() - began
            return spent / CALLS

        return contender

    return await take_turns({name: turn(*each) for name, each in sessions.items()}, rounds=rounds)


def _ratio(job: str, timings: Mapping[str, Timing], *, goal: float) -> Row:
    """Return the row for the duration of a call with undo relative to one without."""
    with_undo, without = timings["handrail"], timings["without"]
    ratios = sorted(own / other for own, other in zip(with_undo.rounds, without.rounds, strict=True))
    return Row(
        job,
        value=ratios[len(ratios) // 2],
        goal=goal,
        ours=duration(with_undo.median),
        limit=f"{duration(without.median)} without undo",
        timings=timings,
    )


def _overhead(job: str, timings: Mapping[str, Timing], *, goal: float | None) -> Row:
    """Return the row for the time that undo adds to a call, in milliseconds."""
    with_undo, without = timings["handrail"], timings["without"]
    more = sorted(own - other for own, other in zip(with_undo.rounds, without.rounds, strict=True))
    return Row(
        job,
        value=more[len(more) // 2] * 1e3,
        goal=goal,
        unit="ms",
        ours=duration(with_undo.median),
        limit=f"{duration(without.median)} without undo",
        note="the value is what undo adds",
        timings=timings,
    )


ROWS: Mapping[str, Measurement] = {"undo-edit": edit, "undo-mkdir": mkdir, "undo-read": read, "undo-20k": many}
