"""Events of a run, published on the bus of its session beside the events of its calls."""

from __future__ import annotations

from dataclasses import dataclass

from handrail.api.events import Event


@dataclass(frozen=True, slots=True)
class Begun(Event):
    """A run begins. `call_id` is empty here and below."""

    task: str
    model: str
    session: str


@dataclass(frozen=True, slots=True)
class ModelTextPiece(Event):
    """Piece of the model's text as it arrives.

    The complete text follows as `Said` or `Thought`, unless the model is called again.
    """

    text: str
    thought: bool


@dataclass(frozen=True, slots=True)
class Said(Event):
    """The model said something."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought(Event):
    """The model showed a thought."""

    text: str


@dataclass(frozen=True, slots=True)
class Retried(Event):
    """Announcement of a retry after a failed attempt: `attempt` is its number, and it begins in `seconds`."""

    attempt: int
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class PictureReceived(Event):
    """A result has a picture. `data` is what the file holds."""

    tool: str
    mime_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Spent(Event):
    """Usage of all of the model's responses so far, published after each one.

    `dollars` is None if the price is unknown.
    """

    steps: int
    tokens_read: int
    tokens_written: int
    dollars: float | None


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """A call that was carried out."""

    tool: str
    description: str


@dataclass(frozen=True, slots=True)
class Ended(Event):
    """The run is over. `ending` is its word, `reason` says it in a sentence; `work` is what was done until then."""

    ending: str
    done: bool
    reason: str
    steps: int
    seconds: float
    tokens_read: int
    tokens_written: int
    dollars: float | None
    work: tuple[CompletedCall, ...]
