"""Server of the console: access checks, page and requests on one socket, until the process is stopped."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import anyio

from handrail.cli import handle_signals
from handrail.net.bearer_auth import BearerToken
from handrail.net.loopback_server import create_server, list_host_headers
from handrail.session.runtime import Runtime
from handrail_console.auth_gate import AuthGate
from handrail_console.manual_control import ManualControl
from handrail_console.request_handlers import RequestHandlers
from handrail_console.session_watch import SessionWatch


async def serve_console(runtime: Runtime, opened: socket.socket, token: BearerToken, names: Sequence[str]) -> None:
    """Serve the console to whoever shows the token. `names`: what the person's own tunnels call it."""
    async with ManualControl.of(runtime) as hands:
        watch = SessionWatch(runtime.places, own=hands.sessions)
        app = RequestHandlers(runtime, watch, hands).app()
        server = create_server(AuthGate(app, token, names=[*list_host_headers(opened), *names]))
        async with anyio.create_task_group() as tasks, handle_signals(lambda _: watch.end()):
            tasks.start_soon(watch.run)
            tasks.start_soon(server.serve, [opened])
            await watch.ended.wait()
            server.should_exit = True
            await server.ended.wait()
            tasks.cancel_scope.cancel()
