"""What a person, or a program, sees of a run while it goes on."""

from __future__ import annotations

import os

import click

from handrail.commands._common import for_terminal, to_json
from handrail.watching.events import Event, Finished, Judged, Proposed, event_wire
from handrail_adk.happenings import Ended, Pictured, Retried, Said, Saying

# Of what was done, so much is told at the end of a run that did not come to its own.
MOST_WORK = 10


class JsonLines:
    """One JSON object a line: what happens to the calls, the session and the run, `ended` last."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def hear(self, event: Event) -> None:
        """Something happened. Pieces of what is said whole later, and pictures, are left out."""
        if not isinstance(event, Saying | Pictured):
            write_line(self._descriptor, to_json(event_wire(event)))


class Lines:
    """A line for each call and its end on stderr; what the model says on stdout."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def hear(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Said):
            write_line(self._descriptor, for_terminal(event.text))
        elif (line := line_of(event)) is not None:
            say(line)
        if isinstance(event, Ended) and not event.done:
            for line in ending_of(event):
                say(line)


def line_of(event: Event) -> str | None:
    """An event as a line; None for one that no person needs."""
    match event:
        case Proposed(parent=None):
            return f"> {event.tool}: {event.description}"
        case Judged() if event.verdict.decision != "allow":
            return f"  {event.verdict.decision}: {'; '.join(reason.text for reason in event.verdict.reasons)}"
        case Finished():
            effect = f", effect {event.effect}" if event.effect else ""
            cure = "; run it at a terminal to be asked, or add --yes" if event.error_code == "no_confirmer" else ""
            return f"  {event.tool}: {event.error_code or event.status} in {event.duration_ms} ms{effect}{cure}"
        case Retried():
            return f"  attempt {event.attempt} in {event.seconds:g} s: {event.reason}"
        case _:
            return None


def ending_of(event: Ended) -> list[str]:
    """What a person is told of a run that is not done: why, and what was done until then."""
    told = [f"Error: the task is not done ({event.ending}): {event.reason}"]
    if event.work:
        told.append(f"Done until then ({len(event.work)}):")
        told += [f"  {each.tool}: {each.description}" for each in event.work[-MOST_WORK:]]
    return told


def say(text: str) -> None:
    """One line for a person, on stderr."""
    click.echo(for_terminal(text.replace("\n", " "), err=True), err=True)


def write_line(descriptor: int, line: str) -> None:
    """One line on that descriptor, whole."""
    left = memoryview(f"{line}\n".encode(errors="replace"))
    while left:
        left = left[os.write(descriptor, left) :]
