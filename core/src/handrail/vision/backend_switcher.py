"""From one vision backend to another while calls are under way: each call ends on the backends that it began with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from handrail.api.events import Event, EventBus, Finished

if TYPE_CHECKING:
    from collections.abc import Callable

    from handrail.api.call import Invocation
    from handrail.vision.backend_chain import Vision


class BackendSwitcher:
    """Vision of one session's calls. `now` is given to a call that begins now; `running` has the ids of running calls."""

    def __init__(self, vision: Vision, running: Iterable[str], bus: EventBus) -> None:
        self.now = vision
        self._running = running
        self._bus = bus
        # What calls began with that were under way when something else was chosen, by their id.
        self._begun: dict[str, Vision] = {}
        self._stop: Callable[[], None] | None = None

    def of(self, invocation: Invocation) -> Vision:
        """Return the vision of this call; a nested call has that of its enclosing call."""
        above: Invocation | None = invocation
        while self._begun and above is not None:
            if (begun := self._begun.get(above.call_id)) is not None:
                return begun
            above = above.parent
        return self.now

    def switch(self, chain: Sequence[str]) -> None:
        """Switch calls that begin from now on to these backends. Backends no longer in use are closed."""
        before = self.now
        if tuple(chain) == tuple(before.chain):
            return
        self.now = before.choosing(chain)
        self._begun = {call_id: self._begun.get(call_id, before) for call_id in self._running}
        if self._begun and self._stop is None:
            self._stop = self._bus.subscribe(self._hear)
        self._let_go()

    def _hear(self, event: Event) -> None:
        if isinstance(event, Finished) and self._begun.pop(event.call_id, None) is not None:
            self._let_go()
            if not self._begun and self._stop is not None:
                self._stop()
                self._stop = None

    def _let_go(self) -> None:
        self.now.keep_only(
            {name for vision in (self.now, *self._begun.values()) for name in (*vision.chain, *vision.merge())}
        )
