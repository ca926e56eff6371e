"""`handrail serve --http`: streamable HTTP, on this machine only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Generator, Sequence
from ipaddress import ip_address
from pathlib import Path

import anyio
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from handrail import ConfigError
from handrail.config.places import Places, write_private
from handrail.runtime import Runtime
from handrail_mcp.door import BODY, PATH, Door
from handrail_mcp.serving import end_when_told
from handrail_mcp.tokens import Token
from handrail_mcp.web_sessions import Sessions

# Bytes of a request's line and headers, and how long they may take to arrive.
HEADERS = 32 * 2**10
HEADERS_S = 5.0
# How long a connection without a request is kept, and one whose answer is not over when the server ends.
KEPT_S = 30
ENDING_S = 2
MOST_CONNECTIONS = 2_048
FORWARD = "serve on 127.0.0.1, and forward the port from elsewhere: ssh -L 8000:127.0.0.1:PORT this-machine"


def listening(host: str, port: int) -> socket.socket:
    """A socket on this machine's own address; port 0 takes a free one. Raises `ConfigError` for any other address."""
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host.strip("[]"))
    except ValueError as exc:
        raise ConfigError(f"{host!r} is no address", hint="use 127.0.0.1 or ::1") from exc
    if not address.is_loopback:
        raise ConfigError(
            f"{host!r} can be reached from other machines, and it is served on this one only", hint=FORWARD
        )
    opened = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
    try:
        if sys.platform != "win32":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((str(address), port))
        # So that clients may come as soon as the address is known.
        opened.listen()
    except (OSError, OverflowError) as exc:
        opened.close()
        why = exc.strerror if isinstance(exc, OSError) else "there is no such port"
        raise ConfigError(f"{host}, port {port}, cannot be served on: {why}", hint="--port 0 takes a free one") from exc
    return opened


def url_of(opened: socket.socket) -> str:
    """Where clients find the server."""
    return f"http://{_names(opened)[0]}{PATH}"


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
    server = Server(_config(Door(sessions, tokens, names=_names(opened))))
    async with anyio.create_task_group() as watching:
        async with sessions.running() as end:
            await watching.start(end_when_told, end)
            watching.start_soon(server.serve, [opened])
            await anyio.sleep_forever()
        # What sessions still answered has ended with them; connections end now.
        server.should_exit = True
        await server.ended.wait()
        watching.cancel_scope.cancel()


class Server(uvicorn.Server):
    """uvicorn's server, which leaves signals to us."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = anyio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take none."""
        try:
            yield
        finally:
            self.ended.set()


class Impatient(H11Protocol):
    """A connection that is closed when a request's headers take too long: many that stay open would leave none for others."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._late is None:
            self._late = self.loop.call_later(HEADERS_S, self.transport.abort)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _config(door: Door) -> uvicorn.Config:
    return uvicorn.Config(
        door,
        http=Impatient,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_connections(),
        h11_max_incomplete_event_size=HEADERS,
        timeout_keep_alive=KEPT_S,
        timeout_graceful_shutdown=ENDING_S,
    )


def _connections() -> int:
    """How many connections there may be: half of the descriptors that this process may open are left for the work."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)


def _names(opened: socket.socket) -> list[str]:
    """What the Host header may say, the server's own address first."""
    host, port = opened.getsockname()[:2]
    own = f"[{host}]" if ":" in host else host
    return list(dict.fromkeys(f"{name}:{port}" for name in (own, "localhost", "127.0.0.1", "[::1]")))
