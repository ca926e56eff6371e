"""A row of the table, and the table."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.measure import Effort, Timing

OURS = "handrail"
HEADINGS = ("job", "ours", "the machine's limit", "ratio", "goal", "met", "peers, to the same limit")


@dataclass(frozen=True, slots=True)
class Row:
    """Result of one job, and its goal.

    `value` and `goal` (at most) are in `unit`: "x" for a ratio to the limit. A row without a value was not measured,
    and `note` says why. `peers`: their ratio to the same limit, or why it is missing.
    """

    job: str
    value: float | None = None
    goal: float | None = None
    unit: str = "x"
    ours: str = ""
    limit: str = ""
    peers: Mapping[str, float | str] = field(default_factory=dict[str, float | str])
    note: str = ""
    timings: Mapping[str, Timing] = field(default_factory=dict[str, Timing])

    @property
    def met(self) -> bool | None:
        """True if the goal is met; None without a goal or a value."""
        return None if self.value is None or self.goal is None else self.value <= self.goal

    def wire(self) -> dict[str, Any]:
        """Return the row as `--json` prints it; times in seconds."""
        return {
            "job": self.job,
            "value": self.value,
            "unit": self.unit,
            "goal": self.goal,
            "met": self.met,
            "ours": self.ours,
            "limit": self.limit,
            "peers": dict(self.peers),
            "note": self.note,
            "seconds": {
                name: {
                    "min": timing.minimum,
                    "median": timing.median,
                    "p95": timing.p95,
                    "max": timing.maximum,
                    "rounds": len(timing.rounds),
                }
                for name, timing in self.timings.items()
            },
        }


def compare(
    job: str,
    timings: Mapping[str, Timing],
    *,
    limit: str,
    goal: float | None,
    absent: Mapping[str, str] | None = None,
    ours: str = OURS,
    note: str = "",
) -> Row:
    """Build the row for contenders that took turns.

    `ours` is compared with the one named `limit`; all others are peers.
    """
    base = timings[limit]
    peers: dict[str, float | str] = {
        name: timing.ratio_to(base) for name, timing in timings.items() if name not in (ours, limit)
    }
    return Row(
        job,
        value=timings[ours].ratio_to(base),
        goal=goal,
        ours=duration(timings[ours].median),
        limit=f"{limit}: {duration(base.median)}",
        peers={**peers, **(absent or {})},
        note=note,
        timings=timings,
    )


def duration(seconds: float) -> str:
    """Format with three digits and a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def markdown(rows: Sequence[Row]) -> str:
    """Return the table with the notes below it."""
    lines = [_line(HEADINGS), _line(["---"] * len(HEADINGS))]
    lines += [_line(_cells(row)) for row in rows]
    notes = [f"- {row.job}: {row.note}" for row in rows if row.note]
    return "\n".join([*lines, "", *notes]) if notes else "\n".join(lines)


def _cells(row: Row) -> Sequence[str]:
    met = {True: "yes", False: "**no**", None: "not measured" if row.value is None else ""}[row.met]
    goal = f"<= {_amount(row.goal, row.unit)}" if row.goal is not None else ""
    peers = ", ".join(f"{name} {_peer(value)}" for name, value in row.peers.items())
    return (row.job, row.ours, row.limit, _amount(row.value, row.unit), goal, met, peers)


def _peer(value: float | str) -> str:
    return f"({value})" if isinstance(value, str) else _amount(value, "x")


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "x":
        return f"{value:.2f}x" if value < 3 else f"{value:.1f}x" if value < 100 else f"{value:.0f}x"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


# What measures one row.
Measurement = Callable[[Effort], Coroutine[Any, Any, Row]]
