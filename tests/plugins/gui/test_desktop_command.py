"""`handrail desktop`, from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from handrail.workers import processes
from handrail_gui.private.desktop_services import format_mark

from .conftest import HANDRAIL


def desktop(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    given = {"capture_output": True, "text": True, "timeout": 60, "check": False, **options}
    return subprocess.run([str(HANDRAIL), "desktop", *args], **given)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        pytest.param("exit 0", 0, id="success"),
        pytest.param("exit 7", 7, id="failure"),
        pytest.param("kill -TERM $$", 128 + signal.SIGTERM, id="signal"),
    ],
)
def test_run_exits_as_the_command_did(command: str, code: int):
    assert desktop("run", "--", "bash", "-c", command).returncode == code


def test_run_says_what_it_cannot_find():
    result = desktop("run", "--", "no-such-program")
    assert result.returncode == 127
    assert "no-such-program: No such file" in result.stderr


def test_run_gives_the_command_its_own_screen_and_its_callers_streams():
    result = desktop(
        "run", "--size", "1000x700", "--", "sh", "-c", "cat; xprop -root _NET_DESKTOP_GEOMETRY", input="in\n"
    )
    assert result.stdout.splitlines() == ["in", "_NET_DESKTOP_GEOMETRY(CARDINAL) = 1000, 700"]


def test_run_ends_what_the_command_left_behind(tmp_path: Path):
    # Its environment is empty and its session its own: neither mark nor group leads to it.
    left = (
        f"env -i setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 1000' & while [ ! -s {tmp_path}/pid ]; do :; done"
    )
    assert desktop("run", "--", "bash", "-c", left).returncode == 0
    assert int((tmp_path / "pid").read_text()) not in processes.read_process_table()


def started(tmp_path: Path, script: str) -> subprocess.Popen[str]:
    """A running `desktop run`, once its command has written `ready`."""
    running = subprocess.Popen(
        [str(HANDRAIL), "desktop", "run", "--", "bash", "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    wait_for(tmp_path / "ready")
    return running


def wait_for(file: Path, timeout: float = 20.0) -> None:
    deadline = monotonic() + timeout
    while not file.exists():
        assert monotonic() < deadline
        sleep(0.02)


def test_run_passes_signals_on(tmp_path: Path):
    running = started(tmp_path, "trap 'echo told; exit 3' TERM; touch ready; sleep 1000 & wait")
    running.send_signal(signal.SIGTERM)
    assert running.communicate(timeout=20)[0] == "told\n"
    assert running.returncode == 3


def test_killing_run_ends_the_command_and_its_screen(tmp_path: Path):
    running = started(tmp_path, "echo $$ $HANDRAIL_MARK_DESKTOP > who; touch ready; sleep 1000 & wait")
    pid, token = (tmp_path / "who").read_text().split()
    running.kill()
    running.communicate(timeout=20)
    deadline = monotonic() + 30
    while int(pid) in processes.read_process_table() or processes.find_marked_processes(format_mark(token)) & set(
        processes.read_process_table()
    ):
        assert monotonic() < deadline
        sleep(0.02)


@pytest.fixture
def named() -> Any:
    assert desktop("start", "work", "--size", "800x600").returncode == 0
    yield "work"
    desktop("stop", "work")


def test_a_started_desktop_stays_until_it_is_stopped(named: str):
    (told,) = json.loads(desktop("status", "--json").stdout)
    assert (told["name"], told["width"], told["height"]) == (named, 800, 600)
    seen = subprocess.run(
        ["xprop", "-root", "_NET_SUPPORTING_WM_CHECK"],
        env={**os.environ, **told["environment"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "window id" in seen.stdout
    assert desktop("stop", named).returncode == 0
    assert told["pid"] not in processes.read_process_table()
    assert json.loads(desktop("status", "--json").stdout) == []


def test_a_name_is_taken_once(named: str):
    result = desktop("start", named)
    assert result.returncode == 1
    assert "running already" in result.stderr


def test_a_desktop_whose_supervisor_was_killed_is_not_listed(named: str):
    (told,) = json.loads(desktop("status", "--json").stdout)
    os.kill(told["pid"], signal.SIGKILL)
    deadline = monotonic() + 30
    while json.loads(desktop("status", "--json").stdout):
        assert monotonic() < deadline
    result = desktop("stop", named)
    assert result.returncode == 1
    assert "no desktop 'work' is running" in result.stderr


def test_a_name_that_no_desktop_has_is_told_with_the_nearest_and_with_what_helps(named: str):
    stopped = desktop("stop", "wrok")
    assert stopped.returncode == 1
    assert "no desktop 'wrok' is running; did you mean 'work'?" in stopped.stderr
    assert "desktop start" not in stopped.stderr
    words = ["call", "window_list", "--desktop", "privat"]
    called = subprocess.run([HANDRAIL, *words], capture_output=True, text=True, timeout=60)
    assert called.returncode == 1
    assert "no desktop 'privat' is running; did you mean 'private'?" in called.stderr
    assert "start it with `handrail desktop start privat`" in called.stderr


def test_doctor_tells_once_that_its_desktop_is_not_there(named: str):
    done = subprocess.run([HANDRAIL, "doctor", "--desktop", "privat"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if "no desktop 'privat'" in line]
    assert line.startswith("MISSING  desktop privat: ")


def test_doctor_says_what_to_install_where_a_private_desktop_lacks_something(tmp_path: Path):
    bare = {**os.environ, "PATH": str(tmp_path)}
    words = [HANDRAIL, "doctor", "--json", "--desktop", "private"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=bare)
    (found,) = [line for line in json.loads(done.stdout) if line.get("name") == "desktop private"]
    assert (found["ok"], found["cure"]) == (False, "on Debian: apt install dbus openbox xvfb")


def test_its_file_is_only_for_its_owner(named: str):
    (file,) = Path(os.environ["HANDRAIL_HOME"]).rglob("running/desktop-*.json")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_session_works_on_a_started_desktop(named: str):
    call = subprocess.run(
        [str(HANDRAIL), "call", "window_list", "--desktop", named, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(call.stdout)["windows"] == []
