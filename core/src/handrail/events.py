"""What happens in a session, as values on one bus. UIs, MCP progress and JSON lines read it; nothing waits for them."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.judging import Verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the call `call_id` (empty for what happens to the session)."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Proposed(Event):
    """A call was bound: what it will do."""

    tool: str
    description: str
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Judged(Event):
    """A call was judged."""

    tool: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ApprovalAsked(Event):
    """A person is asked the question `approval`."""

    tool: str
    confirmation: Any
    approval: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalAnswered(Event):
    """The question `approval` is closed: `answer` is what a person chose (once, session, always, edit, deny), or, where nobody did, the decision
    (allow, deny).
    """

    tool: str
    answer: str
    approval: str = ""


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The handler was started."""

    tool: str


@dataclass(frozen=True, slots=True)
class Output(Event):
    """New text of a running call, on `stream` stdout or stderr."""

    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class Progress(Event):
    """How far a running call is: `fraction` from 0 to 1 when known."""

    fraction: float | None
    message: str


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """A call ended, in whatever way."""

    tool: str
    status: str
    duration_ms: int
    error_code: str | None = None
    effect: str | None = None


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """An observer did something to a call: blocked, confirm, replaced, context, withheld, failed or note (see `observers.Did`)."""

    tool: str
    observer: str
    what: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ToolsChanged(Event):
    """The list of tools may be another one now."""

    reason: str


@dataclass(frozen=True, slots=True)
class BackendChanged(Event):
    """Another vision backend was chosen."""

    backend: str


def event_wire(event: Event) -> dict[str, Any]:
    """An event as plain data: `{"event": "finished", "call_id": …}`."""
    return {"event": _snake(type(event).__name__), **dataclasses.asdict(event)}


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


class Bus:
    """Tells its subscribers of each event, in order, at once. A subscriber that raises is logged and kept."""

    __slots__ = ("_subscribers", "listening")

    def __init__(self) -> None:
        self._subscribers: tuple[Callable[[Event], None], ...] = ()
        # Whether anybody would hear: asked several times a call, it spares making events for nobody.
        self.listening = False

    def subscribe(self, subscriber: Callable[[Event], None]) -> Callable[[], None]:
        """Tell `subscriber` of every event from now on; call what is returned to stop. It must not block."""
        self._subscribers = (*self._subscribers, subscriber)
        self.listening = True

        def stop() -> None:
            self._subscribers = tuple(s for s in self._subscribers if s is not subscriber)
            self.listening = bool(self._subscribers)

        return stop

    def publish(self, event: Event) -> None:
        """Tell everybody."""
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            # Subscribers are hosts' and plugins' code; one that fails must not end the call it watches.
            except Exception:
                log.exception("a subscriber failed on %s", type(event).__name__)
