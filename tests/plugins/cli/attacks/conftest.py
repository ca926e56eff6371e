"""A stage for each test, and an attacker on it."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from tests.plugins.cli.attacks.attacker import Attacker, open_attacker
from tests.plugins.cli.attacks.planting import plant_links
from tests.plugins.cli.attacks.stage import Stage, open_stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    if sys.platform != "linux":
        pytest.skip("bubblewrap is Linux's")
    with open_stage(tmp_path) as opened:
        yield opened


@pytest.fixture
async def attacker(stage: Stage) -> AsyncGenerator[Attacker, None]:
    """A session on a stage with planted links, without anybody to ask."""
    plant_links(stage)
    async with open_attacker(stage) as opened:
        yield opened
