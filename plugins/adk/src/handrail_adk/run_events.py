"""What happens in a run, on the bus of its session beside what happens to its calls."""

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
    """A piece of what the model is saying; `said` follows with the whole, unless it is asked again."""

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
    """The model gave no answer that is one; it is asked once more after so many seconds."""

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
    """An answer of the model has come; what all of them have used. `dollars` is None where the price is not known."""

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
