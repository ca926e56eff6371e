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
from handrail.fs import safe_open
from handrail_files.glob_patterns import GlobError, NamePattern, compile_any_pattern
from handrail_files.read_permission import ReadPermission

MAX_LISTED_ENTRIES = 1_000
# Entries of one folder that are looked at, and seconds for all.
MAX_SCANNED = 1_000_000
LIST_TIMEOUT_S = 20.0
MAX_LISTED_DEPTH = 20
# Patterns of names to leave out.
MAX_IGNORED = 100
ENTRY_KINDS = {
    stat.S_IFDIR: "folder",
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


@dataclass(frozen=True, slots=True)
class FolderScan:
    """One folder: the first of its entries by name, how many there are (without ignored ones), and whether that is all of them."""

    entries: list[dict[str, Any]]
    count: int
    whole: bool


@dataclass(slots=True)
class ListingResult:
    """Listing as collected so far."""

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
        Field(max_length=MAX_IGNORED, description="Names to leave out, as patterns: `*.pyc`, `node_modules`."),
    ] = None,
    depth: Annotated[
        int, Field(ge=1, le=MAX_LISTED_DEPTH, description="1: what is in it; 2: also what is in its folders …")
    ] = 1,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """List a folder: entries with name (from `path` on), kind (file, folder, link …), size in bytes and modified; hidden ones too.

    At most 1,000 entries. Links are not followed.
    """
    root = context.judged_path(path)
    try:
        left_out = compile_any_pattern(ignore) if ignore else None
    except GlobError as exc:
        raise InvalidArguments(f"list_directory: ignore: {exc}") from exc
    permitted = ReadPermission(context)
    found = ListingResult()
    over = monotonic() + LIST_TIMEOUT_S
    waiting: list[tuple[str, int]] = [("", 1)]
    while waiting and found.whole and len(found.entries) < MAX_LISTED_ENTRIES:
        below, level = waiting.pop(0)
        if below and not await permitted.may_read(str(root / below)):
            found.withheld += 1
            continue
        scan = partial(_scan_folder, root / below, left_out, MAX_LISTED_ENTRIES - len(found.entries), over)
        try:
            scanned = await anyio.to_thread.run_sync(scan, abandon_on_cancel=True)
        except (HandrailError, OSError):
            # The folder that the call names must be there; what is below it may be closed, or gone by now.
            if not below:
                raise
            found.unreadable.append(below)
            continue
        folders = _add_scan(found, scanned, below)
        if level < depth:
            waiting += [(name, level + 1) for name in folders]
    return _build_result(found, more=bool(waiting))


def _scan_folder(path: Path, left_out: NamePattern | None, most: int, over: float) -> FolderScan:
    """Return the first entries of the folder by name; only these are described.

    `left_out` matches the names to omit, `most` limits the entries, and `over` is the deadline in monotonic time.
    """
    with safe_open.open_folder(path) as folder:
        count, whole = 0, True

        def names() -> Iterator[os.DirEntry[str]]:
            nonlocal count, whole
            for entry in folder.entries():
                if left_out is not None and left_out.fits(entry.name):
                    continue
                if count >= MAX_SCANNED or (count % 1_000 == 0 and monotonic() > over):
                    whole = False
                    return
                count += 1
                yield entry

        first = nsmallest(most, names(), key=lambda entry: entry.name)
        return FolderScan([_describe_entry(folder, entry) for entry in first], count, whole)


def _describe_entry(folder: safe_open.OpenFolder, entry: os.DirEntry[str]) -> dict[str, Any]:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return {"name": entry.name, "kind": "unknown"}
    kind = ENTRY_KINDS.get(stat.S_IFMT(status.st_mode), "other")
    told: dict[str, Any] = {"name": entry.name, "kind": kind}
    if kind == "file":
        told["size"] = status.st_size
    told["modified"] = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
    if kind == "link":
        told["target"] = _read_link_target(folder, entry.name)
    return told


def _read_link_target(folder: safe_open.OpenFolder, name: str) -> str:
    try:
        return os.readlink(folder.path / name if folder.fd is None else name, dir_fd=folder.fd)
    except OSError:
        return "?"


def _add_scan(found: ListingResult, scanned: FolderScan, below: str) -> list[str]:
    """Add the scan of a folder to the result; return the names of its subfolders, relative to the listed folder."""
    found.total += scanned.count
    found.whole &= scanned.whole
    for entry in scanned.entries:
        entry["name"] = os.path.join(below, entry["name"])
    found.entries += scanned.entries
    return [entry["name"] for entry in scanned.entries if entry["kind"] == "folder"]


def _build_result(found: ListingResult, *, more: bool) -> Mapping[str, Any]:
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
