"""Rows of the table of programs, run for real on planted links, lists and secrets, with each of their options."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.plugins.cli.attacks.attacker import Attacker
from tests.plugins.cli.attacks.extent import ALL, within_time
from tests.plugins.cli.attacks.row_commands import (
    ADDRESSES,
    BEHIND_INSPECTION,
    LINKS,
    WAYS_OUT,
    Bait,
    row_commands,
    row_names,
)

# What a kind of row is given, and how many of its commands are run in a run of the tests.
ATTACKS = {
    "programs-that-read": ("reads", frozenset[str](), LINKS, 240),
    "programs-that-inspect-the-system": ("reads", frozenset({"inspects"}), BEHIND_INSPECTION, 60),
    "filters-behind-them": ("reads", frozenset({"filters"}), BEHIND_INSPECTION, 100),
    "programs-that-read-given-an-address": ("reads", frozenset[str](), ADDRESSES, 60),
    "programs-that-change-given-an-address": ("effect", frozenset[str](), ADDRESSES, 40),
    "programs-that-change-given-a-way-out": ("effect", frozenset[str](), WAYS_OUT, 80),
}
# Each kind is tried in so many parts, each on a stage of its own.
PARTS = 6 if ALL else 1


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.timeout(7200 if ALL else 300)
async def test_no_program_of_the_table_reaches_anything_without_approval(
    attacker: Attacker, attack: str, part: int
) -> None:
    kind, needs, bait, most = ATTACKS[attack]
    commands = within_time(_commands(kind, needs, bait, part), most)
    tally = await attacker.run_all(map(attacker.stage.fill_in, commands))
    assert tally.breaches == []
    assert tally.decided["confirm"] < len(commands), "some commands run unasked"


def _commands(kind: str, needs: frozenset[str], bait: Bait, part: int) -> Iterator[str]:
    for path in row_names(kind, needs)[part::PARTS]:
        yield from row_commands(path, bait)
