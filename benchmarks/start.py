"""Cold starts of the command, as whole processes."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.measure import Absent, Contender, Effort, process, take_turns
from benchmarks.report import Measurement, Row, compare
from benchmarks.sessions import environment

LIMIT = "python -c pass"
PEERS = ("fastmcp", "adk")


def beside_python(name: str) -> str:
    """Return the path of a command in this environment; raise `Absent` if it is missing."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise Absent(f"the command {name!r} is not in this environment")
    return str(path)


def start(*arguments: str, goal: float, rounds: int, peers: bool = False) -> Measurement:
    """Return the row for `handrail` with these arguments."""

    async def row(effort: Effort) -> Row:
        with environment() as variables:
            contenders = {
                LIMIT: process([sys.executable, "-c", "pass"], variables),
                "handrail": process([beside_python("handrail"), *arguments], variables),
            }
            absent: dict[str, str] = {}
            for name in PEERS if peers else ():
                await _add_peer(contenders, absent, name, variables)
            timings = await take_turns(contenders, rounds=effort.rounds(rounds))
        return compare(f"`handrail {' '.join(arguments)}`", timings, limit=LIMIT, goal=goal, absent=absent)

    return row


async def _add_peer(
    contenders: dict[str, Contender], absent: dict[str, str], name: str, variables: dict[str, str]
) -> None:
    try:
        contender = process([beside_python(name), "--help"], variables)
        await contender()
    except Absent as exc:
        absent[name] = f"absent: {exc}"
    else:
        contenders[f"`{name} --help`"] = contender


ROWS = {
    "help": start("--help", goal=12, rounds=10, peers=True),
    "tools": start("tools", goal=30, rounds=10),
}
