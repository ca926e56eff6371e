"""`handrail uninstall` on what really runs: all that was started is gone, by its process id, and nothing of anybody else."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

HANDRAIL = str(Path(sys.executable).with_name("handrail"))
PATIENCE_S = 60.0
# What the bystander runs, too.
WAITING = ["sleep", "3001"]

pytestmark = pytest.mark.timeout(240)


class Place:
    """A person's home with what was started in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        hidden = {"DISPLAY", "WAYLAND_DISPLAY"}
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self.environment |= {"HOME": str(folder), "HANDRAIL_HOME": str(self.state), "XDG_CONFIG_HOME": str(folder)}
        self.started: list[subprocess.Popen[bytes]] = []

    def handrail(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [HANDRAIL, *words], env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """A program that goes on, once it has said its first line, or been told one."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(words, env=self.environment, cwd=self.folder, stdin=pipe, stdout=pipe, bufsize=0)
        self.started.append(process)
        return process

    def session(self, *words: str) -> Session:
        return Session(self.start(HANDRAIL, "session", "--jsonl", "--yes", *words))

    def close(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


class Session:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def call(self, tool: str, **args: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"id": 1, "tool": tool, "args": args}).encode() + b"\n")
        result = json.loads(self.process.stdout.readline())["result"]
        assert result["status"] == "success", result
        return result


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    # What a test that failed has left.
    made.handrail("uninstall", "--yes")
    made.close()


@pytest.fixture
def bystander() -> Iterator[psutil.Process]:
    """The same program as one of ours, started by somebody else."""
    process = subprocess.Popen(WAITING)
    yield psutil.Process(process.pid)
    process.kill()
    process.wait()


def first_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode()


def family(*roots: int) -> set[psutil.Process]:
    found = [psutil.Process(root) for root in roots]
    return {*found, *(child for root in found for child in root.children(recursive=True))}


def alive(processes: set[psutil.Process]) -> set[psutil.Process]:
    """Those that run; one that has ended, and that whoever started it has not asked after, does not."""
    return {each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE}


def wait_until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"after {PATIENCE_S:g} s it is still not so that {what}"
        time.sleep(0.05)


def daemon(folder: Path, name: str) -> str:
    """A command that leaves a process in a session of its own, which the end of the command's session does not reach."""
    return f"setsid nohup sh -c 'echo $$ > {folder}/{name}; exec {' '.join(WAITING)}' > /dev/null 2>&1 &"


def written(file: Path) -> int:
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), f"{file} is written")
    return int(file.read_text())


