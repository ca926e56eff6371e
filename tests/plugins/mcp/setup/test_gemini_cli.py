"""Gemini CLI itself, set up by one command: it reaches the server, offers the tools to its model and makes the model's calls."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.gemini_server import KEY, call, say, serving
from tests.plugins.mcp.place import HANDRAIL

# Nothing is sent home, and the folder is one that a person trusts.
SETTINGS = """\
{
  // my own choices
  "privacy": {"usageStatisticsEnabled": false},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}} // a key
}
"""

Gemini = Callable[..., str]


@pytest.fixture
def gemini(tmp_path: Path, node: Path, node_modules: Path) -> Gemini:
    """Runs Gemini CLI in a folder of its own, in which Handrail was installed into it; gives what it said."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    settings = home / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_API_KEY": KEY,
    }
    plugins = ("--env", "HANDRAIL_PLUGINS=mcp,cli")
    install = [str(HANDRAIL), "mcp", "install", "gemini", "--workspace", ".", "--profile", "shell", *plugins]
    subprocess.run(install, env=environment, cwd=project, check=True, capture_output=True, timeout=60)
    assert "// my own choices" in settings.read_text()

    def run(*args: str, **variables: str) -> str:
        done = subprocess.run(
            [str(node), str(node_modules / "@google" / "gemini-cli" / "bundle" / "gemini.js"), *args],
            env=environment | variables,
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return done.stdout + done.stderr

    return run


def test_gemini_cli_says_that_it_is_connected(gemini: Gemini):
    deadline = time.monotonic() + 90
    # It waits for a server for some seconds only, which a busy machine may need for itself.
    while "✓ handrail" not in (said := gemini("mcp", "list")):
        assert time.monotonic() < deadline, said
    assert f"{HANDRAIL} serve" in said
    assert "Connected" in said


def test_gemini_cli_offers_the_tools_to_its_model_and_makes_its_calls(gemini: Gemini):
    asked = call("mcp_handrail_execute_cli", id="one", command="echo two hands")
    with serving([asked], [say("it is done")]) as server:
        said = gemini(
            *("--model", "gemini-2.5-flash", "--approval-mode", "yolo", "--prompt", "use your hands"),
            GOOGLE_GEMINI_BASE_URL=server.url,
        )
    assert "it is done" in said
    assert not server.faults
    first, second = server.requests
    assert {"mcp_handrail_execute_cli", "mcp_handrail_read_process"} <= set(first.declared)
    [told] = second.told
    assert "two hands" in json.dumps(told)
    assert "<untrusted " in json.dumps(told)
