"""The console's server: the door, the page and what it asks for, on one socket, until the process is told to end."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import anyio

from handrail.commands._common import on_signal
from handrail.net.loopback import names_of, server_of
from handrail.net.tokens import Token
from handrail.runtime import Runtime
from handrail_console.answers import Answers
from handrail_console.door import Door
from handrail_console.hands import Hands
from handrail_console.watch import Watch


async def serve(runtime: Runtime, opened: socket.socket, token: Token, names: Sequence[str]) -> None:
    """Serve the console to whoever shows the token. `names`: what the person's own tunnels call it."""
    async with Hands.of(runtime) as hands:
        watch = Watch(runtime.places, own=hands.sessions)
        app = Answers(runtime, watch, hands).app()
        server = server_of(Door(app, token, names=[*names_of(opened), *names]))
        async with anyio.create_task_group() as tasks, on_signal(lambda _: watch.end()):
            tasks.start_soon(watch.run)
            tasks.start_soon(server.serve, [opened])
            await watch.ended.wait()
            server.should_exit = True
            await server.ended.wait()
            tasks.cancel_scope.cancel()
