"""The parts of a private desktop and the order they start in. Standard library only: runs in the supervisor."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from handrail_gui.private.display_access import admit_user, create_cookie, write_cookie
from handrail_gui.private.process_spawn import ProgramSpec, StartFailed, read_first_line, read_output, spawn_program

# In the environment of everything that is started on a private desktop; the value is the desktop's own token.
MARK_VARIABLE = "HANDRAIL_MARK_DESKTOP"

# Seconds for all parts together; usually it takes a fifth of a second.
START_DEADLINE_S = 15.0

# What a cursor that blinks and a menu that fades in would change on the screen, nobody has done.
GTK_SETTINGS = "[Settings]\ngtk-cursor-blink=false\ngtk-enable-animations=false\n"

# A person's own screen, if there is one, must not be found by a program of this desktop, and every toolkit must show its tree.
TOOLKIT_ENVIRONMENT = {
    "WAYLAND_DISPLAY": "",
    "XDG_SESSION_TYPE": "x11",
    "XDG_CURRENT_DESKTOP": "openbox",
    "GDK_BACKEND": "x11",
    "QT_QPA_PLATFORM": "xcb",
    "NO_AT_BRIDGE": "0",
    "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
    "SAL_USE_VCLPLUGIN": "gtk3",
    "GSETTINGS_BACKEND": "memory",
    "GTK_USE_PORTAL": "0",
    # There is no graphics card: without this, GTK 4 has one imitated, and is busy with that for seconds.
    "GSK_RENDERER": "cairo",
}


def format_mark(token: str) -> str:
    """Return the environment entry shared by everything on the desktop with this token."""
    return f"{MARK_VARIABLE}={token}"


@dataclass(slots=True)
class DesktopServices:
    """A desktop in the making: `environment` is what a program needs to appear on it, `pids` the servers by name."""

    folder: Path
    token: str
    width: int
    height: int
    host: Mapping[str, str]
    environment: dict[str, str] = field(default_factory=dict[str, str])
    pids: dict[str, int] = field(default_factory=dict[str, int])
    deadline: float = field(default_factory=lambda: monotonic() + START_DEADLINE_S)
    null: int = field(default_factory=lambda: os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
    log: int = -1

    def start(self) -> None:
        """Screen, then window manager and session bus, then accessibility: each is ready before the next needs it. Raises `StartFailed`."""
        self._prepare()
        self._screen()
        managing = self._window_manager()
        self._session_bus()
        self._accessibility()
        read_first_line(managing, of="openbox", pid=self.pids["openbox"], deadline=self.deadline)
        os.close(managing)

    def _prepare(self) -> None:
        """Create the directories and files that replace the user's own.

        HOME stays: files go where the task says. Settings, recent files, caches and profiles are temporary, which also
        prevents a browser from opening its window in the user's running instance.
        """
        homes = {f"XDG_{name}_HOME": self.folder / name.lower() for name in ("CONFIG", "DATA", "CACHE", "STATE")} | {
            "XDG_RUNTIME_DIR": self.folder / "runtime"
        }
        for place in homes.values():
            place.mkdir(mode=0o700)
        gtk = self.folder / "config" / "gtk-3.0"
        gtk.mkdir()
        (gtk / "settings.ini").write_text(GTK_SETTINGS, encoding="utf-8")
        self.log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.environment |= {name: str(place) for name, place in homes.items()}
        self.environment |= {
            MARK_VARIABLE: self.token,
            "XAUTHORITY": str(self.folder / "Xauthority"),
            **TOOLKIT_ENVIRONMENT,
            **_utf8_locale(self.host),
        }

    def _screen(self) -> None:
        cookie, file = create_cookie(), self.folder / "Xauthority"
        write_cookie(file, cookie)
        reading, writing = os.pipe()
        size = f"{self.width}x{self.height}x24"
        argv = ["Xvfb", "-displayfd", str(writing), "-screen", "0", size, "-auth", str(file)]
        # SIGTERM, so that it takes its lock file and socket with it.
        pid = self._server(
            "Xvfb", [*argv, "-nolisten", "tcp", "-noreset", "-s", "0", "-dpi", "96"], writing, signal.SIGTERM
        )
        number = read_first_line(reading, of="Xvfb", pid=pid, deadline=self.deadline)
        os.close(reading)
        write_cookie(file, cookie, display=number)
        try:
            admit_user(number, cookie, uid=os.getuid(), timeout=max(0.1, self.deadline - monotonic()))
        except OSError as exc:
            raise StartFailed(f"the X server :{number} cannot be used: {exc}") from exc
        self.environment["DISPLAY"] = f":{number}"

    def _window_manager(self) -> int:
        """Start the window manager; return a pipe that receives a line once it manages windows.

        Its `--startup` command runs after that.
        """
        reading, writing = os.pipe()
        rules = str(Path(__file__).with_name("openbox.xml"))
        told = f"/bin/sh -c {shlex.quote('echo ready')}"
        argv = ["openbox", "--sm-disable", "--config-file", rules, "--startup", told]
        # At each change of the keyboard it reads the table of Compose sequences, 40 ms long, and manages nothing meanwhile; it needs none.
        environment = {**self._all(), "XCOMPOSEFILE": os.devnull}
        self.pids["openbox"] = spawn_program(ProgramSpec(argv, environment, stdio=(self.null, writing, self.log)))
        os.close(writing)
        return reading

    def _session_bus(self) -> None:
        reading, writing = os.pipe()
        address = f"unix:path={self.folder}/runtime/bus"
        argv = [
            "dbus-daemon",
            "--session",
            "--nofork",
            "--nopidfile",
            f"--address={address}",
            f"--print-address={writing}",
        ]
        pid = self._server("dbus-daemon", argv, writing, signal.SIGKILL)
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = read_first_line(
            reading, of="dbus-daemon", pid=pid, deadline=self.deadline
        )
        os.close(reading)

    def _accessibility(self) -> None:
        """Start the accessibility bus and its registry.

        The bus starts when asked for its address, and is switched on for toolkits that wait for that.
        ScreenReaderEnabled stays off: programs would change their appearance and behavior.
        """
        bus = ["--session", "--dest=org.a11y.Bus", "/org/a11y/bus"]
        told = self._ask(*bus, "org.a11y.Bus.GetAddress")
        address = told.partition('"')[2].rpartition('"')[0]
        if not address:
            raise StartFailed(f"the accessibility bus gave no address: {told!r}")
        switch = ["string:org.a11y.Status", "string:IsEnabled", "variant:boolean:true"]
        self._ask(*bus, "org.freedesktop.DBus.Properties.Set", *switch)
        daemon = ["--dest=org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.StartServiceByName"]
        self._ask(f"--bus={address}", *daemon, "string:org.a11y.atspi.Registry", "uint32:0")

    def _ask(self, where: str, *rest: str) -> str:
        argv = ["dbus-send", where, "--print-reply", *rest]
        return read_output(argv, environment=self._all(), log=self.log, deadline=self.deadline)

    def _server(self, name: str, argv: list[str], pipe: int, last_word: signal.Signals) -> int:
        stdio = (self.null, self.log, self.log)
        pid = spawn_program(ProgramSpec(argv, self._all(), stdio, keep=[pipe], last_word=last_word))
        os.close(pipe)
        self.pids[name] = pid
        return pid

    def _all(self) -> dict[str, str]:
        return {**self.host, **self.environment}


def _utf8_locale(host: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make the locale UTF-8; empty if it already is."""
    locale = host.get("LC_ALL") or host.get("LC_CTYPE") or host.get("LANG") or ""
    return {} if "utf" in locale.lower() else {"LC_ALL": "C.UTF-8"}
