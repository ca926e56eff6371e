"""A session in a folder of its own, whose person says yes."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import Session, ToolResult
from handrail.api.approval import yes

Run = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
async def session(folder: Path) -> AsyncGenerator[Session, None]:
    async with handrail.open(
        cwd=folder,
        confirm=yes,
        environment={**os.environ, "MY_API_TOKEN": "t", "PLAIN": "p"},
        # On the host, where processes have the numbers that are looked for; sandboxed commands have tests of their own.
        sandbox={"use": ["none"]},
    ) as opened:
        yield opened


@pytest.fixture
def run(session: Session) -> Run:
    async def call(command: str, **args: Any) -> ToolResult:
        return await session.call("execute_cli", {"command": command, **args})

    return call
