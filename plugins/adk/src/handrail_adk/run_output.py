"""Output for the user, or for a program, during a run."""

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
        """Write an event as one line. Omits pictures, and pieces of text that are complete in a later event."""
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
    """Format an event as a line; None for an event that the user need not see."""
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
    """Return lines for the user about a run that is not done: the reason, and the work completed before."""
    told = [f"Error: the task is not done ({event.ending}): {event.reason}"]
    if event.work:
        told.append(f"Done until then ({len(event.work)}):")
        told += [f"  {each.tool}: {each.description}" for each in event.work[-MOST_WORK:]]
    return told


def print_to_stderr(text: str) -> None:
    """Print one line for the user on stderr."""
    click.echo(escape_for_terminal(text.replace("\n", " "), err=True), err=True)


def write_line(descriptor: int, line: str) -> None:
    """Write one complete line to the descriptor."""
    left = memoryview(f"{line}\n".encode(errors="replace"))
    while left:
        left = left[os.write(descriptor, left) :]
