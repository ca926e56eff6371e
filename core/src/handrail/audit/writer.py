"""Audit log: one append-only file a session, with each line chained to the previous one by its hash.

A line is written before a call acts and another after it ended; if the process is killed, the log shows what it was
doing. Every line is passed to the kernel in one write before the action starts: it survives `kill -9` of the process
(not a power failure of the machine).

A file that has grown large ends with the name of the next one, which continues its numbers and its hash chain, and
lists the open calls.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handrail.errors import HandrailError
from handrail.fs.app_dirs import ensure_private_folder
from handrail.fs.file_locks import lock_open_file
from handrail.json_types import is_object

__all__ = ["list_parts"]

CHAIN_SEED = "0" * 64
# Bytes of one file, before the audit goes on in another.
MAX_FILE_BYTES = 16 * 2**20
HASH_KEY = ',"hash":"'


class AuditWriter:
    """Audit log of one session, open for appending.

    After `most` bytes it continues in another file: `ID.jsonl`, `ID.2.jsonl`, …
    """

    def __init__(self, path: Path, *, session: str, most: int = MAX_FILE_BYTES, workspace: Sequence[Path] = ()) -> None:
        ensure_private_folder(path.parent)
        self.path = path
        self._session = session
        self._most = most
        self._parts = [_create_audit_file(path)]
        self._previous: str = CHAIN_SEED
        self._number: int = 0
        self._size: int = 0
        self._open: dict[str, Any] = {}
        self._closed = False
        self._write("session", {"session": session, "pid": os.getpid(), "workspace": [str(root) for root in workspace]})

    def write(self, event: str, fields: Mapping[str, Any]) -> None:
        """Append one line; `fields` must be plain data without secrets (see `redaction`). Raises OSError when it cannot be kept."""
        if self._closed:
            raise OSError(f"the audit {self.path} is closed")
        self._write(event, fields)
        if event == "call":
            self._open[fields["call_id"]] = fields["tool"]
        elif event == "result":
            self._open.pop(fields["call_id"], None)
        if self._size > self._most:
            self._go_on()

    def close(self) -> None:
        """Write the end line and close. An end that cannot be written is missing, which `verify_audit` says."""
        # The numbers of closed descriptors are given out again, to files of others.
        if self._closed:
            return
        with contextlib.suppress(OSError):
            self._write("end", {})
        self._closed = True
        for descriptor in self._parts:
            os.close(descriptor)

    def _go_on(self) -> None:
        """Continue in another file, or in the current one if there is no space for another."""
        before = self.path, self._previous, self._number, self._size
        path = get_next_part(self.path)
        try:
            self._write("rotated", {"next": path.name})
            self._parts.append(_create_audit_file(path))
        except OSError:
            os.ftruncate(self._parts[-1], before[3])
            _, self._previous, self._number, self._size = before
            return
        self.path, self._size = path, 0
        told = {"session": self._session, "pid": os.getpid(), "continues": before[0].name, "open": self._open}
        try:
            self._write("session", told)
        except OSError:
            os.close(self._parts.pop())
            path.unlink(missing_ok=True)
            os.ftruncate(self._parts[-1], before[3])
            self.path, self._previous, self._number, self._size = before

    def _write(self, event: str, fields: Mapping[str, Any]) -> None:
        body = _LINE_ENCODER.encode(
            {"n": self._number, "at": round(time.time(), 6), "event": event, **fields, "prev": self._previous}
        )
        digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
        line = f'{body[:-1]}{HASH_KEY}{digest}"}}\n'.encode("utf-8", "surrogatepass")
        if os.write(self._parts[-1], line) != len(line):
            # Half a line would spoil every line after it.
            os.ftruncate(self._parts[-1], self._size)
            raise OSError(f"the audit {self.path} could not be written: the disk is full")
        self._size += len(line)
        self._previous = digest
        self._number += 1


def _create_audit_file(path: Path) -> int:
    """Create a file and lock it, which distinguishes it from those of past sessions; return its descriptor."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    lock_open_file(descriptor, shared=True)
    return descriptor


def get_session_id(path: Path) -> str:
    """Return the id of the session to whose audit log the file belongs."""
    return path.name.split(".")[0]


def get_next_part(path: Path) -> Path:
    """Return the file in which the audit log continues after this one."""
    return path.with_name(f"{get_session_id(path)}.{get_part_number(path) + 1}.jsonl")


def get_part_number(path: Path) -> int:
    """Return the number of the file within the audit log; the first is 1."""
    return int(path.stem.partition(".")[2] or 1)


