"""A session in a folder of its own, and a short way to call its tools."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import Session, ToolResult
from handrail.api.approval import yes

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def folder(workspace: Path) -> Path:
    """A folder for the files of one test, in the workspace."""
    return Path(tempfile.mkdtemp(dir=workspace))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
async def session(workspace: Path) -> AsyncGenerator[Session, None]:
    """One for all tests of a module, so that its worker is warm."""
    async with handrail.open(cwd=workspace, confirm=yes) as opened:
        yield opened


@pytest.fixture
def call(session: Session, folder: Path) -> Call:
    """Call a tool on a file in the test's folder."""

    async def call(tool: str, path: str, **args: Any) -> ToolResult:
        return await session.call(tool, {"path": str(folder / path), **args})

    return call
