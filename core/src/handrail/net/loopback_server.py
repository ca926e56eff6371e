"""HTTP server on this machine's loopback address, for local clients only.

It is for plugins that depend on `handrail-core[serve]`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Generator
from ipaddress import ip_address

import anyio
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from handrail.errors import ConfigError
from handrail.net.loopback_guard import AsgiApp

__all__ = ["create_server", "list_host_headers", "open_listener"]

# Bytes of a request's line and headers, and how long they may take to arrive.
MAX_HEADER_BYTES = 32 * 2**10
HEADER_TIMEOUT_S = 5.0
# How long a connection without a request is kept, and one whose answer is not over when the server ends.
KEEP_ALIVE_S = 30
SHUTDOWN_TIMEOUT_S = 2
MAX_CONNECTIONS = 2_048
PORT_FORWARD_HINT = "serve on 127.0.0.1, and forward the port under the same number from elsewhere: ssh -L PORT:127.0.0.1:PORT this-machine"


def open_listener(host: str, port: int) -> socket.socket:
    """Open a listening socket on this machine's loopback address; port 0 takes a free one.

    Raises `ConfigError` for any other address, or if the port cannot be used.
    """
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host.strip("[]"))
    except ValueError as exc:
        raise ConfigError(f"{host!r} is no address", hint="use 127.0.0.1 or ::1") from exc
    if not address.is_loopback:
        raise ConfigError(
            f"{host!r} can be reached from other machines, and it is served on this one only", hint=PORT_FORWARD_HINT
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


class LoopbackServer(uvicorn.Server):
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


class HeaderTimeoutProtocol(H11Protocol):
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
            self._late = self.loop.call_later(HEADER_TIMEOUT_S, self.transport.abort)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def create_server(app: AsgiApp) -> LoopbackServer:
    """Create a server for the application; its `serve` takes a listening socket."""
    config = uvicorn.Config(
        app,
        http=HeaderTimeoutProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_max_connections(),
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )
    return LoopbackServer(config)


def _max_connections() -> int:
    """Return the maximum number of connections.

    It leaves half of the file descriptors that this process may open for its other work.
    """
    if sys.platform == "win32":
        return MAX_CONNECTIONS
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, soft // 2)


def list_host_headers(opened: socket.socket) -> list[str]:
    """Return the accepted Host headers, the server's own address first."""
    host, port = opened.getsockname()[:2]
    own = f"[{host}]" if ":" in host else host
    return list(dict.fromkeys(f"{name}:{port}" for name in (own, "localhost", "127.0.0.1", "[::1]")))