def test_uninstall_ends_all_that_was_started_and_nothing_else(place: Place, bystander: psutil.Process):
    session = place.session("--desktop", "private")
    session.call("window_list")
    session.call("execute_cli", command=" ".join(WAITING), background=True)
    session.call("execute_cli", command=daemon(place.folder, "daemon"))
    servers = [place.start(HANDRAIL, *words, "--port", "0") for words in (("console",), ("serve", "--http"))]
    lines = [first_line(server) for server in servers]
    assert all(line.startswith("http://127.0.0.1:") for line in lines), lines
    desktop = json.loads(place.handrail("desktop", "start", "work", "--json").stdout)
    assert place.handrail("mcp", "install", "gemini").returncode == 0
    roots = [session.process.pid, *(server.pid for server in servers), desktop["pid"]]
    ours = family(*roots, written(place.folder / "daemon"))
    assert {"Xvfb", "openbox", "dbus-daemon", "sleep"} <= {each.name() for each in ours}

    told = place.handrail("uninstall", "--dry-run").stdout
    assert all(f"{pid} (" in told for pid in roots)
    for what in ("handrail session", "handrail console", "handrail serve", "the desktop 'work'", "left running"):
        assert what in told
    assert "remove: handrail mcp uninstall gemini\n" in told
    assert f"stays    {place.state / 'data'}  " in told
    assert "pip" in told.splitlines()[-1]
    refused = place.handrail("uninstall")
    assert (refused.returncode, alive(ours)) == (1, ours)
    assert "--yes ends what runs" in refused.stderr

    done = place.handrail("uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("ended")]
    assert f"ended    handrail session in {str(place.folder)!r}: {session.process.pid} (handrail)" in lines
    for pid in roots:
        assert len([line for line in lines if f" {pid} (" in line]) == 1, lines
    assert alive(ours) == set()
    assert bystander.is_running()
    assert "nothing that was started from here runs\n" in place.handrail("uninstall", "--yes").stdout


def test_what_a_session_that_was_killed_has_left_is_found_and_ended(place: Place, bystander: psutil.Process):
    session = place.session()
    session.call("execute_cli", command=" ".join(WAITING), background=True)
    session.call("execute_cli", command=daemon(place.folder, "daemon"))
    left = psutil.Process(written(place.folder / "daemon"))
    ours = family(session.process.pid)
    session.process.send_signal(signal.SIGKILL)
    session.process.wait()
    wait_until(lambda: alive(ours) <= {left}, "all that was watched over has ended")
    assert alive({left})

    done = place.handrail("uninstall", "--yes")
    assert done.returncode == 0, done.stderr
    assert f"a command that was left running: {left.pid} (sleep)\n" in done.stdout
    assert not alive({left})
    assert bystander.is_running()


def test_what_was_told_to_outlive_its_session_is_found_and_ended(place: Place, bystander: psutil.Process):
    session = place.session()
    session.call("execute_cli", command=daemon(place.folder, "daemon"))
    left = psutil.Process(written(place.folder / "daemon"))
    assert session.process.stdin is not None
    session.process.stdin.close()
    assert session.process.wait(PATIENCE_S) == 0
    assert alive({left})
    assert place.handrail("uninstall", "--yes").returncode == 0
    assert not alive({left})
    assert bystander.is_running()


def test_a_command_that_ends_by_itself_is_not_written_down_any_more(place: Place):
    session = place.session()
    session.call("execute_cli", command="echo done", background=True)
    assert session.process.stdin is not None
    session.process.stdin.close()
    assert session.process.wait(PATIENCE_S) == 0
    assert list((place.state / "state" / "running").glob("*.json")) == []


def test_a_number_that_is_another_process_by_now_is_not_ended(place: Place, bystander: psutil.Process):
    place.session().call("wait", seconds=0.1)
    (file,) = (place.state / "state" / "running").glob("program-*.json")
    told = json.loads(file.read_text())
    file.with_name("program-1.json").write_text(
        json.dumps({**told, "name": "1", "pid": bystander.pid, "started": told["started"] + 1})
    )
    assert place.handrail("uninstall", "--yes").returncode == 0
    assert alive({bystander})


@pytest.mark.parametrize(
    "forged", [{"mark": "STRANGER={}"}, {"mark": "HANDRAIL_MARK_{}"}, {"mark": 1}, {"pid": "self"}]
)
def test_a_record_that_speaks_of_strangers_ends_nobody(place: Place, forged: dict[str, Any]):
    token = secrets.token_hex()
    folder = place.state / "state" / "running"
    folder.mkdir(parents=True, mode=0o700)
    told = {"kind": "command", "name": "1", "what": "a command", "pid": 2**22, "started": 1, "prefix": sys.prefix}
    told |= {key: value.format(token) if isinstance(value, str) else value for key, value in forged.items()}
    (folder / "command-1.json").write_text(json.dumps(told))
    with subprocess.Popen(WAITING, env={**os.environ, "STRANGER": token}) as stranger:
        try:
            done = place.handrail("uninstall", "--yes")
            assert stranger.poll() is None
        finally:
            stranger.kill()
    assert (done.returncode, "is not what Handrail writes there" in done.stderr) == (1, True), done


def test_what_another_environment_of_the_same_person_runs_is_named_and_stays(place: Place):
    session = place.session()
    session.call("wait", seconds=0.1)
    (file,) = (place.state / "state" / "running").glob("program-*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "prefix": "/elsewhere"}))
    done = place.handrail("uninstall", "--yes")
    assert f"{session.process.pid} (handrail); from /elsewhere, which stays\n" in done.stdout
    assert session.process.poll() is None


def test_uninstall_ends_nothing_that_it_comes_from(place: Place):
    session = place.session()
    told = session.call("execute_cli", command=f"{HANDRAIL} uninstall --yes", timeout=120)
    assert "nothing that was started from here runs" in told["stdout"]
    assert session.process.poll() is None
