"""Session events, as values on one bus for UIs, MCP progress and JSON lines; nothing waits for the subscribers."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from handrail.json_types import is_mapping, is_sequence

if TYPE_CHECKING:
    from handrail.api.verdict import Verdict

__all__ = [
    "ApprovalAnswered",
    "ApprovalAsked",
    "Event",
    "Finished",
    "InquiryAnswered",
    "InquiryAsked",
    "Judged",
    "Output",
    "Progress",
    "Proposed",
    "Started",
    "ToolsChanged",
    "TopicChanged",
    "event_wire",
]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the call `call_id` (empty for what happens to the session)."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Queued(Event):
    """A call waits until the call `behind`, with which it conflicts, has ended; then it may have to wait for another one."""

    tool: str
    behind: str


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
    """Approval request `approval` presented to the user."""

    tool: str
    confirmation: Any
    approval: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalAnswered(Event):
    """Answer to the approval request `approval`, which is now closed.

    `answer` is the user's choice (once, session, always, edit, deny) or, without one, the decision (allow, deny). `by`
    says where the user answered, if not where the session asks.
    """

    tool: str
    answer: str
    approval: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class InquiryAsked(Event):
    """Free-form questions of a call (`ask_user`) presented to the user."""

    questions: tuple[Any, ...]
    inquiry: str


@dataclass(frozen=True, slots=True)
class InquiryAnswered(Event):
    """Close of a call's questions to the user.

    `answered` is True if the user has answered them; `by` says where, if not where the session asks. The answers are in
    the call's result.
    """

    answered: bool
    inquiry: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Scheduled(Event):
    """A call is allowed: it runs as soon as nothing that it conflicts with is in its way."""

    tool: str


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The handler was started: the call is executing."""

    tool: str


@dataclass(frozen=True, slots=True)
class Output(Event):
    """New text of a running call, on `stream` stdout or stderr."""

    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class Progress(Event):
    """Progress of a running call: `fraction` from 0 to 1 if known."""

    fraction: float | None
    message: str


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """End of a call, regardless of how it ended."""

    tool: str
    status: str
    duration_ms: int
    error_code: str | None = None
    effect: str | None = None


@dataclass(frozen=True, slots=True)
class Observed(Event):
    """An observer did something to a call: blocked, confirm, replaced, context, withheld, failed or note (see `ObserverAction`)."""

    tool: str
    observer: str
    what: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ToolsChanged(Event):
    """The list of tools may be another one now."""

    reason: str


@dataclass(frozen=True, slots=True)
class ModeChanged(Event):
    """The session is in another mode."""

    mode: str


@dataclass(frozen=True, slots=True)
class TopicChanged(Event):
    """The agent says what it is at now: one line, and what there is to say of it."""

    title: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class BackendChanged(Event):
    """Another vision backend was chosen."""

    backend: str


@dataclass(frozen=True, slots=True)
class Dropped(Event):
    """So many events were not read in time and are gone: output and progress first (see `Session.events`)."""

    count: int


@dataclass(frozen=True, slots=True)
class SessionEnded(Event):
    """The session is over; no event follows."""

    session: str


def wire_name(event: type[Event]) -> str:
    """Return the name of an event in JSON, such as `approval_asked`."""
    name = event.__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def event_wire(event: Event) -> dict[str, Any]:
    """Return an event as JSON types, with secrets redacted: `{"event": "finished", "call_id": …}`."""
    return {"event": wire_name(type(event)), **_to_json_types(event)}


def _to_json_types(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        from handrail.redaction import REDACTED_TEXT, is_secret_name, redact_text

        # An enumeration's word is a plain text for whoever reads it.
        return (
            REDACTED_TEXT
            if name and is_secret_name(name) and not value.startswith("secret:")
            else redact_text(str(value))
        )
    if isinstance(value, int | float) or value is None:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _to_json_types(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if is_mapping(value):
        return {str(key): _to_json_types(item, str(key)) for key, item in value.items()}
    if is_sequence(value):
        return [_to_json_types(item, name) for item in value]
    return _to_json_types(str(value), name)


class EventBus:
    """Tells its subscribers of each event, in order, at once. A subscriber that raises is logged and kept."""

    __slots__ = ("_subscribers", "hide", "listening")

    def __init__(self) -> None:
        self._subscribers: tuple[Callable[[Event], None], ...] = ()
        # Whether anybody would hear: asked several times a call, it spares making events for nobody.
        self.listening = False
        # What takes secrets out of an event before anybody hears of it; None as long as no call was given one.
        self.hide: Callable[[Event], Event] | None = None

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
        if self.hide is not None:
            event = self.hide(event)
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            # Subscribers are hosts' and plugins' code; one that fails must not end the call it watches.
            except Exception:
                log.exception("a subscriber failed on %s", type(event).__name__)
