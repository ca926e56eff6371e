from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.installs.environments import Environment, build


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make build` leaves: a wheel and a source archive of each package."""
    folder = tmp_path_factory.mktemp("dist")
    build(folder)
    return folder


@pytest.fixture
def environment(tmp_path: Path, dist: Path) -> Callable[..., Environment]:
    """Makes an environment of a Python, this one if none is named."""
    return lambda python=Path(sys.executable): Environment(tmp_path, python, dist / "pins.txt")
