"""Progress notifications of calls, for clients that request them."""

from __future__ import annotations

import anyio
from mcp.server.session import ServerSession

from handrail.api.events import Output, Progress

# At most so many notifications a second: a person reads them.
PER_SECOND = 10
MAX_PROGRESS_TEXT = 2_000
TOTAL_PROGRESS = 100.0


class ProgressReporter:
    """Turns the events of one call into progress notifications whose values only ever rise, no more than ten a second.

    Values are percent where the tool says how far it is. Output counts as a little progress; its newest text is the message.
    """

    def __init__(self, client: ServerSession) -> None:
        self.client = client
        self._value = 0.0
        self._told = 0.0
        self._known = False
        self._message = ""
        self._news = anyio.Event()
        self._over = anyio.Event()

    def heard(self, event: Progress | Output) -> None:
        """Record an event for the next notification."""
        if isinstance(event, Output):
            self._rise(None)
            self._message = (self._message + event.text)[-MAX_PROGRESS_TEXT:]
        else:
            self._rise(event.fraction)
            self._message = event.message[:MAX_PROGRESS_TEXT]
        self._news.set()

    async def run(self) -> None:
        """Report until `end`."""
        while not self._over.is_set():
            await self._news.wait()
            await self.flush()
            with anyio.move_on_after(1 / PER_SECOND):
                await self._over.wait()

    def end(self) -> None:
        """Mark the call as finished: no further events follow."""
        self._over.set()
        self._news.set()

    async def flush(self) -> None:
        """Tell what has not been told yet."""
        if self._value > self._told:
            self._told = self._value
            self._news = anyio.Event()
            message, self._message = self._message, ""
            total = TOTAL_PROGRESS if self._known and self._value <= TOTAL_PROGRESS else None
            await self.client.report_progress(self._value, total, message or None)

    def _rise(self, fraction: float | None) -> None:
        self._known = self._known or fraction is not None
        self._value = max(self._value + 0.001, TOTAL_PROGRESS * (fraction or 0))
