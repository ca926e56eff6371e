"""Events of a client's calls, as log messages for clients that request them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast, get_args

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext

from handrail.api.events import ApprovalAnswered, ApprovalAsked, Event, Finished, Started

RequestContext = ServerRequestContext[Any, Any]
LogEntry = tuple[types.LoggingLevel, dict[str, Any], RequestContext]

# In ascending order.
LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
LOGGER = "handrail"
# Of notes that a client is too slow for, so many wait; the rest is left out.
MAX_WAITING = 1_000
SEND_TIMEOUT_S = 5.0


class CallLogger:
    """Log messages on calls. Up to 2025-11-25 a client sets the level with `logging/setLevel`, later in each request; until then, none."""

    def __init__(self, request_of: Callable[[str], RequestContext | None]) -> None:
        self._request_of = request_of
        self._level: types.LoggingLevel | None = None
        # Notes that are not sent yet.
        self.pending = 0
        self._sent = anyio.Event()
        self._put, self._take = anyio.create_memory_object_stream[LogEntry](MAX_WAITING)

    async def set_level(self, request: RequestContext, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Handle `logging/setLevel`."""
        self._level = params.level
        return types.EmptyResult()

    def heard(self, event: Event) -> None:
        """Note an event, where it is wanted."""
        told = _describe_event(event)
        if told is None or (request := self._request_of(event.call_id)) is None:
            return
        level, data = told
        wanted = cast("types.LoggingLevel | None", (request.meta or {}).get(types.LOG_LEVEL_META_KEY) or self._level)
        if wanted in LEVELS and LEVELS.index(level) >= LEVELS.index(wanted):
            try:
                self._put.send_nowait((level, {"call_id": event.call_id, **data}, request))
            except anyio.WouldBlock:
                return
            self.pending += 1

    async def flush(self) -> None:
        """Wait, for a limited time, until pending messages are sent.

        A message about a call that is sent after the call's result does not reach the client.
        """
        with anyio.move_on_after(SEND_TIMEOUT_S):
            while self.pending:
                self._sent = anyio.Event()
                await self._sent.wait()

    async def send(self) -> None:
        """Send what was noted, until it is cancelled."""
        async with self._put, self._take:
            async for level, data, request in self._take:
                with anyio.move_on_after(SEND_TIMEOUT_S):
                    said = types.LoggingMessageNotificationParams(level=level, data=data, logger=LOGGER)
                    await request.session.send_notification(
                        types.LoggingMessageNotification(params=said), request.request_id
                    )
                self.pending -= 1
                self._sent.set()


def _describe_event(event: Event) -> tuple[types.LoggingLevel, dict[str, Any]] | None:
    match event:
        case Started():
            return "debug", {"event": "started", "tool": event.tool}
        case ApprovalAsked():
            return "notice", {"event": "approval_asked", "tool": event.tool}
        case ApprovalAnswered():
            return "notice", {"event": "approval_answered", "tool": event.tool, "answer": event.answer}
        case Finished():
            level = "info" if event.status == "success" else "warning"
            told = {"event": "finished", "tool": event.tool, "status": event.status, "duration_ms": event.duration_ms}
            return level, told if event.error_code is None else {**told, "code": event.error_code}
        case _:
            return None
