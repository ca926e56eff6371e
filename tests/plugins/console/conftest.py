"""One console and one browser for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .opened import Console, console


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this module's sessions and of its console."""
    return tmp_path_factory.mktemp("console")


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Console]:
    """A running console."""
    with console(home, "--name", "phone.example.ts.net") as running:
        yield running
