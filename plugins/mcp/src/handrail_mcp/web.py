"""`handrail serve --http`: streamable HTTP, on this machine only."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Generator, Sequence
from pathlib import Path

import anyio

from handrail.config.places import Places, write_private
from handrail.net.loopback import names_of, server_of
from handrail.net.tokens import Token
from handrail.runtime import Runtime
from handrail_mcp.door import BODY, PATH, Door
from handrail_mcp.serving import end_when_told
from handrail_mcp.web_sessions import Sessions


def url_of(opened: socket.socket) -> str:
    """Where clients find the server."""
    return f"http://{names_of(opened)[0]}{PATH}"


def entry(opened: socket.socket, token: Token) -> dict[str, object]:
    """The `mcpServers` entry for a client's configuration, with the token."""
    server = {
        "type": "http",
        "url": url_of(opened),
        "headers": {"Authorization": f"Bearer {token.value}"},
    }
    return {"mcpServers": {"handrail": server}}


@contextlib.contextmanager
def written(places: Places, opened: socket.socket, token: Token) -> Generator[Path]:
    """A file with the entry that only its owner reads, there as long as the server is."""
    file = places.state / "serve" / f"{os.getpid()}.json"
    write_private(file, json.dumps(entry(opened, token), indent=2) + "\n")
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


async def serve_web(runtime: Runtime, opened: socket.socket, tokens: Sequence[Token]) -> None:
    """Serve sessions on a socket until the process is told to end."""
    sessions = Sessions(runtime, body=BODY)
    server = server_of(Door(sessions, tokens, names=names_of(opened)))
    async with anyio.create_task_group() as watching:
        async with sessions.running() as end:
            await watching.start(end_when_told, end)
            watching.start_soon(server.serve, [opened])
            await anyio.sleep_forever()
        # What sessions still answered has ended with them; connections end now.
        server.should_exit = True
        await server.ended.wait()
        watching.cancel_scope.cancel()
