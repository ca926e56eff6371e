"""A private desktop: quickly there, closed to others, and gone with everything on it, however its owner ends."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

import handrail
from handrail import DesktopError
from handrail.workers import processes
from handrail_gui.platforms.x11.connection import X11Connection
from handrail_gui.platforms.x11.screen import X11Screen
from handrail_gui.private.desktop_services import MARK_VARIABLE, format_mark
from handrail_gui.private.supervisor_client import PrivateDesktop

# Starts a desktop and programs on it: an editor, a process that left its session and its parent, and says who they are.
OWNER = """
import json, os, subprocess, sys
from handrail_gui.private.supervisor_client import PrivateDesktop
started = PrivateDesktop.start("owned")
environment = {**os.environ, **started.desktop.environment}
editor = subprocess.Popen(["mousepad"], env=environment, stderr=subprocess.DEVNULL)
subprocess.run(["setsid", "--fork", "sleep", "1000"], env=environment)
print(json.dumps({"supervisor": started.process.pid, "token": started.token, "pids": started.pids, "editor": editor.pid,
                  "folder": started.desktop.environment["XDG_RUNTIME_DIR"]}), flush=True)
sys.stdin.read()
"""


def wait_until(condition: Callable[[], Any], what: str, timeout: float = 15.0) -> None:
    deadline = monotonic() + timeout
    while not condition():
        assert monotonic() < deadline, f"waited {timeout:g} s in vain for {what}"
        sleep(0.02)


def is_gone(told: dict[str, Any]) -> bool:
    """No process of the desktop is left, not even its supervisor, and its folder is removed."""
    left = processes.find_marked_processes(format_mark(told["token"])) & set(processes.read_process_table())
    servers = [pid for pid in (told["supervisor"], *told["pids"].values()) if pid in processes.read_process_table()]
    return not left and not servers and not Path(told["folder"]).parent.exists()


@pytest.fixture
def owner() -> Any:
    running = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    told = json.loads(running.stdout.readline())
    wait_until(
        lambda: len(processes.find_marked_processes(format_mark(told["token"]))) >= 7, "the programs of the desktop"
    )
    yield running, told
    running.kill()
    running.communicate(timeout=20)


def test_it_is_ready_in_a_moment():
    began = monotonic()
    desktop = PrivateDesktop.start("quick")
    took = monotonic() - began
    desktop.close()
    # Usually 0.2 s; the limit is for machines that do much else.
    assert took < 15


def test_all_of_it_ends_when_its_owner_is_killed(owner: Any):
    running, told = owner
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    wait_until(lambda: is_gone(told), "the end of the desktop")


def test_all_of_it_ends_when_its_supervisor_is_killed(owner: Any):
    _, told = owner
    os.kill(told["supervisor"], signal.SIGKILL)
    # The owner, its parent, is still there to be asked how it ended.
    wait_until(lambda: is_gone({**told, "supervisor": told["pids"]["Xvfb"]}), "the end of the desktop")


def test_all_of_it_ends_when_the_screen_dies(owner: Any):
    _, told = owner
    os.kill(told["pids"]["Xvfb"], signal.SIGKILL)
    wait_until(lambda: is_gone({**told, "supervisor": told["pids"]["Xvfb"]}), "the end of the desktop")


def test_close_waits_until_everything_is_gone():
    desktop = PrivateDesktop.start("closed")
    environment = {**os.environ, **desktop.desktop.environment}
    program = subprocess.Popen(["bash", "-c", "trap '' TERM; while true; do sleep 1000; done"], env=environment)
    told = {
        "token": desktop.token,
        "supervisor": desktop.process.pid,
        "pids": desktop.pids,
        "folder": desktop.desktop.environment["XDG_RUNTIME_DIR"],
    }
    desktop.close()
    assert is_gone(told)
    assert program.wait(30) == -signal.SIGKILL


def test_a_desktop_that_is_closed_at_once_leaves_nothing():
    for _ in range(5):
        desktop = PrivateDesktop.start("brief")
        folder = Path(desktop.desktop.environment["XDG_RUNTIME_DIR"]).parent
        desktop.close()
        assert not processes.find_marked_processes(desktop.mark) & set(processes.read_process_table())
        assert not folder.exists()


async def test_a_browser_and_its_helpers_end_with_the_desktop(programs: Any):
    desktop = PrivateDesktop.start("browser")
    folder = Path(desktop.desktop.environment["XDG_RUNTIME_DIR"]).parent
    connection = await X11Connection.open(str(desktop.desktop.display))
    flags = ["--no-sandbox", "--no-first-run", f"--user-data-dir={folder}/profile"]
    await programs.open(desktop.desktop, X11Screen(connection), "chromium", *flags, "about:blank")
    assert len(_naming(folder)) > 3
    await connection.close()
    desktop.close()
    assert _naming(folder) == []
    assert not folder.exists()


def _naming(folder: Path) -> list[int]:
    """The running processes whose command line names the folder."""
    found: list[int] = []
    for pid in processes.read_process_table():
        with contextlib.suppress(OSError):
            if str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


async def test_two_desktops_do_not_see_each_other(programs: Any):
    first, second = PrivateDesktop.start("first"), PrivateDesktop.start("second", width=800, height=600)
    try:
        one, other = [await X11Connection.open(str(desktop.desktop.display)) for desktop in (first, second)]
        await programs.open(first.desktop, X11Screen(one), "mousepad")
        assert [window.process for window in await X11Screen(one).windows()] == ["mousepad"]
        assert await X11Screen(other).windows() == []
        assert (await X11Screen(other).monitors())[0].width == 800
        await one.close()
        await other.close()
    finally:
        first.close()
        second.close()


def test_other_users_cannot_connect(private: PrivateDesktop):
    if os.getuid() != 0:
        pytest.skip("only root can try it as somebody else")
    setpriv = shutil.which("setpriv")
    assert setpriv is not None
    other = [setpriv, "--reuid=65534", "--clear-groups", "xprop", "-root", "-display", str(private.desktop.display)]
    refused = subprocess.run(other, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "Authorization required" in refused.stderr


def test_its_settings_are_not_the_persons(private: PrivateDesktop):
    environment = private.desktop.environment
    folders = {Path(environment[f"XDG_{name}_HOME"]) for name in ("CONFIG", "DATA", "CACHE", "STATE")}
    assert all(not folder.is_relative_to(Path.home()) for folder in folders)
    assert Path(environment["XDG_RUNTIME_DIR"]).stat().st_mode & 0o777 == 0o700
    assert "HOME" not in environment


def test_accessibility_is_on_without_a_screen_reader(private: PrivateDesktop):
    environment = {**os.environ, **private.desktop.environment}

    def switched(name: str) -> str:
        get = ["org.freedesktop.DBus.Properties.Get", "string:org.a11y.Status", f"string:{name}"]
        ask = ["dbus-send", "--session", "--print-reply", "--dest=org.a11y.Bus", "/org/a11y/bus", *get]
        return subprocess.run(ask, env=environment, capture_output=True, text=True, check=True).stdout

    assert "boolean true" in switched("IsEnabled")
    assert "boolean false" in switched("ScreenReaderEnabled")


def test_what_is_missing_is_named_with_its_package(tmp_path: Path):
    code = "from handrail_gui.private.supervisor_client import describe_missing_programs; print(describe_missing_programs())"
    bare = {"PATH": str(tmp_path), "XDG_DATA_DIRS": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", code], env=bare, capture_output=True, text=True, check=True).stdout
    assert "Xvfb" in told
    assert "apt install at-spi2-core dbus openbox xvfb" in told


@pytest.mark.parametrize("size", [(0, 100), (100, 20_000)])
def test_a_size_that_cannot_be_made_is_refused(size: tuple[int, int]):
    with pytest.raises(DesktopError, match="cannot be made"):
        PrivateDesktop.start("odd", width=size[0], height=size[1])


async def test_a_screen_that_hangs_gives_an_error_and_no_hang(tmp_path: Path):
    async with handrail.open(desktop="private", cwd=tmp_path) as session:
        desktop = await session.desktop()
        assert (await session.call("window_list")).ok
        server = next(
            pid
            for pid in processes.find_marked_processes(format_mark(desktop.environment[MARK_VARIABLE]))
            if Path(f"/proc/{pid}/comm").read_text().strip() == "Xvfb"
        )
        os.kill(server, signal.SIGSTOP)
        began = monotonic()
        result = await session.call("window_list")
        assert result.error_code == "downstream_error"
        assert monotonic() - began < 60
        os.kill(server, signal.SIGCONT)


async def test_a_screen_that_died_gives_an_error(tmp_path: Path):
    async with handrail.open(desktop="private", cwd=tmp_path) as session:
        desktop = await session.desktop()
        assert (await session.call("window_list")).ok
        for pid in processes.find_marked_processes(format_mark(desktop.environment[MARK_VARIABLE])):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        result = await session.call("window_list")
        assert result.error_code == "downstream_error"
        assert "gone" in result["error"]["message"]
