"""A Wayland session: a compositor without a screen, what works in it and what is said of the rest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from time import monotonic, sleep

import anyio
import pytest

import handrail
from handrail import Session
from handrail.api import approval

from .conftest import DEADLINE_S, HANDRAIL, TEXT

NOBODY = 65534


@pytest.fixture(scope="module")
def wayland() -> Iterator[Mapping[str, str]]:
    """The environment of programs in a session of sway, which does not run as root."""
    # Beside the tests' own folders, which others may not enter.
    folder = Path(tempfile.mkdtemp(prefix="handrail-wayland-", dir="/tmp"))
    (folder / "config").write_text("")
    as_nobody: list[str] = []
    if os.getuid() == 0:
        for path in (folder, folder / "config"):
            os.chown(path, NOBODY, NOBODY)
        as_nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    own = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "HOME": str(folder), "WLR_BACKENDS": "headless"}
    own |= {"WLR_RENDERER": "pixman", "WLR_LIBINPUT_NO_DEVICES": "1"}
    argv = [*as_nobody, "sway", "-c", str(folder / "config")]
    with (folder / "log").open("w") as log:
        compositor = subprocess.Popen(argv, env=own, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline = monotonic() + DEADLINE_S
        while not (sockets := [path for path in folder.glob("wayland-*") if path.is_socket()]):
            assert compositor.poll() is None, (folder / "log").read_text()
            assert monotonic() < deadline, (folder / "log").read_text()
            sleep(0.02)
        yield {**own, "WAYLAND_DISPLAY": sockets[0].name, "XDG_SESSION_TYPE": "wayland"}
    finally:
        compositor.terminate()
        compositor.wait(DEADLINE_S)
        shutil.rmtree(folder)


@pytest.fixture
async def session(wayland: Mapping[str, str], tmp_path: Path) -> AsyncIterator[Session]:
    async with handrail.open(environment=wayland, cwd=tmp_path, confirm=approval.yes) as found:
        yield found


@pytest.mark.parametrize("selection", ["clipboard", "primary"])
async def test_the_clipboard_works_and_stays(session: Session, wayland: Mapping[str, str], selection: str):
    assert (await session.call("clipboard_write", {"text": TEXT, "selection": selection})).ok
    await session.close()
    more = ["--primary"] if selection == "primary" else []
    pasted = await anyio.run_process(["wl-paste", "-n", *more], env=wayland)
    assert pasted.stdout.decode() == TEXT


@pytest.mark.parametrize("selection", ["clipboard", "primary"])
async def test_what_others_copied_is_read(session: Session, wayland: Mapping[str, str], selection: str):
    more = ["--primary"] if selection == "primary" else []
    # wl-copy stays in the background with the streams that it was given.
    null = subprocess.DEVNULL
    await anyio.run_process(["wl-copy", *more], input=TEXT.encode(), env=wayland, stdout=null, stderr=null)
    read = await session.call("clipboard_read", {"selection": selection})
    assert read["content"] == TEXT
    assert "text/plain;charset=utf-8" in read["formats"]


async def test_an_empty_clipboard_has_no_text(session: Session, wayland: Mapping[str, str]):
    await anyio.run_process(["wl-copy", "--clear"], env=wayland)
    read = await session.call("clipboard_read")
    assert (read.status, read["content"], read["formats"]) == ("success", None, [])


@pytest.mark.parametrize("tool", ["window_list", "observe_screen"])
async def test_windows_and_input_are_refused_with_the_reason(session: Session, tool: str):
    refused = await session.call(tool)
    assert refused.status == "error"
    assert "Wayland" in refused["error"]["message"]
    assert "--desktop private" in refused["error"]["message"]


def test_doctor_says_what_works_and_what_does_not(wayland: Mapping[str, str]):
    done = subprocess.run([HANDRAIL, "doctor", "--json"], env=wayland, capture_output=True, check=False, timeout=60)
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert found["Wayland: clipboard"]["ok"]
    windows = found["Wayland: windows, pointer, keys, pictures"]
    assert not windows["ok"]
    assert "--desktop private" in windows["cure"]
    assert "uses none" in found["Wayland: portals"]["detail"]
