"""`handrail console`"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator
from typing import TYPE_CHECKING

import click

from handrail.cli import SessionOptions, open_runtime_for, run_async

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from handrail.fs.app_dirs import AppDirs
    from handrail.net.bearer_auth import BearerToken

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 7348


def _check_host_names(context: click.Context, option: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names. Raises `click.BadParameter` for a name that cannot occur in a Host header."""
    for name in names:
        if not _is_host_header(name):
            raise click.BadParameter(
                f"{name!r} matches no Host header; write a host name, as in your-machine.example.ts.net"
            )
    return names


@click.command("console")
@click.option("--host", metavar="ADDRESS", default=DEFAULT_HOST, show_default=True, help="A loopback address.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True, help="0 takes a free one."
)
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    callback=_check_host_names,
    help="Where a tunnel of yours leads here: a host name, with the port unless it is that of https; repeatable.",
)
def console_command(host: str, port: int, names: tuple[str, ...]) -> None:
    """Show what your agents do, and answer them, on a page.

    It prints the page's link, with its token, and serves it on this machine only until Ctrl-C. The page shows the calls of every session of
    yours with verdicts, effects and pictures, and those of past sessions; there you approve, edit or deny calls, stop agents, and work their
    desktops by hand.

    Example: handrail console
    """
    from handrail.net.bearer_auth import create_token
    from handrail.net.loopback_server import open_listener

    token = create_token()
    with open_listener(host, port) as opened:
        run_async(lambda: _run_console(opened, token, names))


def _is_host_header(name: str) -> bool:
    """Return True if the name can occur in a Host header: a punycode name or an address, optionally with a port."""
    from ipaddress import IPv6Address

    from handrail.net import hostnames

    host, colon, port = name.rpartition(":") if not name.endswith("]") else (name, "", "")
    if not colon:
        host = name
    elif not (port.isascii() and port.isdecimal() and int(port) < 65_536):
        return False
    if host.startswith("[") and host.endswith("]"):
        try:
            IPv6Address(host[1:-1])
        except ValueError:
            return False
        return True
    read = hostnames.parse_host_name(host)
    return read.refused is None and read.ascii == host.lower()


async def _run_console(opened: socket.socket, token: BearerToken, names: tuple[str, ...]) -> None:
    from handrail_console.server import serve_console

    async with open_runtime_for(SessionOptions()) as runtime:
        with _write_link_file(runtime.places, link := _build_link(opened, token)) as file:
            click.echo(link)
            click.echo(
                f"Open this link in a browser of yours; it is also in {file}. Ctrl-C ends the console.", err=True
            )
            await serve_console(runtime, opened, token, names)


def _build_link(opened: socket.socket, token: BearerToken) -> str:
    """Return the link to the page. The browser keeps the part after # and does not send it."""
    from handrail.net.loopback_server import list_host_headers

    return f"http://{list_host_headers(opened)[0]}/#{token.value}"


@contextlib.contextmanager
def _write_link_file(places: AppDirs, link: str) -> Generator[Path]:
    """Yield a file that contains the link; only its owner can read it, and it is removed with the console."""
    from handrail.fs.app_dirs import write_private_file

    file = places.state / "console" / f"{os.getpid()}.json"
    write_private_file(file, json.dumps({"link": link}) + "\n")
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)