def list_parts(path: Path) -> list[Path]:
    """Return all existing files of the audit log that begins with this one, in order."""
    first = path.with_name(f"{get_session_id(path)}.jsonl")
    others = (each for each in path.parent.glob(f"{first.stem}.*.jsonl") if each.stem.partition(".")[2].isdecimal())
    found = sorted(others, key=get_part_number)
    return [first, *found] if first.exists() else found


_LINE_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=str)


@dataclass(slots=True)
class AuditVerification:
    """Result of `verify_audit` for one file.

    `problems` make it untrustworthy; `notes` are legitimate gaps (a torn line, a missing end, open calls).
    """

    path: Path
    lines: int = 0
    ended: bool = False
    problems: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    unfinished: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def ok(self) -> bool:
        return not self.problems


def verify_audit(path: Path) -> AuditVerification:
    """Check one audit file line by line: its chain, its numbering, its end, and which calls have a beginning and no end."""
    found = AuditVerification(path)
    previous, first = CHAIN_SEED, 0
    open_calls: dict[str, dict[str, Any]] = {}
    for number, (raw, whole) in enumerate(_iter_raw_lines(path)):
        if not whole:
            found.notes.append(f"the last line ({number + 1}) is torn: the process was killed while writing it")
            break
        if number == 0 and (begun := _parse_line(raw.decode("ascii", "replace"))) is not None and "continues" in begun:
            previous, first, told = _verify_continuation(path, begun)
            found.notes += told
            open_calls |= {id: {"call_id": id, "tool": tool} for id, tool in _get_open_calls(begun).items()}
        line = _verify_line(raw, number=first + number, previous=previous)
        if isinstance(line, str):
            found.problems.append(f"line {number + 1}: {line}")
            break
        previous = line["hash"]
        found.lines += 1
        if line["event"] == "rotated":
            found.ended = True
            if not path.with_name(str(line.get("next"))).exists():
                found.problems.append(f"it goes on in {line.get('next')}, which is not there")
            open_calls = {}
            continue
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


def _get_open_calls(begun: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the calls that were open when a later file began, with their tools."""
    found: object = begun.get("open")
    return found if is_object(found) else {}


def _verify_continuation(path: Path, begun: Mapping[str, Any]) -> tuple[str, int, list[str]]:
    """Return the hash and number that the first line of a later file must follow, and notes on the file before."""
    before = path.with_name(str(begun["continues"]))
    if get_next_part(before) != path or not before.exists():
        number = begun["n"] if isinstance(begun["n"], int) else 0
        return begun["prev"], number, [f"the part before it, {before.name}, is not here any more"]
    last = before.read_bytes().splitlines()[-1:]
    line = _parse_line(last[0].decode("ascii", "replace")) if last else None
    fits = line is not None and line["event"] == "rotated" and isinstance(line["n"], int)
    return (line["hash"], line["n"] + 1, []) if line is not None and fits else (CHAIN_SEED, 0, [])


def _iter_raw_lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    try:
        with path.open("rb") as file:
            for raw in file:
                yield raw, raw.endswith(b"\n")
    except OSError as exc:
        raise HandrailError(f"the audit {path} cannot be read: {exc.strerror}") from exc


def _verify_line(raw: bytes, *, number: int, previous: str) -> dict[str, Any] | str:
    """Return the line as a dict, or a message on what is wrong with it."""
    # What it was written from is ASCII; anything else was changed, and shows as such.
    text = raw.decode("ascii", "replace").rstrip("\n")
    body, found, digest = text.rpartition(HASH_KEY)
    if not found or not digest.endswith('"}'):
        return "it has no hash"
    body += "}"
    if hashlib.sha256(body.encode()).hexdigest() != digest[:-2]:
        return "its text does not fit its hash: it was changed"
    line = _parse_line(text)
    if line is None:
        return "it is not a line of an audit"
    if line["prev"] != previous:
        return "it does not follow the line before: a line was taken out, put in or moved"
    if line["n"] != number:
        return f"it is numbered {line['n']}, not {number}"
    return line


def _parse_line(text: str) -> dict[str, Any] | None:
    """Return the line as a dict with all that `verify_audit` reads, or None if its structure differs."""
    try:
        line: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not is_object(line):
        return None
    named = ("call_id", "tool") if line.get("event") in ("call", "result") else ()
    fits = all(isinstance(line.get(key), str) for key in ("event", "prev", "hash", *named))
    return line if fits and "n" in line else None
