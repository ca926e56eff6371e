"""A process that keeps a screen, and the machine behind it, awake until it is ended: `python -m handrail_gui.platforms.x11.keep_awake DISPLAY FILE`.

It returns once it does, and stays in the background; FILE then holds its process id and is locked by it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from shutil import which
from types import FrameType

from Xlib import X, error
from Xlib.ext import screensaver
from Xlib.protocol import rq

from handrail.fs.file_locks import try_lock
from handrail.workers.host_programs import START_FOLDER
from handrail_gui.platforms.x11.connection import X11Client, open_client

AWAKE_POLL_S = 60.0


class SuspendRequest(rq.Request):
    """MIT-SCREEN-SAVER 1.1: no screen saver for as long as the connection lives."""

    _request = rq.Struct(rq.Card8("opcode"), rq.Opcode(5), rq.RequestLength(), rq.Bool("suspend"), rq.Pad(3))


def suspend_screensaver(client: X11Client) -> None:
    """Hold the screen saver off."""
    opcode = client.display.display.get_extension_major(screensaver.extname)
    # The request is known from version 1.1 on, which has to be agreed on first.
    screensaver.QueryVersion(display=client.display.display, opcode=opcode, major_version=1, minor_version=1)
    SuspendRequest(display=client.display.display, opcode=opcode, suspend=True)
    # One that has come already stays otherwise.
    client.display.force_screen_saver(X.ScreenSaverReset)
    client.display.sync()


def start_sleep_inhibitor() -> subprocess.Popen[bytes] | None:
    """Start a process that keeps the machine itself awake; return None without systemd."""
    if which("systemd-inhibit") is None or not Path("/run/systemd/system").is_dir():
        return None
    why = ["--who=handrail", "--why=kept awake by hand"]
    null = subprocess.DEVNULL
    argv = ["systemd-inhibit", "--what=idle:sleep", *why, "sleep", "infinity"]
    return subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, cwd=START_FOLDER)


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def run_keep_awake(name: str, path: str) -> None:
    """Keep it awake until SIGTERM, or until the screen is gone."""
    client = open_client(name)
    if not client.display.has_extension(screensaver.extname):
        raise SystemExit(1)
    suspend_screensaver(client)
    file = open(path, "a+", encoding="ascii")  # it is open, and so locked, for as long as the process lives
    signal.signal(signal.SIGTERM, _exit_on_signal)
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        # Nothing comes when the other ends without having taken its place.
        os._exit(0 if os.read(reading, 1) else 1)
    if not try_lock(file.fileno()):
        raise SystemExit(1)
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    helper = start_sleep_inhibitor()
    os.write(writing, b"1")
    os.close(writing)
    os.close(reading)
    try:
        while True:
            client.pump(lambda: False, timeout=AWAKE_POLL_S)
            client.display.sync()
    except (error.ConnectionClosedError, OSError):
        # The screen is gone.
        return
    finally:
        if helper is not None:
            helper.kill()
            helper.wait()


if __name__ == "__main__":
    run_keep_awake(*sys.argv[1:])
