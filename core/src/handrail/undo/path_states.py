"""The state of a path, as far as undo keeps it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from handrail.text import make_visible

__all__ = ["format_path"]

# A file system that counts in seconds shows no fraction. Linux counts in ticks of up to 10 ms.
TICK_NS = 50_000_000
COARSE_NS = 2_100_000_000
SECOND_NS = 1_000_000_000


class PathKind(StrEnum):
    """Kinds of things that a path can name."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    SPECIAL = "special"
    """A pipe, socket or device: noticed, and never kept."""
    LEFT_OUT = "left_out"
    """Not looked into by undo: a repository's own folder, a generated one, another file system."""
    ABSENT = "absent"


class PathState(NamedTuple):
    """State of one path. A tuple, since a snapshot has many thousands of them.

    `mode`: permission bits. `modified` and `changed`: nanoseconds (mtime, ctime). `digest`: sha256 of the contents of a file, empty where they are
    not kept. `target`: where a link points to. `why`: why contents are not kept, or why a folder is left out. `settled` is False where the file
    system's clock could not tell a later change from this state. `listed`: everything in the folder is known.
    """

    kind: PathKind
    mode: int = 0
    size: int = 0
    device: int = 0
    inode: int = 0
    links: int = 1
    modified: int = 0
    changed: int = 0
    digest: bytes = b""
    target: bytes = b""
    why: str = ""
    settled: bool = True
    listed: bool = False

    @property
    def identity(self) -> tuple[int, ...]:
        """Values that differ between two files, and before and after a file was written to."""
        return self.device, self.inode, self.size, self.modified


ABSENT_STATE = PathState(PathKind.ABSENT)
NO_FILE = "a pipe, socket or device"


class PathChange(NamedTuple):
    """Change of one path from one known state to another."""

    path: str
    before: PathState
    after: PathState


KINDS_BY_FORMAT: Mapping[int, PathKind] = {
    stat.S_IFREG: PathKind.FILE,
    stat.S_IFDIR: PathKind.FOLDER,
    stat.S_IFLNK: PathKind.LINK,
}


def build_state(status: os.stat_result, *, now: int, **more: object) -> PathState:
    """Return the state that `stat` reports at time `now` (nanoseconds), without contents."""
    changed = status.st_ctime_ns
    kind = KINDS_BY_FORMAT.get(stat.S_IFMT(status.st_mode), PathKind.SPECIAL)
    return PathState(
        kind,
        stat.S_IMODE(status.st_mode),
        status.st_size,
        status.st_dev,
        status.st_ino,
        status.st_nlink,
        status.st_mtime_ns,
        changed,
        why=NO_FILE if kind is PathKind.SPECIAL else "",
        settled=is_settled(changed, now),
    )._replace(**more)


def is_settled(changed: int, now: int) -> bool:
    """Return True if a change after `now` would be visible in the change time."""
    return now - changed > (COARSE_NS if changed % SECOND_NS == 0 else TICK_NS)


def are_states_alike(one: PathState, other: PathState) -> bool:
    """Return True if the two states are the same for undo."""
    kinds = {one.kind, other.kind}
    if kinds <= {PathKind.FOLDER, PathKind.LEFT_OUT} and PathKind.LEFT_OUT in kinds:
        return (one.device, one.inode) == (other.device, other.inode)
    if len(kinds) > 1:
        return False
    match one.kind:
        case PathKind.FILE:
            known = bool(one.digest and other.digest)
            same = one.digest == other.digest if known else one.identity == other.identity
            return same and one.mode == other.mode
        case PathKind.FOLDER:
            return one.mode == other.mode
        case PathKind.LINK:
            return one.target == other.target
        case PathKind.SPECIAL:
            return (one.device, one.inode, one.mode) == (other.device, other.inode, other.mode)
        case _:
            return True


def is_restorable(state: PathState) -> bool:
    """Return True if the state can be made again from what is kept."""
    if state.kind is PathKind.FILE:
        return bool(state.digest)
    return state.kind in (PathKind.FOLDER, PathKind.LINK, PathKind.ABSENT)


def find_renames(changes: Iterable[PathChange]) -> dict[str, str]:
    """Return which files got another name in their folder: the old name by the new one."""
    changed = list(changes)
    gone = {
        (os.path.dirname(path), before.identity): path
        for path, before, after in changed
        if before.kind is PathKind.FILE and after.kind is PathKind.ABSENT
    }
    return {
        path: gone[os.path.dirname(path), after.identity]
        for path, before, after in changed
        if before.kind is PathKind.ABSENT and after.kind is PathKind.FILE
        if (os.path.dirname(path), after.identity) in gone
    }


def dump_state(state: PathState) -> str:
    """Return the state as one line of JSON."""
    values = (*state[:8], state.digest.hex(), state.target.hex(), *state[10:])
    return json.dumps(values, separators=(",", ":"))


def load_state(text: str) -> PathState:
    """Return the state that `dump_state` wrote."""
    kind, *rest = json.loads(text)
    rest[7], rest[8] = bytes.fromhex(rest[7]), bytes.fromhex(rest[8])
    return PathState(PathKind(kind), *rest)


def format_path(path: str) -> str:
    """Return a path as text that can be printed on one line and sent.

    Bytes that are not UTF-8 are escaped, as are invisible characters, including line ends.
    """
    return format_line(os.fsencode(path).decode("utf-8", "backslashreplace"))


def format_line(text: str) -> str:
    """Return the text on one line, with everything escaped that would be invisible."""
    return make_visible(text).replace("\n", "\\n")
