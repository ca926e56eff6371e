"""The one way out of a sandbox that filters: a proxy of this process that listens inside the sandbox's own network namespace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from handrail.net.allowed_hosts import AllowedHosts, is_loopback
from handrail.net.filtering_proxy import FilteringProxy, RefusedConnection
from handrail.net.outbound import OutboundConnector

if TYPE_CHECKING:
    from handrail.api.sandbox import Confined

__all__ = ["PROXY_ADDRESS"]

# Where the listener is, inside. Below the ports that systems give out by themselves.
PROXY_ADDRESS = ("127.0.0.1", 28128)
PROXY_URL = f"http://{PROXY_ADDRESS[0]}:{PROXY_ADDRESS[1]}"
NEVER_LISTENED = "the sandbox's way to the network did not come about"
# Different places that are remembered of one command.
MAX_REMEMBERED = 100
# What programs take the proxy from. Settings of a project (.npmrc, .cargo/config.toml, pip.conf) name proxies, too, and these beat them.
PROXY_VARIABLES = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
    "npm_config_proxy", "npm_config_https_proxy", "CARGO_HTTP_PROXY", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY",
)  # fmt: skip
# Taken from the host's environment where they are set there, and then name a proxy that is out of reach inside.
OVERRIDDEN_VARIABLES = ("PIP_PROXY", "NPM_CONFIG_PROXY", "NPM_CONFIG_HTTPS_PROXY", "UV_HTTP_PROXY", "UV_HTTPS_PROXY")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(slots=True)
class RefusedTraffic:
    """Connections of one call that were not made, by where they were to go."""

    refused: dict[str, RefusedConnection] = field(default_factory=dict[str, RefusedConnection])

    def report(self, refused: RefusedConnection) -> None:
        """Remember a refused connection; the first of each place counts."""
        if len(self.refused) < MAX_REMEMBERED:
            self.refused.setdefault(refused.place, refused)

    def reach(self, place: str) -> None:
        """Forget that a place could not be reached: now it was."""
        if (refused := self.refused.get(place)) is not None and refused.why == "unreachable":
            del self.refused[place]

    @property
    def places(self) -> tuple[str, ...]:
        """Places to which connections are refused, whether or not anything listens there."""
        return tuple(place for place, refused in self.refused.items() if refused.why != "unreachable")

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Why places that were allowed could not be reached."""
        return tuple(refused.text for refused in self.refused.values() if refused.why == "unreachable")

    @property
    def askable(self) -> tuple[str, ...]:
        """Places that the user may be prompted about: those refused only because they are not on the list."""
        return tuple(place for place, refused in self.refused.items() if refused.why == "not_allowed")


@dataclass(frozen=True, slots=True)
class ProxyConnections:
    """The connections of a session's confined commands to allowed hosts. `environment` is the host's own, for the proxy that it names."""

    allow_private: tuple[str, ...] = ()
    proxy: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def proxy_to(self, hosts: Sequence[str], traffic: RefusedTraffic) -> FilteringProxy:
        """Return a proxy for these hosts. This machine's own names are private, and are let through where a host in the list is one."""
        allowed = AllowedHosts.of(hosts)
        loopback = (entry for entry in allowed.entries if is_loopback(entry.host))
        own = tuple(f"*.{entry.host}" if entry.below else entry.host for entry in loopback)
        outward = OutboundConnector(self.allow_private, own, self.proxy, self.environment)
        return FilteringProxy(allowed, outward, traffic.report, traffic.reach)


class SandboxGateway:
    """Serves the proxy of one sandboxed command, from the moment its listener arrives until the command is over.

    `channel` is this process's end of the socket over which the command's side sends its listener. Make it where the event loop runs.
    """

    def __init__(self, channel: socket.socket, proxy: FilteringProxy) -> None:
        self._loop = asyncio.get_running_loop()
        self._channel = channel
        self._proxy = proxy
        self._listener: socket.socket | None = None
        self._serving: asyncio.Task[None] | None = None
        self._over = False
        # The listener is looked for where the loop runs, and in the thread that sees to the command's end.
        self._taking = threading.Lock()
        channel.setblocking(False)

    def around(self, confined: Confined) -> Confined:
        """Return the command with this gateway opened when it starts and closed when it is over."""

        def started(pid: int) -> None:
            self.open()
            confined.started(pid)

        def ended() -> str | None:
            never = confined.ended()
            listened = self._arrived()
            with contextlib.suppress(RuntimeError):
                # Without a loop nothing is served any more.
                self._loop.call_soon_threadsafe(self.close)
            return never or (None if listened else NEVER_LISTENED)

        return replace(confined, started=started, ended=ended, channel=None)

    def open(self) -> None:
        """Begin to wait for the listener."""
        self._loop.add_reader(self._channel, self._serve)

    def close(self) -> None:
        """End the proxy and all its connections."""
        if self._over:
            return
        self._over = True
        self._loop.remove_reader(self._channel)
        self._channel.close()
        if self._serving is not None:
            self._serving.cancel()
        elif self._listener is not None:
            self._listener.close()

    def _serve(self) -> None:
        self._loop.remove_reader(self._channel)
        if self._arrived() and self._listener is not None and not self._over:
            self._serving = self._loop.create_task(self._proxy.serve(self._listener))
            self._serving.add_done_callback(self._served)

    def _served(self, task: asyncio.Task[None]) -> None:
        if self._listener is not None:
            self._listener.close()
        if not task.cancelled() and (exc := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "the sandbox's proxy failed", "exception": exc})

    def _arrived(self) -> bool:
        """Take the listener from the channel, if it is there and has not been taken; whether it ever came."""
        with self._taking:
            if self._listener is None and not self._over:
                with contextlib.suppress(OSError):
                    self._listener = receive_listener(self._channel)
            return self._listener is not None


def receive_listener(channel: socket.socket) -> socket.socket | None:
    """Receive a listening TCP socket of a loopback address; None where something else comes, or nothing any more.

    Raises `BlockingIOError` where nothing has come yet.
    """
    # No command that is started in this moment has it.
    _, fds, *_ = socket.recv_fds(channel, 1, 1, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    if not fds:
        return None
    received = socket.socket(fileno=fds[0])
    listens = (
        received.family == socket.AF_INET
        and received.type == socket.SOCK_STREAM
        and received.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        and received.getsockname() == PROXY_ADDRESS
    )
    if listens:
        os.set_inheritable(received.fileno(), False)
        return received
    received.close()
    return None


def build_proxy_environment(hosts: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which a confined program finds its way to these hosts, beside those it has.

    What it serves itself inside is reached without the proxy, unless a host in the list is one of this machine's own.
    """
    own = any(is_loopback(entry.host) for entry in AllowedHosts.of(hosts).entries)
    direct = "" if own else ",".join(LOCAL_NAMES)
    return {
        **dict.fromkeys((*PROXY_VARIABLES, *(name for name in OVERRIDDEN_VARIABLES if name in environment)), PROXY_URL),
        "NO_PROXY": direct,
        "no_proxy": direct,
        "npm_config_noproxy": direct,
        # Node's own client takes the proxy from the environment only when it is told to.
        "NODE_USE_ENV_PROXY": "1",
    }
