"""What becomes of sessions when a person stops their desktop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from handrail.api.service import ClosableService, ReleasableService
from handrail.errors import Failsafe

if TYPE_CHECKING:
    from handrail.session.session import Session

log = logging.getLogger(__name__)


class StopEnforcer:
    """Cancels what a stopped session does, and lets go of what it holds down, once for each stop."""

    def __init__(self, services: Callable[[Session], Iterable[tuple[str, ClosableService]]]) -> None:
        self._services = services
        # Those that have let go since their desktop was stopped.
        self._stopped: set[str] = set()

    async def look(self, session: Session) -> None:
        try:
            session.check_stopped()
        except Failsafe as exc:
            session.cancel(why=exc)
            if session.id not in self._stopped:
                self._stopped.add(session.id)
                await self._let_go(session)
        else:
            self._stopped.discard(session.id)

    async def _let_go(self, session: Session) -> None:
        """Whatever the session and its desktop hold down is released."""
        for name, service in tuple(self._services(session)):
            if isinstance(service, ReleasableService):
                try:
                    await service.let_go()
                # Plugin code, and the others must let go, too.
                except Exception:
                    log.exception("the service %s did not let go", name)
