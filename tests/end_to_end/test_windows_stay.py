"""A program that opens a window is not waited for: it goes on running under a handle."""

from __future__ import annotations

from pathlib import Path

import pytest

import handrail
from handrail.api.approval import yes


@pytest.mark.timeout(120)
async def test_a_command_that_opens_a_window_is_handed_back(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("a note\n")
    async with handrail.open(desktop="private", confirm=yes, cwd=tmp_path) as session:
        result = await session.call("execute_cli", {"command": "mousepad note.txt", "timeout": 60})
        assert (result.status, result["exit_code"]) == ("success", None)
        assert "note.txt" in result["note"]
        listed = await session.call("list_processes", {})
        assert [(each["process_id"], each["running"]) for each in listed["processes"]] == [(result["process_id"], True)]
        assert (await session.call("stop_process", {"process_id": result["process_id"]}))["stopped"]
