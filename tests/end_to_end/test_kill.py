"""What is left when Handrail itself is killed in the middle of a call: an honest audit, and nothing that runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

HANDRAIL = str(Path(sys.executable).with_name("handrail"))
PATIENCE_S = 60.0


def wait_until(true: Callable[[], bool], *, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"after {PATIENCE_S:g} s it is still not so that {what}"
        time.sleep(0.05)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "HANDRAIL_HOME": str(tmp_path / "home")}


def killed_while_sleeping(environment: dict[str, str], folder: Path) -> list[psutil.Process]:
    """Kill a session in the middle of `sleep`; the processes it had started, which should end too."""
    session = subprocess.Popen(
        [HANDRAIL, "session", "--jsonl", "--yes", "--desktop", "private", "--events"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        env=environment,
        text=True,
    )
    assert session.stdin is not None
    assert session.stdout is not None
    call = {"id": 1, "tool": "execute_cli", "args": {"command": "echo begun > begun; sleep 300; echo late > late"}}
    session.stdin.write(json.dumps(call) + "\n")
    session.stdin.flush()
    wait_until((folder / "begun").exists, what="the command has begun")
    children = psutil.Process(session.pid).children(recursive=True)
    session.send_signal(signal.SIGKILL)
    session.wait()
    session.stdin.close()
    session.stdout.close()
    return children


@pytest.mark.timeout(120)
def test_after_kill_9_the_audit_verifies_and_says_what_is_missing(environment: dict[str, str], tmp_path: Path) -> None:
    killed_while_sleeping(environment, tmp_path)

    verified = subprocess.run(
        [HANDRAIL, "audit", "verify", "--json"], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert verified.returncode == 0, verified.stderr
    (found,) = json.loads(verified.stdout)
    assert found["problems"] == []
    assert any("end line is missing" in note for note in found["notes"])
    assert any("execute_cli" in note and "no result" in note for note in found["notes"])


@pytest.mark.timeout(120)
def test_after_kill_9_nothing_runs_and_the_next_start_is_clean(environment: dict[str, str], tmp_path: Path) -> None:
    children = killed_while_sleeping(environment, tmp_path)
    names = {child.name() for child in children if child.is_running()}
    wait_until(lambda: not any(child.is_running() for child in children), what=f"{names} have ended")
    assert not (tmp_path / "late").exists()

    again = subprocess.run(
        [HANDRAIL, "call", "window_list", "--json", "--desktop", "private"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["windows"] == []
