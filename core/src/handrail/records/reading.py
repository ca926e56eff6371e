"""What audits tell of calls, of past sessions and of running ones, in whatever process."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from handrail.files.locks import try_lock
from handrail.records.audit import parts_of, session_of

# Calls of one session that are held.
MOST = 1_000


def calls_in(parts: Sequence[Path], count: int) -> Iterator[dict[str, Any]]:
    """The last calls of one session's audit. Lines that cannot be read are left to `handrail audit verify`."""
    session = session_of(parts[0])
    calls: deque[dict[str, Any]] = deque(maxlen=count)
    running: dict[str, dict[str, Any]] = {}
    for line in (line for part in parts for line in read_lines(part)):
        call_id = line.get("call_id")
        if line.get("event") == "call":
            running[str(call_id)] = call = begun(line, session=session)
            calls.append(call)
        elif line.get("event") == "result":
            call = running.pop(str(call_id), None)
            if call is None:
                call = begun(line, session=session)
                calls.append(call)
            call |= ended(line)
    yield from calls


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


def begun(line: Mapping[str, Any], *, session: str) -> dict[str, Any]:
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
    }


def ended(line: Mapping[str, Any]) -> dict[str, Any]:
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
    """One session's audit, read as far as it was written. `version` grows with each line."""

    file: Path
    id: str
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    desktop: Mapping[str, Any] | None = None
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    ended: bool = False
    version: int = 0
    _part: Path | None = None
    _at: int = 0
    _count: int = 0
    _open: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def running(self) -> bool:
        """Whether its process still writes it."""
        return not self.ended and is_held(self._part or self.file)

    def read(self) -> bool:
        """Take in what was written since; whether there was something."""
        before = self.version
        for part in parts_of(self.file):
            if self._part is not None and _number(part) < _number(self._part):
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
                self.desktop = line
            case "call":
                self._begin(line)
            case "result":
                self._end(line)
            case "end":
                self.ended = True
            case _:
                pass

    def _begin(self, line: Mapping[str, Any]) -> str:
        # A call that is handed on, or made again on the host, is recorded anew under its own id.
        self._count += 1
        key = str(self._count)
        self._open[str(line.get("call_id"))] = key
        told = {**begun(line, session=self.id), "key": key}
        told |= {name: line[name] for name in ("route", "changed_by", "before", "observed") if name in line}
        self.calls[key] = Call(told, self.version)
        if len(self.calls) > MOST:
            del self.calls[next(iter(self.calls))]
        return key

    def _end(self, line: Mapping[str, Any]) -> None:
        call_id = str(line.get("call_id"))
        key = self._open.pop(call_id, None) or self._begin(line)
        self._open.pop(call_id, None)
        if (call := self.calls.get(key)) is not None:
            call.told |= ended(line)
            call.version = self.version


def is_held(file: Path) -> bool:
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


def _number(part: Path) -> int:
    number = part.stem.partition(".")[2]
    return int(number) if number.isdecimal() else 1
