"""Ending of everything in the registry, with descendants, and of nothing else."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

from handrail.workers import processes
from handrail.workers.registry import ProcessRegistry, RunningProgram

# Seconds that a process has to end what it holds, before it is killed.
END_TIMEOUT_S = 10.0
# Seconds that those who see to what a process leaves behind have for that.
LEFTOVER_TIMEOUT_S = 8.0
# Seconds that other programs have to end when told, and until they are said to be left.
GRACE_PERIOD_S, KILL_DEADLINE_S = 3.0, 10.0


def list_own_ancestors() -> set[int]:
    """Return the ids of this process and its ancestors, which it cannot end."""
    return processes.find_ancestors(os.getpid(), processes.read_process_table())


def end_running_processes(chosen: Sequence[RunningProgram], ledger: ProcessRegistry) -> set[int]:
    """End the chosen programs and their descendants, wait, and return the ids of the processes that remain.

    A session ends its own processes on request. What it leaves on purpose, and what remains of a session that had to be
    killed, is ended after it.
    """
    spared = list_own_ancestors()
    roots = [each for each in chosen if each.alive and each.pid not in spared]
    table = processes.read_process_table()
    came = processes.find_descendants((root.pid for root in roots), table) - spared
    family = {pid: table[pid].started for pid in came}

    def left() -> set[int]:
        """Return what remains of the descendants, and of the programs registered by then."""
        now = processes.read_process_table()
        kin = {pid for pid, started in family.items() if pid in now and now[pid].started == started}
        return (kin | _collect_members(_list_same_environments(chosen, ledger))) - spared

    with ThreadPoolExecutor(max_workers=max(1, len(roots))) as pool:
        for root in roots:
            pool.submit(processes.terminate_process, root.pid, root.started, patience=END_TIMEOUT_S)
    deadline = monotonic() + LEFTOVER_TIMEOUT_S
    while left() - _collect_members(_list_same_environments(chosen, ledger, kind="command")) and monotonic() < deadline:
        sleep(processes.POLL_S * 5)
    processes.end_processes(left, grace=GRACE_PERIOD_S, deadline=KILL_DEADLINE_S)
    return left()


def _list_same_environments(
    chosen: Sequence[RunningProgram], ledger: ProcessRegistry, kind: str | None = None
) -> Sequence[RunningProgram]:
    """Return the registry's current entries for the Python environments that the chosen programs were started from."""
    prefixes = {running.prefix for running in chosen}
    return [running for running in ledger.all(kind) if running.prefix in prefixes]


def _collect_members(listed: Iterable[RunningProgram]) -> set[int]:
    return {pid for running in listed for pid in running.members()}


def format_processes(pids: Collection[int]) -> str:
    """Format processes for display: id and name."""
    return ", ".join(f"{pid} ({processes.read_process_name(pid)})" for pid in sorted(pids))
