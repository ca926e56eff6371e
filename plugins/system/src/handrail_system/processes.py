"""The tool `process_info`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import anyio
import anyio.to_thread
from pydantic import Field

from handrail import Read, ToolContext, tool
from handrail_system.namespaces import is_isolated

if TYPE_CHECKING:
    import psutil

# Seconds over which the use of the processors is measured. The kernel counts in steps of a hundredth.
INTERVAL_S = 0.5

T = TypeVar("T")
SortOrder = Literal["cpu", "memory", "name", "pid", "started"]


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """Sample of a process.

    None is a value that this system does not report; `cpu_s` is the CPU time in seconds since the process started.
    """

    pid: int
    name: str
    memory: int | None
    user: str | None
    started: float | None
    cpu_s: float | None
    at: float


SORT_KEYS: Mapping[SortOrder, Callable[[tuple[ProcessSample, float | None]], Any]] = {
    "cpu": lambda entry: (-(entry[1] or 0), -(entry[0].memory or 0), entry[0].pid),
    "memory": lambda entry: (-(entry[0].memory or 0), entry[0].pid),
    "name": lambda entry: (entry[0].name.casefold(), entry[0].pid),
    "pid": lambda entry: entry[0].pid,
    "started": lambda entry: (-(entry[0].started or 0), entry[0].pid),
}


@tool(layer="system", title="Look at processes", effects=[Read("processes")], timeout=30)
async def process_info(
    name: Annotated[str | None, Field(description="Part of the name; default: all.")] = None,
    sort: Annotated[SortOrder, Field(description="What comes first.")] = "cpu",
    limit: Annotated[int, Field(ge=1, le=1_000, description="Processes to show at most.")] = 20,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """List running processes: pid, name, cpu (percent of one processor), memory (bytes in RAM), user, started.

    Command lines are not shown: they may hold secrets.
    """
    first = await anyio.to_thread.run_sync(_sample_processes, name, abandon_on_cancel=True)
    await anyio.sleep(INTERVAL_S)
    found = await anyio.to_thread.run_sync(_sample_again, first, abandon_on_cancel=True)
    found.sort(key=SORT_KEYS[sort])
    shown = [_format_process(seen, cpu) for seen, cpu in found[:limit]]
    result: dict[str, Any] = {"processes": shown, "total": len(found), "truncated": len(found) > len(shown)}
    note = _build_note(name, found=bool(found), blind=explain_blind_spot(Path("/")))
    return {**result, "note": note} if note else result


def explain_blind_spot(root: Path) -> str | None:
    """Explain why there may be more processes than are visible here; None without a known reason."""
    with suppress(OSError):
        for line in (root / "proc/self/mountinfo").read_text().splitlines():
            fields = line.split()
            if fields[4] == "/proc" and re.search(r"hidepid=(?!0|off)", line):
                return "this system hides the processes of other users"
    if is_isolated(root, "pid"):
        return "this is a container, and processes outside of it are not seen"
    return None


def _build_note(name: str | None, *, found: bool, blind: str | None) -> str | None:
    nothing = None if found else f"no process has {name!r} in its name"
    return "; ".join(word for word in (nothing, blind) if word) or None


def _sample_processes(name: str | None) -> list[tuple[psutil.Process, ProcessSample]]:
    """Sample all visible processes whose name contains `name`, ignoring case."""
    import psutil

    wanted = (name or "").casefold()
    found: list[tuple[psutil.Process, ProcessSample]] = []
    for pid in psutil.pids():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            seen = _sample_process(process)
            if wanted in seen.name.casefold():
                found.append((process, seen))
    return found


def _sample_again(first: Sequence[tuple[psutil.Process, ProcessSample]]) -> list[tuple[ProcessSample, float | None]]:
    """Sample again the processes that still run, with their CPU share since the first sample.

    Another process that has reused a PID is left out.
    """
    import psutil

    again: list[tuple[ProcessSample, float | None]] = []
    for process, before in first:
        with suppress(psutil.NoSuchProcess):
            if process.is_running():
                seen = _sample_process(process)
                again.append((seen, _compute_cpu_share(before, seen)))
    return again


def _sample_process(process: psutil.Process) -> ProcessSample:
    with process.oneshot():
        return ProcessSample(
            pid=process.pid,
            name=_get_if_allowed(process.name) or "?",
            memory=_get_if_allowed(lambda: process.memory_info().rss),
            user=_get_if_allowed(process.username),
            started=_get_if_allowed(process.create_time),
            cpu_s=_get_if_allowed(lambda: sum(process.cpu_times()[:2])),
            at=time.monotonic(),
        )


def _get_if_allowed(ask: Callable[[], T]) -> T | None:
    """Return what `ask` returns for a process; None if access is denied or the process is a zombie."""
    import psutil

    try:
        return ask()
    except (psutil.ZombieProcess, psutil.AccessDenied, OSError):
        return None


def _compute_cpu_share(before: ProcessSample, after: ProcessSample) -> float | None:
    if before.cpu_s is None or after.cpu_s is None or after.at <= before.at:
        return None
    return round(100 * max(after.cpu_s - before.cpu_s, 0) / (after.at - before.at), 1)


def _format_process(seen: ProcessSample, cpu: float | None) -> dict[str, Any]:
    started = None if seen.started is None else datetime.fromtimestamp(seen.started, UTC).isoformat(timespec="seconds")
    return {
        "pid": seen.pid,
        "name": seen.name,
        "cpu": cpu,
        "memory": seen.memory,
        "user": seen.user,
        "started": started,
    }
