"""Enforcement of the stop switch on sessions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from handrail.api.service import ClosableService, ReleasableService
from handrail.errors import Failsafe, Stopped

log = logging.getLogger(__name__)


class StoppableSession(Protocol):
    """A session, as far as it can be stopped. `owners`: by what its services, and those of its desktop, are kept."""

    @property
    def id(self) -> str: ...
    @property
    def owners(self) -> tuple[str, ...]: ...
    def check_stopped(self) -> None: ...
    def cancel(self, *, why: Stopped) -> int: ...


class StopEnforcer:
    """Enforcer that cancels a stopped session's calls, and releases what it holds down, once per stop."""

    def __init__(self, services: Callable[[StoppableSession], Iterable[tuple[str, ClosableService]]]) -> None:
        self._services = services
        # Those that have let go since their desktop was stopped.
        self._stopped: set[str] = set()

    async def look(self, session: StoppableSession) -> None:
        try:
            session.check_stopped()
        except Failsafe as exc:
            session.cancel(why=exc)
            if session.id not in self._stopped:
                self._stopped.add(session.id)
                await self._let_go(session)
        else:
            self._stopped.discard(session.id)

    async def _let_go(self, session: StoppableSession) -> None:
        """Release everything that the session and its desktop hold down."""
        for name, service in tuple(self._services(session)):
            if isinstance(service, ReleasableService):
                try:
                    await service.let_go()
                # Plugin code, and the others must let go, too.
                except Exception:
                    log.exception("the service %s did not let go", name)
