"""Reading of audit logs, of past and running sessions in any process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from handrail.audit.writer import get_part_number, get_session_id, list_parts
from handrail.fs.file_locks import is_held
from handrail.json_types import is_object

if TYPE_CHECKING:
    from handrail.api.desktop import Desktop

__all__ = ["AuditReader", "list_audits", "read_lines", "read_outline", "read_page"]

# Calls of one session that are held, where nobody says otherwise.
MAX_CALLS = 1_000


def read_calls(file: Path, count: int) -> list[dict[str, Any]]:
    """Return the last calls in one session's audit log. Unreadable lines are left to `handrail audit verify`."""
    telling = AuditReader(file, most=count)
    telling.read()
    return [call.told for call in telling.calls.values()]


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the readable lines of one audit file."""
    with file.open("rb") as lines:
        for raw in lines:
            if (line := _parse_line(raw)) is not None:
                yield line


def _parse_line(raw: bytes) -> dict[str, Any] | None:
    try:
        line: Any = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if is_object(line) else None


def _format_time(at: object) -> str:
    """Format a Unix time; the epoch for a damaged line without a valid time."""
    try:
        moment = datetime.fromtimestamp(at if isinstance(at, (int, float)) else 0, UTC)
    except (ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.isoformat(timespec="milliseconds")


def _call_from_line(line: Mapping[str, Any], *, session: str) -> dict[str, Any]:
    """Return a call that has begun, from its line in the log."""
    return {
        "session": session,
        "call_id": line.get("call_id"),
        "tool": line.get("tool"),
        "args": line.get("args", {}),
        "at": _format_time(line.get("at")),
        "parent": line.get("parent"),
        "decision": line.get("decision"),
        "rule": line.get("rule"),
        "reasons": line.get("reasons", []),
        "status": "unfinished",
        "result": None,
        "duration_ms": None,
        **{name: line[name] for name in ("route", "view", "hosts", "changed_by", "before", "observed") if name in line},
    }


def _parse_desktop(line: Mapping[str, Any]) -> Desktop | None:
    """Return the session's desktop from its line in the log, or None if the line is invalid."""
    from pydantic import TypeAdapter, ValidationError

    from handrail.api.desktop import Desktop

    try:
        return TypeAdapter(Desktop).validate_python({each.name: line.get(each.name) for each in fields(Desktop)})
    except ValidationError:
        return None


def _outcome_from_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outcome of a call from its line in the log."""
    result: object = line.get("result", {})
    duration = result.get("duration_ms") if is_object(result) else None
    told: dict[str, Any] = {"status": line.get("status"), "result": result, "duration_ms": duration}
    return {**told, "picture": line["picture"]} if "picture" in line else told


@dataclass(slots=True)
class AuditedCall:
    """A call as the audit tells it. `version` is another one whenever something has been added to it."""

    told: dict[str, Any]
    version: int


@dataclass(slots=True)
class AuditReader:
    """One session's audit, read as far as it was written: its last calls by a number of ours. `version` grows with each line."""

    file: Path
    most: int = MAX_CALLS
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    desktop: Desktop | None = None
    calls: dict[int, AuditedCall] = field(default_factory=dict[int, AuditedCall])
    ended: bool = False
    version: int = 0
    _part: Path | None = None
    _at: int = 0
    _count: int = 0
    _open: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def id(self) -> str:
        return get_session_id(self.file)

    @property
    def running(self) -> bool:
        """True if the session's process still writes the log."""
        return not self.ended and is_held(self._part or self.file)

    def read(self) -> bool:
        """Read what was written since the last call; return True if there was anything."""
        before = self.version
        for part in list_parts(self.file):
            if self._part is not None and get_part_number(part) < get_part_number(self._part):
                continue
            if part != self._part:
                self._part, self._at = part, 0
            self._read(part)
        return self.version != before

    def _read(self, part: Path) -> None:
        with part.open("rb") as file:
            file.seek(self._at)
            for raw in file:
                # The line is being written.
                if not raw.endswith(b"\n"):
                    break
                self._at += len(raw)
                if (line := _parse_line(raw)) is not None:
                    self._take(line)

    def _take(self, line: Mapping[str, Any]) -> None:
        self.version += 1
        match line.get("event"):
            case "session" if not self.about:
                self.about = {key: line.get(key) for key in ("at", "pid", "workspace")}
            case "desktop":
                self.desktop = _parse_desktop(line)
            case "call":
                self._begin(line)
            case "result":
                self._end(line)
            case "end":
                self.ended = True
            case _:
                pass

    def take_later(self, line: Mapping[str, Any]) -> None:
        """Process a line of a log that was not read from its beginning.

        Skips results of calls that began before.
        """
        known = str(line.get("call_id")) in self._open or "args" in line or line.get("status") == "cancelled"
        if line.get("event") != "result" or known:
            self._take(line)

    def end_later(self, part: Path, at: int) -> None:
        """Read the results of calls that have none yet, from this position on; reads at most one page."""
        left = PAGE_BYTES
        for each in list_parts(self.file):
            if get_part_number(each) < get_part_number(part):
                continue
            with each.open("rb") as lines:
                lines.seek(at if each == part else 0)
                while self._open and left > 0 and (raw := lines.readline()):
                    left -= len(raw)
                    if (
                        RESULT_EVENT in raw
                        and (line := _parse_line(raw)) is not None
                        and str(line.get("call_id")) in self._open
                    ):
                        self._take(line)

    def _begin(self, line: Mapping[str, Any]) -> int:
        # A call that is handed on, or made again on the host, is recorded anew under its own id.
        self._count += 1
        self._open[str(line.get("call_id"))] = self._count
        self.calls[self._count] = AuditedCall(_call_from_line(line, session=self.id), self.version)
        if len(self.calls) > self.most:
            del self.calls[next(iter(self.calls))]
        return self._count

    def _end(self, line: Mapping[str, Any]) -> None:
        call_id = str(line.get("call_id"))
        key = self._open.pop(call_id, None) or self._begin(line)
        self._open.pop(call_id, None)
        if (call := self.calls.get(key)) is not None:
            call.told |= _outcome_from_line(line)
            call.version = self.version


