"""`handrail desktop`: private desktops from a shell, and as a wrapper for anyone's continuous integration."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

import click

from handrail.cli import create_completion

if TYPE_CHECKING:
    from handrail_gui.private.named_desktops import NamedDesktops
    from handrail_gui.private.supervisor_client import PrivateDesktop

FORWARDED_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class SizeParam(click.ParamType[tuple[int, int]]):
    """WIDTHxHEIGHT in pixels."""

    name = "WxH"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType] # click converts a converted value again
        width, _, height = str(value).partition("x")
        if not (width.isdecimal() and height.isdecimal()):
            self.fail(f"{value!r} is not a size; write it like 1280x800", param, ctx)
        return int(width), int(height)


SIZE_OPTION = click.option(
    "--size", type=SizeParam(), default="1280x800", show_default=True, help="Width and height in pixels."
)


@click.group("desktop")
def desktop_group() -> None:
    """Private virtual desktops apart from anyone's screen.

    A private desktop is an X server with its own window manager, session bus and accessibility bus. Programs on it keep
    the user's HOME, but get temporary directories for settings, recent files and caches.

    Example: handrail desktop run -- pytest
    """


@desktop_group.command("run", context_settings={"ignore_unknown_options": True})
@SIZE_OPTION
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run_on_desktop(size: tuple[int, int], command: tuple[str, ...]) -> None:
    """Run CMD on a new private desktop.

    The exit code is CMD's (128 + N when signal N ended it). Signals are passed on. When CMD ends, everything that runs on the desktop ends.

    Example: handrail desktop run --size 1920x1080 -- npm test
    """
    from handrail.cli import register_process

    with register_process("handrail desktop run"):
        code = _run_command(list(command), size)
    sys.exit(code)


@desktop_group.command("start")
@SIZE_OPTION
@click.option("--json", "as_json", is_flag=True, help="One JSON object with its environment.")
@click.argument("name")
def start_desktop(name: str, size: tuple[int, int], as_json: bool) -> None:
    """Start a private desktop that stays.

    Sessions use it with --desktop NAME. It runs until `handrail desktop stop NAME`.

    Example: handrail desktop start work && handrail call observe_screen --desktop work
    """
    started = _open_named_desktops().start(name, width=size[0], height=size[1])
    click.echo(json.dumps(started.line()) if as_json else f"{name}  {started.display}  {size[0]}x{size[1]}")


@desktop_group.command("stop")
@click.argument("name", shell_complete=create_completion("started_desktops"))
def stop_desktop(name: str) -> None:
    """Stop a started desktop and all that runs on it.

    Example: handrail desktop stop work
    """
    _open_named_desktops().stop(name)
    click.echo(f"{name}  stopped")


@desktop_group.command("status")
@click.option("--json", "as_json", is_flag=True, help="A JSON list with each desktop's environment.")
def show_status(as_json: bool) -> None:
    """List the started desktops that are running.

    Example: handrail desktop status --json
    """
    running = _open_named_desktops().all()
    if as_json:
        click.echo(json.dumps([found.line() for found in running]))
        return
    for found in running:
        click.echo(f"{found.name}  {found.display}  {found.width}x{found.height}  pid {found.running.pid}")
    if not running:
        click.echo("no desktop is running", err=True)


def _open_named_desktops() -> NamedDesktops:
    from handrail.fs.app_dirs import AppDirs
    from handrail_gui.private.named_desktops import NamedDesktops

    return NamedDesktops(AppDirs.of(os.environ).state)


def _run_command(command: list[str], size: tuple[int, int]) -> int:
    from handrail_gui.private.supervisor_client import PrivateDesktop

    stdio = tuple(os.dup(descriptor) for descriptor in (0, 1, 2))
    started = PrivateDesktop.start("run", width=size[0], height=size[1], pass_descriptors=stdio, detached=False)
    # From here on signals wait for `_wait_for_exit`, which passes them on; before, they simply end this process, and the desktop with it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED_SIGNALS, signal.SIGCHLD})
    try:
        started.tell(
            {
                "run": {
                    "argv": command,
                    "cwd": os.getcwd(),
                    "environment": {**os.environ, **started.desktop.environment},
                    "stdio": stdio,
                }
            }
        )
        return _wait_for_exit(started, started.listen()["pid"])
    finally:
        started.close()


def _wait_for_exit(started: PrivateDesktop, pid: int) -> int:
    """Return the command's exit code as a shell reports it; meanwhile signals to this process go to the command."""
    from handrail import DesktopError

    ended: list[int] = []

    def listen() -> None:
        try:
            ended.append(started.listen()["exit"])
        except DesktopError:
            ended.append(-signal.SIGKILL)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGCHLD)

    threading.Thread(target=listen, daemon=True).start()
    while not ended:
        got = signal.sigwaitinfo({*FORWARDED_SIGNALS, signal.SIGCHLD})
        # A terminal's own signals (a positive code) reach the command without us.
        if got.si_signo != signal.SIGCHLD and got.si_code <= 0:
            try:
                os.kill(pid, got.si_signo)
            except ProcessLookupError:
                break
    return ended[0] if ended and ended[0] >= 0 else 128 - (ended[0] if ended else -signal.SIGTERM)
