"""Ending all that the ledger knows of, with what came from it, and nobody else's."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

from handrail.running import processes
from handrail.running.ledger import Ledger, Running

# Seconds that a process has to end what it holds, before it is killed.
PATIENCE_S = 10.0
# Seconds that those who see to what a process leaves behind have for that.
BEHIND_S = 8.0
# Seconds that other programs have to end when told, and until they are said to be left.
GRACE_S, DEADLINE_S = 3.0, 10.0


def own_caller() -> set[int]:
    """This process and those that it comes from, which cannot be ended by it."""
    return processes.ancestors(os.getpid(), processes.table())


def end_all(chosen: Sequence[Running], ledger: Ledger) -> set[int]:
    """End them and what came from them, and wait until it is gone; the processes that did not go.

    A session ends its own when it is told to end. What it leaves by intention, and what is left of one that had to be killed, is ended after it.
    """
    spared = own_caller()
    roots = [each for each in chosen if each.alive and each.pid not in spared]
    table = processes.table()
    came = processes.descendants((root.pid for root in roots), table) - spared
    family = {pid: table[pid].started for pid in came}

    def left() -> set[int]:
        """What is left of the family, and of what was written down by then."""
        now = processes.table()
        kin = {pid for pid, started in family.items() if pid in now and now[pid].started == started}
        return (kin | _members(_same(chosen, ledger))) - spared

    with ThreadPoolExecutor(max_workers=max(1, len(roots))) as pool:
        for root in roots:
            pool.submit(processes.ask_to_end, root.pid, root.started, patience=PATIENCE_S)
    deadline = monotonic() + BEHIND_S
    while left() - _members(_same(chosen, ledger, kind="command")) and monotonic() < deadline:
        sleep(processes.POLL_S * 5)
    processes.end(left, grace=GRACE_S, deadline=DEADLINE_S)
    return left()


def _same(chosen: Sequence[Running], ledger: Ledger, kind: str | None = None) -> Sequence[Running]:
    """What the ledger has now of the environments that the chosen were started from."""
    prefixes = {running.prefix for running in chosen}
    return [running for running in ledger.all(kind) if running.prefix in prefixes]


def _members(listed: Iterable[Running]) -> set[int]:
    return {pid for running in listed for pid in running.members()}


def named(pids: Collection[int]) -> str:
    """Processes for a person: number and name."""
    return ", ".join(f"{pid} ({processes.name_of(pid)})" for pid in sorted(pids))
