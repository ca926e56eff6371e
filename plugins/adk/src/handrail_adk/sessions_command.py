"""`handrail sessions`"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.commands import print_json, run
from handrail.commands._common import json_option
from handrail.errors import HandrailError
from handrail.words import visible

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from handrail_adk.keeping import Runs


@click.group("sessions")
def command() -> None:
    """Look at the runs of `handrail run`, export and delete them.

    Go on with one by `handrail run --resume ID`. What its calls did in detail is in the audit: `handrail history --session ID`.
    """


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the runs, the newest last."""
    import dataclasses

    found = run(_runs().list)
    if as_json:
        print_json([{k: v for k, v in dataclasses.asdict(each).items() if k != "steps"} for each in found])
        return
    for each in found:
        click.echo(visible(f"{each.id}  {each.updated[:19]}  {each.ending:<10}  {each.model:<24}  {each.task[:100]}"))


@command.command("show")
@click.argument("id")
@json_option
def show(id: str, as_json: bool) -> None:
    """Print what was said and called in a run."""
    kept = run(lambda: _runs().get(id))
    if as_json:
        print_json(exported(kept))
        return
    for line in told(kept):
        click.echo(visible(line))


@command.command("export")
@click.argument("id")
@click.option(
    "-o", "--output", "file", metavar="FILE", required=True, type=click.Path(path_type=Path), help="The file."
)
def export(id: str, file: Path) -> None:
    """Write a run to a JSON file, without secrets and pictures."""
    import json

    from handrail.config.places import write_private

    if file.exists():
        raise HandrailError(f"{str(file)!r} is there already", hint="name another file, or remove it first")
    content = exported(run(lambda: _runs().get(id)))
    write_private(file, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


@command.command("delete")
@click.argument("id")
def delete(id: str) -> None:
    """Delete a run. Its audit stays."""
    run(lambda: _runs().delete(id))


def _runs() -> Runs:
    from handrail.config.places import Places
    from handrail_adk.keeping import Runs

    return Runs(Places.of(os.environ))


def exported(kept: Session) -> dict[str, Any]:
    """A run as JSON types, secrets taken out."""
    import dataclasses

    from handrail.records.redaction import redact
    from handrail_adk.keeping import Run

    events = [dict(_parts(event)) for event in kept.events if event.content is not None]
    return redact({**dataclasses.asdict(Run.of(kept)), "events": events}, whole=True)


def _parts(event: Event) -> Iterator[tuple[str, Any]]:
    parts = (event.content.parts if event.content else None) or []
    yield "at", event.timestamp
    yield "by", event.author
    if text := "".join(part.text for part in parts if part.text and not part.thought):
        yield "text", text
    if calls := [{"id": c.id, "tool": c.name, "args": c.args} for c in event.get_function_calls()]:
        yield "calls", calls
    if responses := event.get_function_responses():
        yield "results", [{"id": each.id, "tool": each.name, "result": each.response} for each in responses]


def told(kept: Session) -> Iterator[str]:
    """A run in lines for a person."""
    import json

    content = exported(kept)
    yield f"{content['id']}: {content['task']}"
    yield f"{content['model']}, {content['steps']} answers, ended: {content['ending']}"
    for event in content["events"]:
        if "text" in event:
            yield f"{'You' if event['by'] == 'user' else 'Agent'}: {event['text']}"
        for call in event.get("calls", ()):
            yield f"> {call['tool']} {json.dumps(call['args'], ensure_ascii=False)}"
        for each in event.get("results", ()):
            result: Mapping[str, Any] = each["result"] or {}
            error: Mapping[str, Any] = result.get("error") or {}
            yield f"  {each['tool']}: {result.get('status', 'answered')}{': ' + error['message'] if 'message' in error else ''}"
