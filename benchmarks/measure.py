"""Interleaved timing: contenders take turns (A B, B A, …), so that other load on the machine affects all alike.

A contender is an async function that does its job once or many times on its own inputs and returns the seconds for one
operation.
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
    """A contender that cannot be measured here, with the reason.

    It is not installed, not written yet, or unable to do the job.
    """


@dataclass(frozen=True, slots=True)
class Effort:
    """Length of the measurement. `quick` runs a fifth of the rounds."""

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
        """Return the median of the ratios within each round: a slow moment of the machine slows both sides of it."""
        return median(own / other for own, other in zip(self.rounds, limit.rounds, strict=True))


async def take_turns(contenders: Mapping[str, Contender], *, rounds: int, warm_up: int = 1) -> dict[str, Timing]:
    """Run the contenders in turn and return the timing of each.

    There are `rounds` rounds, after `warm_up` rounds that do not count. Every other round runs in reverse order: always
    following the same neighbor affects results by up to a sixth.
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
    """Return the seconds for one operation, over all inputs but the first few.

    The first few find the caches as the last contender left them.
    """
    for given in inputs[:LEAD_IN]:
        await operation(given)
    inputs = inputs[LEAD_IN:]
    began = perf_counter()
    for given in inputs:
        await operation(given)
    return (perf_counter() - began) / len(inputs)


def each_blocking(operation: Callable[[Any], Any], inputs: Sequence[Any]) -> float:
    """Return the seconds for one operation of a function that is not async, over all inputs."""
    began = perf_counter()
    for given in inputs:
        operation(given)
    return (perf_counter() - began) / len(inputs)


def process(argv: Sequence[str], environment: Mapping[str, str]) -> Contender:
    """Return a contender that runs a whole process, from its start to its end.

    Its output is read and discarded. Raises `Absent` if it fails.
    """

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
