"""Which tools an agent is shown while the planning backend is chosen: in Python, over JSON lines and over MCP."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client

import handrail

pytestmark = pytest.mark.anyio

HANDRAIL = Path(sys.executable).with_name("handrail")
PLANS = {"execute_computer_use"}
SEES = {"observe_screen", "execute_gui", "get_ui_context", "maximize_active_window", "execute_accessible"}
GEMINI, TREE = "gemini_computer_use", "accessibility"


def shown(names: set[str]) -> set[str]:
    return names & (PLANS | SEES)


async def test_in_python_the_tools_follow_the_backend_and_hidden_ones_are_refused(tmp_path: Path) -> None:
    async with handrail.open(desktop="private", backend=GEMINI, cwd=tmp_path) as session:
        assert shown({tool.name for tool in await session.tools()}) == PLANS
        assert (await session.call("execute_gui", {"action": "click", "x": 1, "y": 1})).error_code == "tool_unavailable"
        await session.use_backend(TREE)
        assert shown({tool.name for tool in await session.tools()}) == SEES
        assert (await session.call("execute_computer_use", {"instruction": "x"})).error_code == "tool_unavailable"


def answered(folder: Path, *lines: dict[str, Any]) -> dict[int, Any]:
    """What a session with the planning backend says to some lines, by their ids."""
    done = subprocess.run(
        [HANDRAIL, "session", "--jsonl", "--backend", GEMINI, "--desktop", "private"],
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=60,
    )
    return {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}


def test_over_json_lines_they_follow_it_too(tmp_path: Path) -> None:
    planning = answered(tmp_path, {"control": "tools", "id": 1})
    assert shown({each["name"] for each in planning[1]["tools"]}) == PLANS
    switched = answered(
        tmp_path,
        {"control": "backend", "id": 1, "name": TREE},
        {"control": "tools", "id": 2},
        {"id": 3, "tool": "execute_computer_use", "args": {"instruction": "x"}},
    )
    assert shown({each["name"] for each in switched[2]["tools"]}) == SEES
    assert switched[3]["result"]["error"]["code"] == "tool_unavailable"


@pytest.mark.parametrize(("backend", "wanted"), [(GEMINI, PLANS), (TREE, SEES)])
async def test_over_mcp_they_follow_it_too(tmp_path: Path, backend: str, wanted: set[str]) -> None:
    (tmp_path / "handrail.toml").write_text(f'backend = "{backend}"\ndesktop = "private"\n')
    environment = {**os.environ, "HANDRAIL_CONFIG": str(tmp_path / "handrail.toml")}
    server = StdioServerParameters(command=str(HANDRAIL), args=["serve"], env=environment, cwd=tmp_path)
    async with Client(stdio_client(server)) as client:
        assert shown({tool.name for tool in (await client.list_tools()).tools}) == wanted


def test_the_doctor_says_which_model_does_not_use_computers(tmp_path: Path) -> None:
    (tmp_path / "handrail.toml").write_text(f'backend = "{GEMINI}"\n[backends.{GEMINI}]\nmodel = "gemini-2.0-flash"\n')
    environment = {**os.environ, "HANDRAIL_CONFIG": str(tmp_path / "handrail.toml")}
    done = subprocess.run(
        [HANDRAIL, "doctor"], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=60
    )
    assert "the model 'gemini-2.0-flash' does not use computers" in done.stdout + done.stderr
