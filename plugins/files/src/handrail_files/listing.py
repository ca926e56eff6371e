"""The tool `list_directory`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from heapq import nsmallest
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from handrail import HandrailError, InvalidArguments, Read, ToolContext, tool
from handrail.files import opened
from handrail_files.globbing import GlobError, NamePattern, any_of
from handrail_files.permitted import Permitted

MOST = 1_000
# Entries of one folder that are looked at, and seconds for all.
LOOKED_AT = 1_000_000
DEADLINE_S = 20.0
DEEPEST = 20
# Patterns of names to leave out.
MOST_IGNORED = 100
KINDS = {
    stat.S_IFDIR: "folder",
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


@dataclass(frozen=True, slots=True)
class Scanned:
    """One folder: the first of its entries by name, how many there are (without ignored ones), and whether that is all of them."""

    entries: list[dict[str, Any]]
    count: int
    whole: bool


@dataclass(slots=True)
class Listed:
    """What was found so far."""

    entries: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    total: int = 0
    whole: bool = True
    unreadable: list[str] = field(default_factory=list[str])
    withheld: int = 0


@tool(layer="file", title="List a folder", effects=[Read("folder", arg="path")], timeout=30)
async def list_directory(
    path: Annotated[str, Field(min_length=1, description="The folder.")],
    ignore: Annotated[
        list[str] | None,
        Field(max_length=MOST_IGNORED, description="Names to leave out, as patterns: `*.pyc`, `node_modules`."),
    ] = None,
    depth: Annotated[
        int, Field(ge=1, le=DEEPEST, description="1: what is in it; 2: also what is in its folders …")
    ] = 1,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """List a folder: entries with name (from `path` on), kind (file, folder, link …), size in bytes and modified; hidden ones too.

    At most 1,000 entries. Links are not followed.
    """
    root = context.judged_path(path)
    try:
        left_out = any_of(ignore) if ignore else None
    except GlobError as exc:
        raise InvalidArguments(f"list_directory: ignore: {exc}") from exc
    permitted = Permitted(context)
    found = Listed()
    over = monotonic() + DEADLINE_S
    waiting: list[tuple[str, int]] = [("", 1)]
    while waiting and found.whole and len(found.entries) < MOST:
        below, level = waiting.pop(0)
        if below and not await permitted.may_read(str(root / below)):
            found.withheld += 1
            continue
        scan = partial(_scan, root / below, left_out, MOST - len(found.entries), over)
        try:
            scanned = await anyio.to_thread.run_sync(scan, abandon_on_cancel=True)
        except (HandrailError, OSError):
            # The folder that the call names must be there; what is below it may be closed, or gone by now.
            if not below:
                raise
            found.unreadable.append(below)
            continue
        folders = _add(found, scanned, below)
        if level < depth:
            waiting += [(name, level + 1) for name in folders]
    return _told(found, more=bool(waiting))


def _scan(path: Path, left_out: NamePattern | None, most: int, over: float) -> Scanned:
    """The folder's first entries by name; what they are is only asked for these."""
    with opened.listing(path) as folder:
        count, whole = 0, True

        def names() -> Iterator[os.DirEntry[str]]:
            nonlocal count, whole
            for entry in folder.entries():
                if left_out is not None and left_out.fits(entry.name):
                    continue
                if count >= LOOKED_AT or (count % 1_000 == 0 and monotonic() > over):
                    whole = False
                    return
                count += 1
                yield entry

        first = nsmallest(most, names(), key=lambda entry: entry.name)
        return Scanned([_entry(folder, entry) for entry in first], count, whole)


def _entry(folder: opened.Folder, entry: os.DirEntry[str]) -> dict[str, Any]:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return {"name": entry.name, "kind": "unknown"}
    kind = KINDS.get(stat.S_IFMT(status.st_mode), "other")
    told: dict[str, Any] = {"name": entry.name, "kind": kind}
    if kind == "file":
        told["size"] = status.st_size
    told["modified"] = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
    if kind == "link":
        told["target"] = _target(folder, entry.name)
    return told


def _target(folder: opened.Folder, name: str) -> str:
    try:
        return os.readlink(folder.path / name if folder.fd is None else name, dir_fd=folder.fd)
    except OSError:
        return "?"


def _add(found: Listed, scanned: Scanned, below: str) -> list[str]:
    """Take in what a folder holds; the names of its folders, from the listed one on."""
    found.total += scanned.count
    found.whole &= scanned.whole
    for entry in scanned.entries:
        entry["name"] = os.path.join(below, entry["name"])
    found.entries += scanned.entries
    return [entry["name"] for entry in scanned.entries if entry["kind"] == "folder"]


def _told(found: Listed, *, more: bool) -> Mapping[str, Any]:
    truncated = more or not found.whole or found.total > len(found.entries)
    result: dict[str, Any] = {"entries": found.entries, "total": found.total, "truncated": truncated}
    if found.unreadable:
        result["unreadable"] = found.unreadable
    if found.withheld:
        result["withheld"] = found.withheld
    if any(not _is_utf8(entry["name"]) for entry in found.entries):
        result["note"] = (
            "names that are not UTF-8 are shown with U+FFFD; reach such files with a pattern in execute_cli"
        )
    return result


def _is_utf8(name: str) -> bool:
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)