# Bytes that are read at a time from the end of an audit, of each end for an outline, and for one page of calls.
BLOCK_BYTES = 2**18
GLANCE_BYTES = 2**15
PAGE_BYTES = 8 * 2**20
CALL_EVENT, RESULT_EVENT = b'"event":"call"', b'"event":"result"'


@dataclass(frozen=True, slots=True)
class CallPage:
    """Page of a session's calls, oldest first. `before` is the cursor for the page of earlier calls, or None."""

    calls: list[dict[str, Any]]
    before: str | None


def read_page(file: Path, *, count: int, before: str | None = None) -> CallPage:
    """Return the last `count` calls in one session's audit log, or the last ones before a page.

    Time and memory depend only on these calls, not on the size of the log. The page may be shorter where the log
    continues in another file. Raises ValueError for an invalid `before`.
    """
    number, at = _parse_position(before)
    parts = [part for part in list_parts(file) if number is None or get_part_number(part) <= number]
    if not parts:
        return CallPage([], None)
    part = parts[-1]
    with part.open("rb") as lines:
        end = lines.seek(0, os.SEEK_END)
        if number == get_part_number(part):
            end = min(at, end)
        start, region = _read_last_lines(lines, end, count)
        telling = AuditReader(file, most=count)
        for raw in region:
            if raw.endswith(b"\n") and (line := _parse_line(raw)) is not None:
                telling.take_later(line)
    telling.end_later(part, end)
    earlier = [each for each in parts if get_part_number(each) < get_part_number(part)]
    cursor = f"{get_part_number(part)}:{start}" if start else None
    if cursor is None and earlier:
        cursor = f"{get_part_number(earlier[-1])}:{earlier[-1].stat().st_size}"
    return CallPage([call.told for call in telling.calls.values()], cursor)


def _parse_position(before: str | None) -> tuple[int | None, int]:
    """Return the file number and the offset where a page ends. Raises ValueError for an invalid position."""
    if before is None:
        return None, 0
    number, at = (int(each) for each in before.split(":"))
    if number < 1 or at < 0:
        raise ValueError(f"{before!r} is no place in an audit")
    return number, at


def _read_last_lines(lines: BinaryIO, end: int, count: int) -> tuple[int, list[bytes]]:
    """Return the lines before `end` that contain the starts of the last `count` calls, and the offset of the first."""
    start, data = end, b""
    while start and data.count(CALL_EVENT) <= count and (len(data) < PAGE_BYTES or data.count(b"\n") < 2):
        size = min(BLOCK_BYTES, start)
        start -= size
        lines.seek(start)
        data = lines.read(size) + data
    found = data.splitlines(keepends=True)
    if start:
        # The first one may be a part of a line.
        start += len(found.pop(0))
    begun = [place for place, raw in enumerate(found) if CALL_EVENT in raw]
    if len(begun) > count:
        first = begun[-count]
        start += sum(map(len, found[:first]))
        found = found[first:]
    return start, found


@dataclass(frozen=True, slots=True)
class SessionOutline:
    """Summary of a session without reading its entire log.

    `calls` is exact only for a short log, and `tools` are those at its beginning and end.
    """

    about: dict[str, Any]
    calls: int
    exact: bool
    tools: tuple[str, ...]


def read_outline(file: Path) -> SessionOutline:
    """Return the outline of a session, reading only the beginning and the end of its log."""
    parts = list_parts(file)
    head, tail = AuditReader(file), AuditReader(file)
    if not parts:
        return SessionOutline({}, 0, exact=True, tools=())
    with parts[0].open("rb") as lines:
        for raw in lines.read(GLANCE_BYTES).splitlines(keepends=True):
            if raw.endswith(b"\n") and (line := _parse_line(raw)) is not None:
                head.take_later(line)
        exact = len(parts) == 1 and lines.seek(0, os.SEEK_END) <= GLANCE_BYTES
    written = 0
    with parts[-1].open("rb") as lines:
        size = lines.seek(0, os.SEEK_END)
        lines.seek(max(0, size - GLANCE_BYTES))
        for raw in lines.read(GLANCE_BYTES).splitlines():
            if (line := _parse_line(raw)) is not None:
                tail.take_later(line)
                number = line.get("n")
                written = number if isinstance(number, int) else written
    tools = (str(call.told["tool"]) for told in (head, tail) for call in told.calls.values())
    # A call leaves two lines.
    calls = len(head.calls) if exact else written // 2
    return SessionOutline(head.about, calls, exact, tuple(dict.fromkeys(tools)))


def list_audits(folder: Path) -> list[Path]:
    """Return the first file of each session's audit log, newest session first."""
    return sorted((file for file in folder.glob("*.jsonl") if file.stem == get_session_id(file)), reverse=True)
