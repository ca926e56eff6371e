"""`handrail serve`"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import TYPE_CHECKING

import click

from handrail.cli import SessionOptions, open_runtime_for, read_config, run_async, session_options

if TYPE_CHECKING:
    import socket

    from handrail.config.settings import Settings
    from handrail.net.bearer_auth import BearerToken
    from handrail.session.runtime import Runtime

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 7347


@click.command("serve")
@session_options
@click.option("--http", "web", is_flag=True, help="Serve streamable HTTP on this machine, one session a bearer token.")
@click.option("--host", metavar="ADDRESS", help=f"With --http: a loopback address [{DEFAULT_HOST}].")
@click.option("--port", type=click.IntRange(0, 65_535), help=f"With --http: 0 takes a free one [{DEFAULT_PORT}].")
def serve_command(choices: SessionOptions, web: bool, host: str | None, port: int | None) -> None:
    """Offer the tools to an MCP client on stdio.

    One process is one session. It ends when the client leaves, with everything it started. With --http, sessions are by bearer token, and the
    address is printed.

    Example: handrail serve --desktop private
    """
    if not web and (host is not None or port is not None):
        raise click.UsageError("--host and --port go with --http")
    if web:
        _run_http_server(choices, DEFAULT_HOST if host is None else host, DEFAULT_PORT if port is None else port)
    else:
        _run_stdio_server(choices)


def _run_stdio_server(choices: SessionOptions) -> None:
    from handrail_mcp.stdio_transport import claim_stdio

    if sys.stdin.isatty():
        click.echo(
            "Note: this speaks to MCP clients on stdin and stdout; `handrail mcp install` sets them up.", err=True
        )
    # Before plugins are loaded: whatever prints from now on prints to stderr.
    wire = claim_stdio()
    # What starting makes stays for good; to look for garbage in it over and over would be a sixth of the time to the first answer.
    gc.disable()
    run_async(lambda: _serve_session(choices, wire))


async def _serve_session(choices: SessionOptions, wire: tuple[int, int] | None) -> None:
    from handrail_mcp.server import serve_session

    async with open_runtime_for(choices) as runtime, runtime.session() as session:
        await _note_lost_desktop(runtime)
        gc.freeze()
        gc.enable()
        await serve_session(session, wire)


async def _note_lost_desktop(runtime: Runtime) -> None:
    """Print a note if the configured desktop is not available.

    Startup continues, because the desktop may be started later; but a misspelled name should be noticed immediately.
    """
    from handrail.errors import HandrailError

    name = runtime.settings.desktop
    if name in ("current", "private"):
        return
    try:
        await runtime.desktop(name, session="")
    except HandrailError as exc:
        cure = f"\nHint: {exc.hint}" if exc.hint else ""
        click.echo(f"Note: what needs a desktop fails so far: {exc}{cure}", err=True)


def _run_http_server(choices: SessionOptions, host: str, port: int) -> None:
    from handrail.net.loopback_server import open_listener
    from handrail_mcp.http_server import get_server_url
    from handrail_mcp.stdio_transport import claim_stdio

    config = read_config(choices)
    tokens = _read_tokens(config.settings)
    with open_listener(host, port) as opened:
        click.echo(get_server_url(opened))
        # Whatever prints from now on prints to stderr, and nothing that is started reads a person's keys.
        for descriptor in claim_stdio() or ():
            os.close(descriptor)
        run_async(lambda: _serve_http(choices, opened, tokens))


def _read_tokens(settings: Settings) -> list[BearerToken]:
    """Read the configured tokens; empty if a token is to be generated."""
    from handrail_mcp.bearer_auth import read_tokens

    return read_tokens(settings.serve.tokens, os.environ)


async def _serve_http(choices: SessionOptions, opened: socket.socket, tokens: list[BearerToken]) -> None:
    from handrail.net.bearer_auth import create_token
    from handrail_mcp.http_server import serve_http, write_entry_file

    # A session's own commands must not learn how to open another one.
    hidden = {token.name for token in tokens}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    async with open_runtime_for(choices, environment=environment) as runtime:
        await _note_lost_desktop(runtime)
        with contextlib.ExitStack() as files:
            if tokens:
                click.echo(f"Sessions are opened by the tokens in {', '.join(sorted(hidden))}.", err=True)
            else:
                tokens = [create_token()]
                file = files.enter_context(write_entry_file(runtime.places, opened, tokens[0]))
                click.echo(f"The entry for a client, with its token, is in {file}", err=True)
            await serve_http(runtime, opened, tokens)
