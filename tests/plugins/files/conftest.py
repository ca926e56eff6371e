"""A folder to work in, and a session in which a person says yes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

import handrail
from handrail import Session
from handrail.api.approval import yes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
async def session(folder: Path) -> AsyncGenerator[Session, None]:
    async with handrail.open(cwd=folder, confirm=yes) as opened:
        yield opened
