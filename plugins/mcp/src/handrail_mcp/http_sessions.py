"""The sessions that are served over HTTP: one for each token, opened by its first request, ended when nothing is heard for long."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from handrail import Session
from handrail.net.bearer_auth import BearerToken
from handrail.session.runtime import Runtime
from handrail_mcp.server import MAX_CONNECTIONS, open_server

log = logging.getLogger(__name__)

# The longest time between two looks at whether a session is still used.
IDLE_CHECK_S = 5.0


@dataclass(eq=False, slots=True)
class OpenSession:
    """An open session. `requests` are those that are being answered; `heard` is when the last one ended."""

    session: Session
    manager: StreamableHTTPSessionManager
    requests: int = 0
    heard: float = field(default_factory=anyio.current_time)

    @contextmanager
    def answering(self) -> Generator[None]:
        """Count one request as being answered while the context is open."""
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1
            self.heard = anyio.current_time()

    def left(self, idle: float) -> float:
        """Return the seconds until the session has been idle for `idle` seconds.

        A session is in use while a call runs or a client listens.
        """
        return idle if self.requests or self.session.running else self.heard + idle - anyio.current_time()


class HttpSessions:
    """Open sessions by the name of their token, as long as `running`."""

    def __init__(self, runtime: Runtime, *, body: int) -> None:
        self._runtime = runtime
        self._body = body
        self._tasks: anyio.abc.TaskGroup | None = None
        self._held: dict[str, OpenSession] = {}
        self._opening: dict[str, anyio.Lock] = {}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Callable[[], None]]:
        """Inside, sessions are opened; what is given ends them all, and the wait for them."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield tasks.cancel_scope.cancel

    async def of(self, token: BearerToken) -> OpenSession:
        """Return the token's session, opening it if necessary."""
        assert self._tasks is not None
        async with self._opening.setdefault(token.name, anyio.Lock()):
            held = self._held.get(token.name)
            if held is None:
                held = await self._tasks.start(self._keep, token.name)
        return held

    async def _keep(self, name: str, *, task_status: anyio.abc.TaskStatus[OpenSession]) -> None:
        """Run one session from start to end; its failure does not affect the others."""
        begun = False
        try:
            async with self._runtime.session() as session, open_server(session) as server:
                idle = session.settings.serve.idle
                manager = StreamableHTTPSessionManager(
                    server, max_request_body_size=self._body, max_sessions=MAX_CONNECTIONS, session_idle_timeout=idle
                )
                async with manager.run():
                    held = self._held[name] = OpenSession(session, manager)
                    begun = True
                    task_status.started(held)
                    await self._until_idle(name, held)
                    log.info("the session %s of %s ends: it was not used for %g s", session.id, name, idle)
        # Plugins open and close within.
        except Exception:
            if not begun:
                raise
            log.exception("the session of %s failed", name)
        finally:
            self._held.pop(name, None)

    async def _until_idle(self, name: str, held: OpenSession) -> None:
        while (left := held.left(held.session.settings.serve.idle)) > 0:
            await anyio.sleep(min(left, IDLE_CHECK_S))
        # At once, so that no request finds it any more.
        del self._held[name]
