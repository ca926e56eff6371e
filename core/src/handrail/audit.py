"""The audit: one append-only file a session, each line chained to the one before by its hash.

A line is written before a call acts and another after it ended, so that a process that is killed leaves behind what it was doing. Every line
goes to the kernel in one write before anything moves: it survives `kill -9` of the process (not a power cut of the machine).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from handrail.errors import HandrailError
from handrail.places import private_folder

SEED = "0" * 64
HASH_KEY = ',"hash":"'


class Audit:
    """The audit file of one session, open for appending."""

    def __init__(self, path: Path, *, session: str) -> None:
        private_folder(path.parent)
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._previous = SEED
        self._number = 0
        self._size = 0
        self._closed = False
        self.write("session", {"session": session, "pid": os.getpid()})

    def write(self, event: str, fields: Mapping[str, Any]) -> None:
        """Append one line; `fields` must be plain data without secrets (see `redaction`). Raises OSError when it cannot be kept."""
        if self._closed:
            raise OSError(f"the audit {self.path} is closed")
        body = _ENCODER.encode(
            {"n": self._number, "at": round(time.time(), 6), "event": event, **fields, "prev": self._previous}
        )
        digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
        line = f'{body[:-1]}{HASH_KEY}{digest}"}}\n'.encode("utf-8", "surrogatepass")
        if os.write(self._descriptor, line) != len(line):
            # Half a line would spoil every line after it.
            os.ftruncate(self._descriptor, self._size)
            raise OSError(f"the audit {self.path} could not be written: the disk is full")
        self._size += len(line)
        self._previous = digest
        self._number += 1

    def close(self) -> None:
        """Write the end line and close. An end that cannot be written is missing, which `verify` says."""
        with contextlib.suppress(OSError):
            self.write("end", {})
        self._closed = True
        os.close(self._descriptor)


_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=str)


@dataclass(slots=True)
class Finding:
    """What `verify` found in one file: `problems` break trust in it; `notes` are honest gaps (a torn line, a missing end, open calls)."""

    path: Path
    lines: int = 0
    ended: bool = False
    problems: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    unfinished: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(path: Path) -> Finding:
    """Check one audit file line by line: its chain, its numbering, its end, and which calls have a beginning and no end."""
    found = Finding(path)
    previous = SEED
    open_calls: dict[str, dict[str, Any]] = {}
    for number, (raw, whole) in enumerate(_lines(path)):
        if not whole:
            found.notes.append(f"the last line ({number + 1}) is torn: the process was killed while writing it")
            break
        line = _checked(raw, number=number, previous=previous)
        if isinstance(line, str):
            found.problems.append(f"line {number + 1}: {line}")
            break
        previous = line["hash"]
        found.lines += 1
        if line["event"] == "call":
            open_calls[line["call_id"]] = line
        elif line["event"] == "result":
            open_calls.pop(line["call_id"], None)
        found.ended = line["event"] == "end"
    if not found.lines and not found.problems:
        found.notes.append("the file is empty")
    if not found.ended and not found.problems:
        found.notes.append("the end line is missing: the session was killed or is still running")
    found.unfinished = list(open_calls.values())
    found.notes += [f"call {c['call_id']} ({c['tool']}) began and has no result" for c in found.unfinished]
    return found


def _lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    try:
        with path.open("rb") as file:
            for raw in file:
                yield raw, raw.endswith(b"\n")
    except OSError as exc:
        raise HandrailError(f"the audit {path} cannot be read: {exc.strerror}") from exc


def _checked(raw: bytes, *, number: int, previous: str) -> dict[str, Any] | str:
    """The line as a dict, or what is wrong with it."""
    # What it was written from is ASCII; anything else was changed, and shows as such.
    text = raw.decode("ascii", "replace").rstrip("\n")
    body, found, digest = text.rpartition(HASH_KEY)
    if not found or not digest.endswith('"}'):
        return "it has no hash"
    body += "}"
    if hashlib.sha256(body.encode()).hexdigest() != digest[:-2]:
        return "its text does not fit its hash: it was changed"
    line = _parsed(text)
    if line is None:
        return "it is not a line of an audit"
    if line["prev"] != previous:
        return "it does not follow the line before: a line was taken out, put in or moved"
    if line["n"] != number:
        return f"it is numbered {line['n']}, not {number}"
    return line


def _parsed(text: str) -> dict[str, Any] | None:
    """The line as a dict with everything that `verify` reads; None when it has another shape."""
    try:
        line: Any = json.loads(text)
    except ValueError:
        return None
    if not isinstance(line, dict):
        return None
    named = ("call_id", "tool") if cast("dict[str, Any]", line).get("event") in ("call", "result") else ()
    fits = all(isinstance(line.get(key), str) for key in ("event", "prev", "hash", *named))  # pyright: ignore[reportUnknownMemberType]
    return cast("dict[str, Any]", line) if fits and "n" in line else None
