"""`handrail sessions`"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.cli import json_option, print_json, run_async
from handrail.errors import HandrailError
from handrail.text import make_visible

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

    from handrail_adk.run_store import RunStore


@click.group("sessions")
def sessions_group() -> None:
    """Look at the runs of `handrail run`, export and delete them.

    Go on with one by `handrail run --resume ID`. What its calls did in detail is in the audit: `handrail history --session ID`.
    """


@sessions_group.command("list")
@json_option
def list_sessions_command(as_json: bool) -> None:
    """List the runs, the newest last."""
    import dataclasses

    found = run_async(_open_run_store().list)
    if as_json:
        print_json([{k: v for k, v in dataclasses.asdict(each).items() if k != "steps"} for each in found])
        return
    for each in found:
        click.echo(
            make_visible(f"{each.id}  {each.updated[:19]}  {each.ending:<10}  {each.model:<24}  {each.task[:100]}")
        )


@sessions_group.command("show")
@click.argument("id")
@json_option
def show_command(id: str, as_json: bool) -> None:
    """Print the messages and calls of a run."""
    kept = run_async(lambda: _open_run_store().get(id))
    if as_json:
        print_json(export_run(kept))
        return
    for line in format_run(kept):
        click.echo(make_visible(line))


@sessions_group.command("export")
@click.argument("id")
@click.option(
    "-o", "--output", "file", metavar="FILE", required=True, type=click.Path(path_type=Path), help="The file."
)
def export_command(id: str, file: Path) -> None:
    """Write a run to a JSON file, without secrets and pictures."""
    import json

    from handrail.fs.app_dirs import write_private_file

    if file.exists():
        raise HandrailError(f"{str(file)!r} is there already", hint="name another file, or remove it first")
    content = export_run(run_async(lambda: _open_run_store().get(id)))
    write_private_file(file, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


@sessions_group.command("delete")
@click.argument("id")
def delete_command(id: str) -> None:
    """Delete a run. Its audit stays."""
    run_async(lambda: _open_run_store().delete(id))


def _open_run_store() -> RunStore:
    from handrail.fs.app_dirs import AppDirs
    from handrail_adk.run_store import RunStore

    return RunStore(AppDirs.of(os.environ))


def export_run(kept: Session) -> dict[str, Any]:
    """Return a run as JSON types, with secrets redacted."""
    import dataclasses

    from handrail.redaction import redact_value
    from handrail_adk.run_store import StoredRun

    events = [dict(_iter_event_parts(event)) for event in kept.events if event.content is not None]
    return redact_value({**dataclasses.asdict(StoredRun.of(kept)), "events": events}, whole=True)


def _iter_event_parts(event: Event) -> Iterator[tuple[str, Any]]:
    parts = (event.content.parts if event.content else None) or []
    yield "at", event.timestamp
    yield "by", event.author
    if text := "".join(part.text for part in parts if part.text and not part.thought):
        yield "text", text
    if calls := [{"id": c.id, "tool": c.name, "args": c.args} for c in event.get_function_calls()]:
        yield "calls", calls
    if responses := event.get_function_responses():
        yield "results", [{"id": each.id, "tool": each.name, "result": each.response} for each in responses]


def format_run(kept: Session) -> Iterator[str]:
    """Yield the lines that show a run to the user."""
    import json

    content = export_run(kept)
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
