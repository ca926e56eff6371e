"""`handrail history`"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import json_option, print_json
from handrail.errors import HandrailError
from handrail.text import make_visible

if TYPE_CHECKING:
    from pathlib import Path


@click.command("history")
@click.option("--last", metavar="N", type=click.IntRange(min=1), default=50, show_default=True, help="How many calls.")
@click.option("--session", "session", metavar="ID", help="Of this session only.")
@json_option
def command(last: int, session: str | None, as_json: bool) -> None:
    """Print the newest recorded calls, oldest first.

    They are read from the audit files of past and running sessions.

    Example: handrail history --last 10
    """
    calls = read_newest_calls(last, session=session)
    if as_json:
        print_json(calls)
    else:
        for call in calls:
            click.echo(_format_call(call))


def read_newest_calls(count: int, *, session: str | None = None) -> Sequence[dict[str, Any]]:
    """Return the last `count` calls of all sessions, or of one, in the order they began."""
    from handrail.fs.app_dirs import AppDirs

    folder = AppDirs.of(os.environ).audit
    from handrail.audit.query import read_calls
    from handrail.audit.writer import get_session_id, list_parts

    files = (
        [folder / f"{session}.jsonl"]
        if session
        else sorted(folder.glob("*.jsonl"), key=_modification_time, reverse=True)
    )
    if session and not list_parts(files[0]):
        raise HandrailError(f"there is no session {session!r}", hint="`handrail history --json` names those there are")
    found: list[dict[str, Any]] = []
    # The newest part of each session stands for the whole.
    for id in dict.fromkeys(map(get_session_id, files)):
        found += read_calls(folder / f"{id}.jsonl", count)
        if len(found) >= count:
            break
    return sorted(found, key=lambda call: call["at"])[-count:]


def _modification_time(file: Path) -> float:
    return file.stat().st_mtime


def _format_call(call: dict[str, Any]) -> str:
    import json

    args = json.dumps(call["args"], ensure_ascii=False)
    shown = args if len(args) <= 100 else f"{args[:100]}…"
    took = f"{call['duration_ms']} ms" if call["duration_ms"] is not None else "-"
    return make_visible(
        f"{call['at'][:19]}  {call['tool']:<20}  {call['decision'] or '-':<7}  {call['status']:<10}  {took:>9}  {shown}"
    )
