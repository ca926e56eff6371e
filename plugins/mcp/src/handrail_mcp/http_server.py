"""`handrail serve --http`: streamable HTTP, on this machine only."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Generator, Sequence
from pathlib import Path

import anyio

from handrail.fs.app_dirs import AppDirs, write_private_file
from handrail.net.bearer_auth import BearerToken
from handrail.net.loopback_server import create_server, list_host_headers
from handrail.session.runtime import Runtime
from handrail_mcp.auth_gate import MAX_BODY, SERVER_PATH, AuthGate
from handrail_mcp.http_sessions import HttpSessions
from handrail_mcp.server import end_on_signal


def get_server_url(opened: socket.socket) -> str:
    """Return the URL under which clients reach the server."""
    return f"http://{list_host_headers(opened)[0]}{SERVER_PATH}"


def build_client_entry(opened: socket.socket, token: BearerToken) -> dict[str, object]:
    """Build the `mcpServers` entry for a client's configuration, with the token."""
    server = {
        "type": "http",
        "url": get_server_url(opened),
        "headers": {"Authorization": f"Bearer {token.value}"},
    }
    return {"mcpServers": {"handrail": server}}


@contextlib.contextmanager
def write_entry_file(places: AppDirs, opened: socket.socket, token: BearerToken) -> Generator[Path]:
    """Write a file with the entry that only its owner can read; it exists while the context is open."""
    file = places.state / "serve" / f"{os.getpid()}.json"
    write_private_file(file, json.dumps(build_client_entry(opened, token), indent=2) + "\n")
    try:
        yield file
    finally:
        file.unlink(missing_ok=True)


async def serve_http(runtime: Runtime, opened: socket.socket, tokens: Sequence[BearerToken]) -> None:
    """Serve sessions on a socket until the process receives a signal to end."""
    sessions = HttpSessions(runtime, body=MAX_BODY)
    server = create_server(AuthGate(sessions, tokens, names=list_host_headers(opened)))
    async with anyio.create_task_group() as watching:
        async with sessions.running() as end:
            await watching.start(end_on_signal, end)
            watching.start_soon(server.serve, [opened])
            await anyio.sleep_forever()
        # What sessions still answered has ended with them; connections end now.
        server.should_exit = True
        await server.ended.wait()
        watching.cancel_scope.cancel()
