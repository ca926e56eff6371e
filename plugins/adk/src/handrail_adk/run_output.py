"""What a person, or a program, sees of a run while it goes on."""

from __future__ import annotations

import os

import click

from handrail.api.events import Event, Finished, Judged, Proposed, event_wire
from handrail.cli import escape_for_terminal
from handrail.terminal.json_lines import encode_json_line
from handrail_adk.run_events import Ended, ModelTextPiece, PictureReceived, Retried, Said

# Of what was done, so much is told at the end of a run that did not come to its own.
MOST_WORK = 10


class JsonLines:
    """One JSON object a line: what happens to the calls, the session and the run, `ended` last."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def hear(self, event: Event) -> None:
        """Something happened. Pieces of what is said whole later, and pictures, are left out."""
        if not isinstance(event, ModelTextPiece | PictureReceived):
            write_line(self._descriptor, encode_json_line(event_wire(event)))


class TextLines:
    """A line for each call and its end on stderr; what the model says on stdout."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def hear(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, Said):
            write_line(self._descriptor, escape_for_terminal(event.text))
        elif (line := format_event(event)) is not None:
            print_to_stderr(line)
        if isinstance(event, Ended) and not event.done:
            for line in describe_ending(event):
                print_to_stderr(line)


def format_event(event: Event) -> str | None:
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


def describe_ending(event: Ended) -> list[str]:
    """What a person is told of a run that is not done: why, and what was done until then."""
    told = [f"Error: the task is not done ({event.ending}): {event.reason}"]
    if event.work:
        told.append(f"Done until then ({len(event.work)}):")
        told += [f"  {each.tool}: {each.description}" for each in event.work[-MOST_WORK:]]
    return told


def print_to_stderr(text: str) -> None:
    """One line for a person, on stderr."""
    click.echo(escape_for_terminal(text.replace("\n", " "), err=True), err=True)


def write_line(descriptor: int, line: str) -> None:
    """One line on that descriptor, whole."""
    left = memoryview(f"{line}\n".encode(errors="replace"))
    while left:
        left = left[os.write(descriptor, left) :]
