"""`handrail serve`"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import TYPE_CHECKING

import click

from handrail.commands import Choices, open_runtime_for, read_config, run, session_options

if TYPE_CHECKING:
    import socket

    from handrail.config.settings import Settings
    from handrail.net.tokens import Token
    from handrail.runtime import Runtime

HOST, PORT = "127.0.0.1", 7347


@click.command("serve")
@session_options
@click.option("--http", "web", is_flag=True, help="Serve streamable HTTP on this machine, one session a bearer token.")
@click.option("--host", metavar="ADDRESS", help=f"With --http: a loopback address [{HOST}].")
@click.option("--port", type=click.IntRange(0, 65_535), help=f"With --http: 0 takes a free one [{PORT}].")
def command(choices: Choices, web: bool, host: str | None, port: int | None) -> None:
    """Offer the tools to an MCP client on stdio.

    One process is one session. It ends when the client leaves, with everything it started. With --http, sessions are by bearer token, and the
    address is printed.

    Example: handrail serve --desktop private
    """
    if not web and (host is not None or port is not None):
        raise click.UsageError("--host and --port go with --http")
    if web:
        _serve_web(choices, HOST if host is None else host, PORT if port is None else port)
    else:
        _serve_stdio(choices)


def _serve_stdio(choices: Choices) -> None:
    from handrail_mcp.wire import claim

    if sys.stdin.isatty():
        click.echo(
            "Note: this speaks to MCP clients on stdin and stdout; `handrail mcp install` sets them up.", err=True
        )
    # Before plugins are loaded: whatever prints from now on prints to stderr.
    wire = claim()
    # What starting makes stays for good; to look for garbage in it over and over would be a sixth of the time to the first answer.
    gc.disable()
    run(lambda: _serve(choices, wire))


async def _serve(choices: Choices, wire: tuple[int, int] | None) -> None:
    from handrail_mcp.serving import serve

    async with open_runtime_for(choices) as runtime, runtime.session() as session:
        await _note_lost_desktop(runtime)
        gc.freeze()
        gc.enable()
        await serve(session, wire)


async def _note_lost_desktop(runtime: Runtime) -> None:
    """It may be started later, so it keeps nothing from starting; a name that was written wrong is to be seen at once."""
    from handrail.errors import HandrailError

    name = runtime.settings.desktop
    if name in ("current", "private"):
        return
    try:
        await runtime.desktop(name, session="")
    except HandrailError as exc:
        cure = f"\nHint: {exc.hint}" if exc.hint else ""
        click.echo(f"Note: what needs a desktop fails so far: {exc}{cure}", err=True)


def _serve_web(choices: Choices, host: str, port: int) -> None:
    from handrail.net.loopback import listening
    from handrail_mcp.web import url_of
    from handrail_mcp.wire import claim

    config = read_config(choices)
    tokens = _tokens(config.settings)
    with listening(host, port) as opened:
        click.echo(url_of(opened))
        # Whatever prints from now on prints to stderr, and nothing that is started reads a person's keys.
        for descriptor in claim() or ():
            os.close(descriptor)
        run(lambda: _web(choices, opened, tokens))


def _tokens(settings: Settings) -> list[Token]:
    """The tokens that were named; none when one is to be made."""
    from handrail_mcp.tokens import named

    return named(settings.serve.tokens, os.environ)


async def _web(choices: Choices, opened: socket.socket, tokens: list[Token]) -> None:
    from handrail.net.tokens import made
    from handrail_mcp.web import serve_web, written

    # A session's own commands must not learn how to open another one.
    hidden = {token.name for token in tokens}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    async with open_runtime_for(choices, environment=environment) as runtime:
        await _note_lost_desktop(runtime)
        with contextlib.ExitStack() as files:
            if tokens:
                click.echo(f"Sessions are opened by the tokens in {', '.join(sorted(hidden))}.", err=True)
            else:
                tokens = [made()]
                file = files.enter_context(written(runtime.places, opened, tokens[0]))
                click.echo(f"The entry for a client, with its token, is in {file}", err=True)
            await serve_web(runtime, opened, tokens)
