"""A session in a workspace of its own, with tools that change files."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handrail import Session
from handrail.api.approval import yes
from handrail.testing import open_test_session

from .workspace import TOOLS, OpenSession


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "one.txt").write_text("one")
    (work / "two.txt").write_text("two")
    (work / "sub/three.txt").write_text("three")
    return work


@pytest.fixture
def opened(tmp_path: Path, work: Path) -> OpenSession:
    """Opens sessions in the same workspace, with the same state."""

    @asynccontextmanager
    async def open_session(**more: Any) -> AsyncGenerator[Session]:
        given: dict[str, Any] = {"tools": TOOLS, "confirm": yes, "folder": tmp_path, **more}
        given["settings"] = {"undo": {}, **given.get("settings", {})}
        given["settings"]["undo"] = {"enabled": True, **given["settings"]["undo"]}
        async with open_test_session(**given) as session:
            yield session

    return open_session


@pytest.fixture
async def session(opened: OpenSession) -> AsyncGenerator[Session]:
    async with opened() as session:
        yield session
