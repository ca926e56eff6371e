"""A folder with a server's configuration, and a plugin of the tests installed beside the real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .place import Place, made


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A path for PYTHONPATH on which the tests' plugin is installed as a distribution."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "mcp_stage-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mcp-stage\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[handrail]\nmcp_stage = handrail_mcp_stage\nmcp_memory = handrail_mcp_memory\n"
    )
    return os.pathsep.join((str(folder), str(Path(__file__).with_name("plugin"))))


@pytest.fixture
def place(tmp_path: Path, stage: str) -> Place:
    return made(tmp_path, stage)
