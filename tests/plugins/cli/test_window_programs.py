"""Programs with windows, started by a command on a private desktop."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest

import handrail
from handrail import Session
from handrail.api.approval import yes


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    async with handrail.open(cwd=tmp_path, confirm=yes, desktop="private", sandbox={"use": ["none"]}) as opened:
        yield opened


@pytest.mark.parametrize("command", ["mousepad notes.txt", "cd . && mousepad notes.txt"])
async def test_a_program_that_opens_a_window_is_not_waited_for_and_lives_on(session: Session, command: str) -> None:
    (Path(session.cwd) / "notes.txt").write_text("hello\n")
    began = time.monotonic()
    started = await session.call("execute_cli", {"command": command, "timeout": 100})
    assert (started.status, started["exit_code"]) == ("success", None), started
    # Long before its time is over.
    assert time.monotonic() - began < 60
    assert "notes.txt" in started["note"]
    assert psutil.pid_exists(started["pid"])
    windows = (await session.call("window_list", {}))["windows"]
    assert [window["title"] for window in windows if "notes.txt" in window["title"]]
    # The next command neither ends it nor waits for it.
    assert (await session.call("execute_cli", {"command": "echo next"}))["stdout"] == "next\n"
    (listed,) = (await session.call("list_processes", {}))["processes"]
    assert (listed["process_id"], listed["running"]) == (started["process_id"], True)
    assert (await session.call("stop_process", {"process_id": started["process_id"]}))["stopped"]
    assert not [w for w in (await session.call("window_list", {}))["windows"] if "notes.txt" in w["title"]]
