"""Runs that are kept: listed, gone on with after the program was killed, shown, exported, deleted, and reported on."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Each starts many programs, one after another, and on a loaded machine each of these takes long.
pytestmark = pytest.mark.timeout(300)

HANDRAIL = Path(sys.executable).with_name("handrail")
NOTE = {"tool": "write_file", "args": {"file_path": "note.txt", "content": "hello\n"}}
# The first is over at once; the second is under way when the program is killed; the third waits for it, and has not begun.
STEP = [
    {"tool": "wait", "args": {"seconds": 0.1}},
    {"tool": "execute_cli", "args": {"command": "echo began >> log; sleep 100; echo ended >> log"}},
    {"tool": "write_file", "args": {"file_path": "after.txt", "content": "x", "wait_for_previous": True}},
]


def around(folder: Path) -> dict[str, str]:
    return {**os.environ, "HANDRAIL_HOME": str(folder / "home"), "HANDRAIL_PLUGINS": "adk,files,cli"}


def handrail(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HANDRAIL, *argv],
        cwd=folder,
        env=around(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def script(folder: Path, *steps: Any) -> str:
    file = folder / "script.yaml"
    file.write_text(json.dumps(steps))
    return f"script:{file}"


def listed(folder: Path) -> list[dict[str, Any]]:
    return json.loads(handrail(folder, "sessions", "list", "--json").stdout)


def killed_in_a_step(folder: Path) -> str:
    """The id of a run whose program was killed while its second call was under way and the first had ended."""
    argv = [HANDRAIL, "run", "keep a log", "--yes", "--json", "--model", script(folder, {"calls": STEP})]
    with subprocess.Popen(
        argv, cwd=folder, env=around(folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        awaited = {("finished", "wait"), ("started", "execute_cli")}
        for line in program.stdout:
            event = json.loads(line)
            awaited.discard((event["event"], event.get("tool")))
            if not awaited:
                break
        while not (folder / "log").exists():
            assert program.poll() is None
        program.send_signal(signal.SIGKILL)
    (run,) = listed(folder)
    assert (run["task"], run["ending"]) == ("keep a log", "unfinished")
    return run["id"]


def test_a_run_goes_on_truthfully_after_its_program_was_killed_in_a_step(tmp_path: Path) -> None:
    id = killed_in_a_step(tmp_path)
    gone_on = handrail(tmp_path, "run", "--resume", id, "--yes", "--model", script(tmp_path, {"calls": [NOTE]}))
    assert gone_on.returncode == 0, gone_on.stderr
    assert (tmp_path / "note.txt").read_text() == "hello\n"
    content = json.loads(handrail(tmp_path, "sessions", "show", id, "--json").stdout)
    assert (content["ending"], content["task"]) == ("done", "keep a log")
    answers = next(event["results"] for event in content["events"] if "results" in event)
    waited, under_way, later = (each["result"] for each in answers)
    assert waited["status"] == "success"
    assert waited["result"]["waited_seconds"] >= 0.1
    assert under_way["error"]["code"] == later["error"]["code"] == "interrupted"
    assert "it is not known whether it was done" in under_way["error"]["message"]
    assert "nothing was done" in later["error"]["message"]
    assert not (tmp_path / "after.txt").exists()
    # Every call has one answer, and what was asked comes after it.
    calls = [call["id"] for event in content["events"] for call in event.get("calls", ())]
    assert calls == [each["id"] for event in content["events"] for each in event.get("results", ())]
    assert (
        "Go on with the task"
        in [event["text"] for event in content["events"] if event["by"] == "user" and "text" in event][1]
    )


def test_runs_are_shown_exported_and_deleted(tmp_path: Path) -> None:
    model = script(tmp_path, {"text": "I write.", "calls": [NOTE]}, {"text": "Written."})
    report = tmp_path / "report.html"
    done = handrail(tmp_path, "run", "write token=abcdef-123456-z", "--yes", "--model", model, "--report", str(report))
    assert done.returncode == 0, done.stderr
    (run,) = listed(tmp_path)
    shown = handrail(tmp_path, "sessions", "show", run["id"]).stdout
    assert "Agent: I write." in shown
    assert "  write_file: success" in shown
    file = tmp_path / "run.json"
    assert handrail(tmp_path, "sessions", "export", run["id"], "-o", str(file)).returncode == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "abcdef-123456-z" not in file.read_text()
    assert [call["tool"] for event in json.loads(file.read_text())["events"] for call in event.get("calls", ())] == [
        "write_file"
    ]
    assert handrail(tmp_path, "sessions", "export", run["id"], "-o", str(file)).returncode == 1
    page = report.read_text()
    assert 'data-tool="write_file" data-status="success"' in page
    assert "the run ended: done" in page
    assert handrail(tmp_path, "sessions", "delete", run["id"]).returncode == 0
    assert listed(tmp_path) == []
    missing = handrail(tmp_path, "run", "--resume", run["id"], "--model", model)
    assert (missing.returncode, "there is no run" in missing.stderr) == (1, True), missing.stderr


def test_the_file_of_runs_is_its_owners_only_and_a_run_is_gone_on_with_once(tmp_path: Path) -> None:
    handrail(tmp_path, "run", "say it", "--model", script(tmp_path, {"text": "Said."}))
    (run,) = listed(tmp_path)
    kept = tmp_path / "home" / "data" / "runs"
    assert {stat.S_IMODE(file.stat().st_mode) for file in kept.iterdir()} == {0o600}
    waits = script(tmp_path, {"calls": [{"tool": "wait", "args": {"seconds": 60}}]})
    with subprocess.Popen(
        [HANDRAIL, "run", "--resume", run["id"], "--json", "--model", waits],
        cwd=tmp_path,
        env=around(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        next(line for line in program.stdout if json.loads(line)["event"] == "started")
        second = handrail(tmp_path, "run", "--resume", run["id"], "--model", waits)
        program.send_signal(signal.SIGTERM)
        program.send_signal(signal.SIGINT)
        program.stdout.read()
    assert second.returncode == 1
    assert "another program is at the run" in second.stderr
