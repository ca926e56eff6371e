"""Extent of the attacks: all with the environment variable HANDRAIL_ATTACKS=all (`make attacks`), else as many as fit into a test run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

ALL = os.environ.get("HANDRAIL_ATTACKS") == "all"


def within_time(commands: Iterable[str], most: int) -> Sequence[str]:
    """Return the commands to try now: without ALL at most so many, spread evenly over them."""
    tried = list(dict.fromkeys(commands))
    return tried if ALL else tried[:: max(1, -(-len(tried) // most))]
