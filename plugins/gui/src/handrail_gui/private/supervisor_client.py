"""The owner's side of a private desktop: starts a supervisor, talks to it, and ends it. Blocking; bounded by deadlines."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from handrail import Desktop, DesktopError
from handrail.fs.app_dirs import DESKTOP_DIRS_VARIABLE, AppDirs
from handrail.workers.host_programs import START_FOLDER, find_own_programs
from handrail_gui.private.desktop_services import format_mark

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
MIN_SCREEN_SIDE, MAX_SCREEN_SIDE = 64, 16384

# What a desktop is made of, by program, with the Debian package that has it.
REQUIRED_PROGRAMS: Mapping[str, str] = {
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "dbus-daemon": "dbus",
    "dbus-send": "dbus",
}
ACCESSIBILITY_SERVICE_FILE = "dbus-1/services/org.a11y.Bus.service"


def describe_missing_programs() -> str | None:
    """Return what a private desktop lacks on this machine and how to install it; None if nothing is missing."""
    if sys.platform != "linux":
        return "private desktops need Linux with an X server (Xvfb)"
    programs = find_own_programs()
    absent = {program: package for program, package in REQUIRED_PROGRAMS.items() if programs.find(program) is None}
    if not _has_accessibility():
        absent["at-spi-bus-launcher"] = "at-spi2-core"
    if not absent:
        return None
    packages = " ".join(sorted(set(absent.values())))
    return f"a private desktop needs {', '.join(absent)}; on Debian: apt install {packages}"


def _has_accessibility() -> bool:
    folders = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    return any((Path(folder) / ACCESSIBILITY_SERVICE_FILE).is_file() for folder in folders.split(":"))


def _join_places(environment: Mapping[str, str]) -> str:
    return os.pathsep.join(str(place) for place in AppDirs.of(environment).all)


def _spawn_supervisor(
    environment: Mapping[str, str], kept: tuple[int, ...], *, detached: bool
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "handrail_gui.private.supervisor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=START_FOLDER,
        env=environment,
        start_new_session=detached,
        pass_fds=kept,
    )


@dataclass(slots=True)
class PrivateDesktop:
    """A running private desktop. It ends with `close`, with this process, or, kept, with its supervisor."""

    desktop: Desktop
    width: int
    height: int
    process: subprocess.Popen[bytes]
    token: str
    pids: Mapping[str, int] = field(default_factory=dict[str, int])
    _pending: bytes = b""

    @classmethod
    def start(
        cls,
        name: str,
        *,
        width: int = 1280,
        height: int = 800,
        keep: bool = False,
        environment: Mapping[str, str] | None = None,
        pass_descriptors: tuple[int, ...] = (),
        detached: bool = True,
    ) -> PrivateDesktop:
        """Start a desktop and wait until it is ready; raise `DesktopError` saying what is missing or failed.

        `keep`: it outlives this process. `pass_descriptors` are open ones that `run` may name. `detached` shields it
        from a terminal's Ctrl-C.
        """
        if not (MIN_SCREEN_SIDE <= width <= MAX_SCREEN_SIDE and MIN_SCREEN_SIDE <= height <= MAX_SCREEN_SIDE):
            raise DesktopError(
                f"a screen of {width}x{height} cannot be made",
                hint=f"each side has {MIN_SCREEN_SIDE} to {MAX_SCREEN_SIDE} pixels",
            )
        if (lacks := describe_missing_programs()) is not None:
            raise DesktopError(lacks)
        # A service is given one whose PATH holds no folder that agents write.
        own = dict(find_own_programs().environment if environment is None else environment)
        process = _spawn_supervisor(own, pass_descriptors, detached=detached)
        token = secrets.token_hex(16)
        started = cls(Desktop(name, None, private=True), width, height, process, token)
        try:
            owner = None if keep else os.getpid()
            started.tell({"token": token, "width": width, "height": height, "owner": owner, "keep": keep})
            told = started.listen(START_TIMEOUT_S)
            # A Handrail on the desktop keeps to the same policy and writes to the same audit, although the desktop has XDG folders of its own.
            told["environment"][DESKTOP_DIRS_VARIABLE] = own.get(DESKTOP_DIRS_VARIABLE) or _join_places(own)
        except BaseException:
            started.close()
            raise
        display, variables = told["display"], told["environment"]
        started.desktop = Desktop(name, display, environment=variables, private=True, temporary=not keep)
        started.pids = told["pids"]
        return started

    def tell(self, message: Mapping[str, Any]) -> None:
        """Give the supervisor an order; `DesktopError` when it is gone."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError) as exc:
            raise DesktopError(f"the desktop {self.desktop.name!r} has ended") from exc

    def listen(self, timeout: float | None = None) -> dict[str, Any]:
        """Read the supervisor's next line.

        Raises `DesktopError` if it reports an error, ends, or is silent for `timeout` seconds.
        """
        assert self.process.stdout is not None
        source = self.process.stdout.fileno()
        deadline = None if timeout is None else monotonic() + timeout
        while b"\n" not in self._pending:
            left = None if deadline is None else max(0.0, deadline - monotonic())
            if not select.select([source], [], [], left)[0]:
                raise DesktopError(f"the private desktop was not ready after {timeout:g} s")
            chunk = os.read(source, 65536)
            if not chunk:
                raise DesktopError(f"the desktop {self.desktop.name!r} has ended")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        if "error" in told:
            raise DesktopError(f"the private desktop could not be started: {told['error']}")
        return told

    @property
    def mark(self) -> str:
        """The environment entry shared by everything on the desktop."""
        return format_mark(self.token)

    @property
    def running(self) -> bool:
        """True if its supervisor is running."""
        return self.process.poll() is None

    def let_go(self) -> None:
        """Detach from a desktop started with `keep`: it continues without this process."""
        self._hang_up()
        # Popen warns of a child that is still running when it is forgotten; this one is meant to be.
        self.process.returncode = 0

    def close(self) -> None:
        """End the desktop with everything that runs on it, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        self._hang_up()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # Its guard cleans up behind it.
            self.process.kill()
            self.process.wait()

    def _hang_up(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
