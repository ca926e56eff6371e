"""Timing side by side: contenders take turns (A B, B A, …), so that whatever else the machine does falls on all of them alike.

A contender is an async function that does its job once or many times on inputs of its own and returns seconds for one operation.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

LEAD_IN = 20

Contender = Callable[[], Awaitable[float]]


class Absent(Exception):
    """What cannot be measured here, and why: not installed, not written yet, or unable to do the job."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure. `quick` trusts a fifth of the rounds."""

    quick: bool = False

    def rounds(self, whole: int) -> int:
        return max(3, whole // 5) if self.quick else whole


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds for one operation, a value for each round, in order."""

    rounds: tuple[float, ...]

    @property
    def minimum(self) -> float:
        return min(self.rounds)

    @property
    def median(self) -> float:
        return median(self.rounds)

    @property
    def maximum(self) -> float:
        return max(self.rounds)

    @property
    def p95(self) -> float:
        return sorted(self.rounds)[round(0.95 * (len(self.rounds) - 1))]

    def ratio_to(self, limit: Timing) -> float:
        """The median of the ratios within each round: a slow moment of the machine slows both sides of it."""
        return median(own / other for own, other in zip(self.rounds, limit.rounds, strict=True))


async def take_turns(contenders: Mapping[str, Contender], *, rounds: int, warm_up: int = 1) -> dict[str, Timing]:
    """The timing of each contender: they run one after another, `rounds` times over, after `warm_up` rounds that do not count.

    Every other round goes backwards: coming after the same neighbour each time is worth up to a sixth.
    """
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(warm_up + rounds):
        names = list(contenders)
        for name in names if round_ % 2 else reversed(names):
            gc.collect()
            seconds = await contenders[name]()
            if round_ >= warm_up:
                taken[name].append(seconds)
    return {name: Timing(tuple(seconds)) for name, seconds in taken.items()}


async def each(operation: Callable[[Any], Awaitable[Any]], inputs: Sequence[Any]) -> float:
    """Seconds for one operation, over all the inputs but the first few, which find the caches as the last contender left them."""
    for given in inputs[:LEAD_IN]:
        await operation(given)
    inputs = inputs[LEAD_IN:]
    began = perf_counter()
    for given in inputs:
        await operation(given)
    return (perf_counter() - began) / len(inputs)


def each_blocking(operation: Callable[[Any], Any], inputs: Sequence[Any]) -> float:
    """The same for a function that is not async."""
    began = perf_counter()
    for given in inputs:
        operation(given)
    return (perf_counter() - began) / len(inputs)


def process(argv: Sequence[str], environment: Mapping[str, str]) -> Contender:
    """A whole process, from its start until it has ended; its output is read and dropped. Raises `Absent` when it fails."""

    def run() -> float:
        began = perf_counter()
        done = subprocess.run(argv, env=dict(environment), capture_output=True, stdin=subprocess.DEVNULL, check=False)
        seconds = perf_counter() - began
        if done.returncode:
            raise Absent(f"{' '.join(argv)}: exit {done.returncode}: {_last_line(done.stderr)}")
        return seconds

    async def contender() -> float:
        # Nothing else runs in this loop that the wait would hold up.
        return await asyncio.to_thread(run)

    return contender


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no message"
