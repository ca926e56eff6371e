"""What audits tell of calls, of past sessions and of running ones, in whatever process."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from handrail.files.locks import try_lock
from handrail.records.audit import part_number, parts_of, session_of

if TYPE_CHECKING:
    from handrail.desktops.desktop import Desktop

# Calls of one session that are held, where nobody says otherwise.
MOST = 1_000


def calls_in(file: Path, count: int) -> list[dict[str, Any]]:
    """The last calls of one session's audit. Lines that cannot be read are left to `handrail audit verify`."""
    telling = Telling(file, most=count)
    telling.read()
    return [call.told for call in telling.calls.values()]


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of one audit file that can be read."""
    with file.open("rb") as lines:
        for raw in lines:
            if (line := _line(raw)) is not None:
                yield line


def _line(raw: bytes) -> dict[str, Any] | None:
    try:
        line: Any = json.loads(raw)
    except ValueError:
        return None
    return cast("dict[str, Any]", line) if isinstance(line, dict) else None


def _begun(line: Mapping[str, Any], *, session: str) -> dict[str, Any]:
    """A call that has begun, as its line tells it."""
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
        **{name: line[name] for name in ("route", "changed_by", "before", "observed") if name in line},
    }


def _desktop(line: Mapping[str, Any]) -> Desktop | None:
    """The desktop that the session works, as its line tells it; None where it is told otherwise."""
    from pydantic import TypeAdapter, ValidationError

    from handrail.desktops.desktop import Desktop

    try:
        return TypeAdapter(Desktop).validate_python({each.name: line.get(each.name) for each in fields(Desktop)})
    except ValidationError:
        return None


def _ended(line: Mapping[str, Any]) -> dict[str, Any]:
    """How a call ended, as its line tells it."""
    result: Any = line.get("result", {})
    told = {"status": line.get("status"), "result": result, "duration_ms": result.get("duration_ms")}
    return {**told, "picture": line["picture"]} if "picture" in line else told


@dataclass(slots=True)
class Call:
    """A call as the audit tells it. `version` is another one whenever something has been added to it."""

    told: dict[str, Any]
    version: int


@dataclass(slots=True)
class Telling:
    """One session's audit, read as far as it was written: its last calls by a number of ours. `version` grows with each line."""

    file: Path
    most: int = MOST
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    desktop: Desktop | None = None
    calls: dict[int, Call] = field(default_factory=dict[int, Call])
    ended: bool = False
    version: int = 0
    _part: Path | None = None
    _at: int = 0
    _count: int = 0
    _open: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def id(self) -> str:
        return session_of(self.file)

    @property
    def running(self) -> bool:
        """Whether its process still writes it."""
        return not self.ended and _is_held(self._part or self.file)

    def read(self) -> bool:
        """Take in what was written since; whether there was something."""
        before = self.version
        for part in parts_of(self.file):
            if self._part is not None and part_number(part) < part_number(self._part):
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
                if (line := _line(raw)) is not None:
                    self._take(line)

    def _take(self, line: Mapping[str, Any]) -> None:
        self.version += 1
        match line.get("event"):
            case "session" if not self.about:
                self.about = {key: line.get(key) for key in ("at", "pid", "workspace")}
            case "desktop":
                self.desktop = _desktop(line)
            case "call":
                self._begin(line)
            case "result":
                self._end(line)
            case "end":
                self.ended = True
            case _:
                pass

    def _begin(self, line: Mapping[str, Any]) -> int:
        # A call that is handed on, or made again on the host, is recorded anew under its own id.
        self._count += 1
        self._open[str(line.get("call_id"))] = self._count
        self.calls[self._count] = Call(_begun(line, session=self.id), self.version)
        if len(self.calls) > self.most:
            del self.calls[next(iter(self.calls))]
        return self._count

    def _end(self, line: Mapping[str, Any]) -> None:
        call_id = str(line.get("call_id"))
        key = self._open.pop(call_id, None) or self._begin(line)
        self._open.pop(call_id, None)
        if (call := self.calls.get(key)) is not None:
            call.told |= _ended(line)
            call.version = self.version


def _is_held(file: Path) -> bool:
    """Whether somebody writes an audit file: the kernel gives the lock up with the process, however that ends."""
    try:
        descriptor = os.open(file, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


def audits(folder: Path) -> list[Path]:
    """The first file of each session's audit, the newest session first."""
    return sorted((file for file in folder.glob("*.jsonl") if file.stem == session_of(file)), reverse=True)
