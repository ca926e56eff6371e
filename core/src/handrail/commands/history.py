"""`handrail history`"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from handrail.commands._common import json_option, print_json
from handrail.errors import HandrailError
from handrail.words import visible

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
    calls = newest_calls(last, session=session)
    if as_json:
        print_json(calls)
    else:
        for call in calls:
            click.echo(_line(call))


def newest_calls(count: int, *, session: str | None = None) -> Sequence[dict[str, Any]]:
    """The last `count` calls of all sessions, or of one, in the order they began."""
    from handrail.config.places import Places

    folder = Places.of(os.environ).audit
    from handrail.records.audit import parts_of, session_of

    files = [folder / f"{session}.jsonl"] if session else sorted(folder.glob("*.jsonl"), key=_modified, reverse=True)
    # The newest part of each session stands for the whole.
    sessions = {session_of(file): parts_of(file) for file in files}
    if session and not sessions.get(session):
        raise HandrailError(f"there is no session {session!r}", hint="`handrail history --json` names those there are")
    found: list[dict[str, Any]] = []
    for parts in sessions.values():
        found += _calls(parts, count)
        if len(found) >= count:
            break
    return sorted(found, key=lambda call: call["at"])[-count:]


def _modified(file: Path) -> float:
    return file.stat().st_mtime


def _calls(parts: Sequence[Path], count: int) -> Iterator[dict[str, Any]]:
    """The last calls of one session's audit. Lines that cannot be read are left to `handrail audit verify`."""
    session = parts[0].name.split(".")[0]
    calls: deque[dict[str, Any]] = deque(maxlen=count)
    running: dict[str, dict[str, Any]] = {}
    for line in (line for part in parts for line in read_lines(part)):
        call_id = line.get("call_id")
        if line.get("event") == "call":
            running[str(call_id)] = call = _begun(line, session=session)
            calls.append(call)
        elif line.get("event") == "result":
            call = running.pop(str(call_id), None)
            if call is None:
                call = _begun(line, session=session)
                calls.append(call)
            result = line.get("result", {})
            call |= {"status": line.get("status"), "result": result, "duration_ms": result.get("duration_ms")}
    yield from calls


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of one audit file that can be read."""
    import json

    with file.open("rb") as lines:
        for raw in lines:
            try:
                line = json.loads(raw)
            except ValueError:
                continue
            if isinstance(line, dict):
                yield line


def _begun(line: dict[str, Any], *, session: str) -> dict[str, Any]:
    from datetime import UTC, datetime

    return {
        "session": session,
        "call_id": line.get("call_id"),
        "tool": line.get("tool"),
        "args": line.get("args", {}),
        "at": datetime.fromtimestamp(line.get("at", 0), UTC).isoformat(timespec="milliseconds"),
        "parent": line.get("parent"),
        "decision": line.get("decision"),
        "rule": line.get("rule"),
        "reasons": line.get("reasons", []),
        "status": "unfinished",
        "result": None,
        "duration_ms": None,
    }


def _line(call: dict[str, Any]) -> str:
    import json

    args = json.dumps(call["args"], ensure_ascii=False)
    shown = args if len(args) <= 100 else f"{args[:100]}…"
    took = f"{call['duration_ms']} ms" if call["duration_ms"] is not None else "-"
    return visible(
        f"{call['at'][:19]}  {call['tool']:<20}  {call['decision'] or '-':<7}  {call['status']:<10}  {took:>9}  {shown}"
    )
