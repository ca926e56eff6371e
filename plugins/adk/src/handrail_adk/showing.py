"""What a person, or a program, sees of a run while it goes on."""

from __future__ import annotations

import os

import click

from handrail.commands._common import for_terminal, to_json
from handrail.watching.events import Event, Finished, Judged, Proposed, event_wire
from handrail_adk.running import Outcome


class JsonLines:
    """One JSON object a line: the session's events, `{"event": "said", "text"}`, and at the end `{"event": "ended", "done", "reason"}`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def event(self, event: Event) -> None:
        """Something happened to a call or the session."""
        self._write(event_wire(event))

    def text(self, text: str) -> None:
        """The model said something."""
        self._write({"event": "said", "text": text})

    def ended(self, outcome: Outcome) -> None:
        """The run is over."""
        self._write({"event": "ended", "done": outcome.done, "reason": outcome.reason})

    def _write(self, value: object) -> None:
        _write(self._descriptor, to_json(value))


class Lines:
    """A line for each call and its end on stderr; what the model says on stdout."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def event(self, event: Event) -> None:
        """Something happened to a call or the session."""
        match event:
            case Proposed(parent=None):
                self._say(f"> {event.tool}: {event.description}")
            case Judged() if event.verdict.decision != "allow":
                self._say(f"  {event.verdict.decision}: {'; '.join(reason.text for reason in event.verdict.reasons)}")
            case Finished():
                effect = f", effect {event.effect}" if event.effect else ""
                self._say(f"  {event.tool}: {event.error_code or event.status} in {event.duration_ms} ms{effect}")
            case _:
                pass

    def text(self, text: str) -> None:
        """The model said something."""
        _write(self._descriptor, for_terminal(text))

    def ended(self, outcome: Outcome) -> None:
        """The run is over."""
        if not outcome.done:
            click.echo(f"Error: the task is not done: {for_terminal(outcome.reason, err=True)}", err=True)

    def _say(self, text: str) -> None:
        click.echo(for_terminal(text.replace("\n", " "), err=True), err=True)


def _write(descriptor: int, line: str) -> None:
    left = memoryview(f"{line}\n".encode(errors="replace"))
    while left:
        left = left[os.write(descriptor, left) :]
