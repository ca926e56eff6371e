"""The undo store: contents by digest, the last known state of each path, calls, and the changes of each call.

One SQLite database in a folder of Handrail's own, 0700, with large contents as files beside it. All of it is used from one thread of a process;
processes take turns by a lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handrail.config.settings import UndoSettings
from handrail.errors import Downstream
from handrail.fs.app_dirs import ensure_private_folder
from handrail.fs.atomic_write import write_all
from handrail.fs.file_locks import is_held, lock_open_file, try_lock
from handrail.undo.path_states import PathChange, PathKind, PathState, are_states_alike, dump_state, load_state

STORE_FORMAT = 1
# Larger contents are files of their own, which the file system can share with the original.
INLINE_BYTES = 131_072
READ_PIECE_BYTES = 1_048_576
# Seconds that one process waits for another that looks at the disk.
TURN_TIMEOUT_S = 20.0
# What was seen in a workspace is forgotten before calls are, unless it was used so lately.
RECENT_USE_S = 3_600
# Seconds for which no call is forgotten for want of room that changed what no call had made.
SPARED_S = 3_600
DAY_S = 86_400
# Bytes that are left free on the disk.
RESERVED_BYTES = 200_000_000
# Bytes that the journal may have before it is worked into the database.
MAX_JOURNAL_BYTES = 4_000_000

SQL_PRAGMAS = (
    "auto_vacuum=INCREMENTAL",
    "journal_mode=WAL",
    "synchronous=NORMAL",
    "wal_autocheckpoint=0",
    "temp_store=MEMORY",
)
SQL_SCHEMA = """
CREATE TABLE counts(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counts VALUES ('version', 0), ('bytes', 0);
CREATE TABLE contents(id INTEGER PRIMARY KEY, digest BLOB UNIQUE NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL, data BLOB);
CREATE TABLE seen(path BLOB PRIMARY KEY, version INTEGER NOT NULL, kind TEXT NOT NULL, mode INTEGER, size INTEGER, device INTEGER, inode INTEGER,
  links INTEGER, modified INTEGER, changed INTEGER, digest BLOB, target BLOB, why TEXT, settled INTEGER, listed INTEGER) WITHOUT ROWID;
CREATE INDEX seen_version ON seen(version);
CREATE TABLE roots(path BLOB PRIMARY KEY, used REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE calls(id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, call_id TEXT NOT NULL, root_call TEXT NOT NULL, tool TEXT NOT NULL,
  what TEXT NOT NULL, at REAL NOT NULL, ended REAL, owner TEXT NOT NULL, roots TEXT NOT NULL, names TEXT NOT NULL, anywhere INTEGER NOT NULL,
  notes TEXT NOT NULL, undone_by INTEGER);
CREATE TABLE changes(id INTEGER PRIMARY KEY AUTOINCREMENT, call INTEGER NOT NULL, path BLOB NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
  before_digest BLOB, after_digest BLOB);
CREATE INDEX changes_call ON changes(call, path);
CREATE INDEX changes_path ON changes(path);
"""
TABLE_NAMES = ("counts", "contents", "seen", "roots", "calls", "changes")
# What is not in use by anything: neither seen last, nor before or after a change.
UNUSED_CONTENTS_SQL = """
used < ? AND digest NOT IN (SELECT digest FROM seen WHERE digest IS NOT NULL)
AND digest NOT IN (SELECT before_digest FROM changes WHERE before_digest IS NOT NULL)
AND digest NOT IN (SELECT after_digest FROM changes WHERE after_digest IS NOT NULL)
"""
# Calls that are forgotten where there is no room: those that are over for long, and those that changed only what earlier calls had left so.
# The last one stays.
EXPENDABLE_CALLS_SQL = """
id < (SELECT max(id) FROM calls WHERE ended IS NOT NULL) AND ended IS NOT NULL AND (ended < ? OR NOT EXISTS (
  SELECT 1 FROM changes AS one WHERE one.call = calls.id AND json_extract(one.before, '$[0]') != 'absent' AND NOT EXISTS (
    SELECT 1 FROM changes AS other WHERE other.path = one.path AND other.id < one.id
    AND json_extract(other.after, '$[0]', '$[8]', '$[9]') = json_extract(one.before, '$[0]', '$[8]', '$[9]'))))
"""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """Call as it is kept. `names`: the paths that it may change; `anywhere`: also anything in `roots`.

    `ended` is None while it may still change something. `notes` describe what of it is not kept. `root_call` is the
    host's call that it is part of. Times are unix times in seconds. `undone_by`: the record of the call that has undone
    it; negative if that call has begun to, and has not reported that it finished.
    """

    id: int
    session: str
    call_id: str
    root_call: str
    tool: str
    what: str
    at: float
    ended: float | None = None
    owner: str = ""
    roots: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    anywhere: bool = False
    notes: tuple[str, ...] = ()
    undone_by: int | None = None

    @property
    def undone(self) -> bool:
        """True if a call has undone it."""
        return self.undone_by is not None and self.undone_by >= 0


DISK_FULL = "the disk is nearly full"
ALL_USED = "undo.max_bytes is reached"
# Why contents are not kept that could be kept later.
NO_ROOM = frozenset((DISK_FULL, ALL_USED))


class StoreFailure(Downstream):
    """The store of undo cannot be used."""


class StoreFull(Exception):
    """Raised if there is not enough room for more contents; the message says which limit was reached."""


class UndoStore:
    """The database of undo. Made and used in one thread."""

    def __init__(self, folder: Path, settings: UndoSettings) -> None:
        self.folder = ensure_private_folder(folder)
        self.settings = settings
        os.chmod(folder, 0o700)
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._held = 0
        self._turn_began = 0.0
        # Contents that were found again in this turn, and those whose files go when the transaction is done.
        self._needed: set[bytes] = set()
        self._unused: set[bytes] = set()
        # When each workspace was last said to be in use.
        self._used: dict[str, float] = {}
        # True once what was seen in a workspace has been given up: what is known of it in memory counts no longer.
        self.forgot_roots = False
        # While this file is locked, calls that name it as their owner may still change files.
        self.owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._alive = os.open(self._owner_file(self.owner), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            lock_open_file(self._alive)
            self._database = self._opened()
        except BaseException:
            self._let_go()
            raise
        # Bytes of all contents, within a transaction.
        self.bytes_kept = 0
        # Whether there was no room the last time, and when it was last looked for.
        self.is_full = False
        self._searched = 0.0

    def _opened(self) -> sqlite3.Connection:
        file = self.folder / "undo.sqlite3"
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(file, isolation_level=None, timeout=TURN_TIMEOUT_S, check_same_thread=False)
        with self.turn():
            # The first one counts only in a database without any page.
            for pragma in SQL_PRAGMAS:
                database.execute(f"PRAGMA {pragma}").fetchall()
            (found,) = database.execute("PRAGMA user_version").fetchone()
            if found == 0:
                database.executescript(f"BEGIN; {SQL_SCHEMA} PRAGMA user_version={STORE_FORMAT}; COMMIT;")
            elif found != STORE_FORMAT:
                database.close()
                raise StoreFailure(f"the undo store {str(file)!r} was written by another version of Handrail")
        return database

    def close(self) -> None:
        """Close the database; the calls of this process are over."""
        self._database.close()
        self._let_go()

    def _let_go(self) -> None:
        with contextlib.suppress(OSError):
            self._owner_file(self.owner).unlink()
        os.close(self._alive)
        os.close(self._lock)

    def _owner_file(self, owner: str) -> Path:
        return ensure_private_folder(self.folder / "owners") / owner

    # Turns

    @contextmanager
    def turn(self) -> Generator[None]:
        """Keep other processes from looking and recording meanwhile. Raises `StoreFailure` when one of them does not end."""
        if self._held == 0:
            deadline = time.monotonic() + TURN_TIMEOUT_S
            while not try_lock(self._lock):
                if time.monotonic() > deadline:
                    raise StoreFailure("another session holds the undo store and does not let go of it")
                time.sleep(0.005)
        if self._held == 0:
            self._turn_began = time.time()
            self._needed.clear()
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if self._held == 0:
                self._unlock()

    def _unlock(self) -> None:
        import fcntl

        fcntl.flock(self._lock, fcntl.LOCK_UN)

    @contextmanager
    def written(self) -> Generator[sqlite3.Connection]:
        """Run the block in one transaction."""
        self._database.execute("BEGIN IMMEDIATE")
        self.bytes_kept = before = self._count("bytes")
        try:
            yield self._database
            if self.bytes_kept != before:
                self._database.execute("UPDATE counts SET value = ? WHERE name = 'bytes'", (self.bytes_kept,))
            self._database.execute("COMMIT")
        except BaseException:
            self._unused.clear()
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        for digest in self._unused:
            self._file(digest).unlink(missing_ok=True)
        self._unused.clear()

    def settle(self) -> None:
        """Work a long journal into the database, which waits for the disk."""
        with contextlib.suppress(OSError, sqlite3.Error):
            if os.stat(self.folder / "undo.sqlite3-wal").st_size > MAX_JOURNAL_BYTES:
                with self.turn():
                    self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # Contents

    def _count(self, name: str) -> int:
        return self._database.execute("SELECT value FROM counts WHERE name = ?", (name,)).fetchone()[0]

    @property
    def has_room(self) -> bool:
        """True if a tenth of what may be kept is free."""
        return self.bytes_kept < self.settings.max_bytes * 0.9

    def fits(self, size: int) -> bool:
        """Return True if `size` more bytes are within the limit."""
        return self.bytes_kept + size <= self.settings.max_bytes

    def room_for(self, size: int) -> None:
        """Make room, if necessary by giving up the oldest calls.

        Raises `StoreFull` if not enough room can be made.
        """
        if size > INLINE_BYTES:
            self.check_disk(size)
        if not self.fits(size):
            # What there is is in use, and need not be looked through again for each file.
            if self._searched < self._turn_began:
                self._searched = time.time()
                self._give_up(size)
            if not self.fits(size):
                self.is_full = True
                raise StoreFull(ALL_USED)
        self.is_full = False

    def check_disk(self, size: int = 0) -> None:
        """Raise `StoreFull` where the disk has no room for so many bytes and some more."""
        if shutil.disk_usage(self.folder).free < size + RESERVED_BYTES:
            self.is_full = True
            raise StoreFull(DISK_FULL)

    def put(self, digest: bytes, data: bytes) -> None:
        """Keep small contents. Within a transaction."""
        self._insert(digest, len(data), data)

    def put_file(self, digest: bytes, size: int, draft: Path) -> None:
        """Keep a file of the store's own folder as contents. Within a transaction."""
        if self._insert(digest, size, None):
            self._unused.discard(digest)
            draft.replace(self._file(digest))
        else:
            draft.unlink()

    def _insert(self, digest: bytes, size: int, data: bytes | None) -> bool:
        """Take contents down; False where they are kept already, which are then not given up in this turn."""
        done = self._database.execute(
            "INSERT OR IGNORE INTO contents(digest, size, used, data) VALUES (?, ?, ?, ?)",
            (digest, size, self._turn_began, data),
        )
        if done.rowcount == 0:
            self._needed.add(digest)
            return False
        self.bytes_kept += size
        return True

    def has(self, digest: bytes) -> bool:
        """Return True if these contents are kept."""
        return self._database.execute("SELECT 1 FROM contents WHERE digest = ?", (digest,)).fetchone() is not None

    def draft(self) -> Path:
        """Return a new path in the store for contents that are being copied."""
        return ensure_private_folder(self.folder / "contents") / f"draft-{self.owner}-{secrets.token_hex(4)}"

    def _file(self, digest: bytes) -> Path:
        name = digest.hex()
        return ensure_private_folder(self.folder / "contents" / name[:2]) / name[2:]

    def contents(self, digest: bytes) -> bytes | None:
        """Return the contents, or None if they are not kept anymore or are damaged."""
        found = self._database.execute("SELECT data FROM contents WHERE digest = ?", (digest,)).fetchone()
        if found is None:
            return None
        data: bytes | None = found[0]
        if data is None:
            try:
                data = self._file(digest).read_bytes()
            except OSError:
                return None
        return data if hashlib.sha256(data).digest() == digest else None

    def write_contents(self, digest: bytes, descriptor: int) -> bool:
        """Write the contents to an open new file; False where they are not kept any more, or are damaged."""
        found = self._database.execute("SELECT data FROM contents WHERE digest = ?", (digest,)).fetchone()
        if found is None:
            return False
        if found[0] is not None:
            write_all(descriptor, found[0])
            return hashlib.sha256(found[0]).digest() == digest
        seen = hashlib.sha256()
        try:
            with self._file(digest).open("rb") as file:
                while piece := file.read(READ_PIECE_BYTES):
                    seen.update(piece)
                    write_all(descriptor, piece)
        except FileNotFoundError:
            return False
        return seen.digest() == digest

    # What was seen

    def changed_elsewhere(self) -> int:
        """Return a number that differs from the last one if another process has written since."""
        return self._database.execute("PRAGMA data_version").fetchone()[0]

    def version(self) -> int:
        """Return how often states were written."""
        return self._count("version")

    def seen(self, path: str) -> PathState | None:
        """Return what was last seen at a path; None if it was never looked at."""
        return next((state for _, state in self._states("path = ?", (os.fsencode(path),))), None)

    def seen_below(self, root: str) -> Iterator[tuple[str, PathState]]:
        """Yield what was last seen at each path below a directory."""
        return self._states("path > ? AND path < ?", _path_range_below(root))

    def seen_since(self, version: int) -> Iterator[tuple[str, PathState]]:
        """Yield what was written after that version."""
        return self._states("version > ?", (version,))

    def _states(self, where: str, given: Sequence[object]) -> Iterator[tuple[str, PathState]]:
        columns = (
            "path, kind, mode, size, device, inode, links, modified, changed, digest, target, why, settled, listed"
        )
        rows: Iterable[Any] = self._database.execute(f"SELECT {columns} FROM seen WHERE {where}", tuple(given))
        for row in rows:
            state = PathState(
                PathKind(row[1]),
                mode=row[2],
                size=row[3],
                device=row[4],
                inode=row[5],
                links=row[6],
                modified=row[7],
                changed=row[8],
                digest=row[9] or b"",
                target=row[10] or b"",
                why=row[11],
                settled=bool(row[12]),
                listed=bool(row[13]),
            )
            yield os.fsdecode(row[0]), state

    def write_states(self, states: Mapping[str, PathState]) -> int:
        """Record what was seen. Returns its version. Within a transaction."""
        database = self._database
        database.execute("UPDATE counts SET value = value + 1 WHERE name = 'version'")
        version = self.version()
        database.executemany(
            f"INSERT OR REPLACE INTO seen VALUES ({', '.join('?' * 15)})",
            (
                (
                    os.fsencode(path),
                    version,
                    state.kind.value,
                    *state[1:8],
                    state.digest or None,
                    state.target,
                    *state[10:],
                )
                for path, state in states.items()
            ),
        )
        return version

    def use_root(self, root: str) -> None:
        """Say that a workspace is in use. Within a transaction."""
        now = time.time()
        if now - self._used.get(root, 0) < RECENT_USE_S / 4:
            return
        self._used[root] = now
        self._database.execute("INSERT OR REPLACE INTO roots VALUES (?, ?)", (os.fsencode(root), now))

    def has_root(self, root: str) -> bool:
        """Return True if what was seen in a workspace has not been given up."""
        return self._database.execute("SELECT 1 FROM roots WHERE path = ?", (os.fsencode(root),)).fetchone() is not None

    def forget_states(self, paths: Sequence[str]) -> None:
        """Forget what was seen at these paths and below them. Within a transaction."""
        for path in paths:
            self._database.execute("DELETE FROM seen WHERE path = ?", (os.fsencode(path),))
            self._database.execute("DELETE FROM seen WHERE path > ? AND path < ?", _path_range_below(path))

    # Calls

    def begin_call(self, record: CallRecord) -> int:
        """Record a call before it acts. Returns its id. Within a transaction."""
        inserted = self._database.execute(
            "INSERT INTO calls(session, call_id, root_call, tool, what, at, owner, roots, names, anywhere, notes)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                record.session,
                record.call_id,
                record.root_call,
                record.tool,
                _escape_text(record.what),
                record.at,
                self.owner,
                json.dumps(record.roots),
                json.dumps(record.names),
                record.anywhere,
                json.dumps([_escape_text(note) for note in record.notes]),
            ),
        )
        assert inserted.lastrowid is not None
        return inserted.lastrowid

    def name_more(self, call: int, names: Sequence[str]) -> None:
        """Record all paths that a call may change."""
        self._database.execute("UPDATE calls SET names = ? WHERE id = ?", (json.dumps(names), call))

    def end_call(self, call: int, *, notes: Sequence[str] = ()) -> None:
        """Record that a call is over; a call that has changed nothing is forgotten. Within a transaction."""
        database = self._database
        if database.execute("SELECT 1 FROM changes WHERE call = ?", (call,)).fetchone() is None:
            database.execute("DELETE FROM calls WHERE id = ?", (call,))
            return
        database.execute("UPDATE calls SET ended = ? WHERE id = ?", (time.time(), call))
        self.add_notes(call, notes)

    def add_notes(self, call: int, notes: Sequence[str]) -> None:
        """Say more of a call. Within a transaction."""
        found = self._database.execute("SELECT notes FROM calls WHERE id = ?", (call,)).fetchone()
        if found is not None and notes:
            told = dict.fromkeys((*json.loads(found[0]), *map(_escape_text, notes)))
            self._database.execute("UPDATE calls SET notes = ? WHERE id = ?", (json.dumps([*told]), call))

    def add_changes(self, call: int, changes: Iterable[PathChange]) -> None:
        """Take down what became of paths while the call ran. What it does to one path in two steps is one change. Within a transaction."""
        for change in changes:
            path, before, after = os.fsencode(change.path), dump_state(change.before), dump_state(change.after)
            digests = change.before.digest or None, change.after.digest or None
            known = self._database.execute(
                "SELECT id, before, after, before_digest FROM changes WHERE call = ? AND path = ? ORDER BY id DESC LIMIT 1",
                (call, path),
            ).fetchone()
            if known is None or not are_states_alike(load_state(known[2]), change.before):
                self._database.execute(
                    "INSERT INTO changes(call, path, before, after, before_digest, after_digest) VALUES (?, ?, ?, ?, ?, ?)",
                    (call, path, before, after, *digests),
                )
            elif are_states_alike(load_state(known[1]), change.after):
                self._database.execute("DELETE FROM changes WHERE id = ?", (known[0],))
            else:
                self._database.execute(
                    "UPDATE changes SET after = ?, after_digest = ? WHERE id = ?", (after, digests[1], known[0])
                )

    def open_calls(self) -> list[CallRecord]:
        """Return calls that may still change files, or were never ended because their process was killed."""
        return self._calls("ended IS NULL ORDER BY id", ())

    def is_alive(self, record: CallRecord) -> bool:
        """Return True if the process that made the call still exists."""
        return record.owner == self.owner or is_held(self._owner_file(record.owner))

    def call(self, id: int) -> CallRecord | None:
        """Return one call, or None if it is not kept."""
        return next(iter(self._calls("id = ?", (id,))), None)

    def calls(self, *, most: int, before: int | None = None) -> list[CallRecord]:
        """Return the newest calls that changed files, newest first."""
        if before is None:
            return self._calls("1 ORDER BY id DESC LIMIT ?", (most,))
        return self._calls("id < ? ORDER BY id DESC LIMIT ?", (before, most))

    def calls_named(self, call_id: str, session: str | None) -> list[CallRecord]:
        """Return the calls that a host's call consists of, by its id, newest first."""
        if session is None:
            return self._calls("root_call = ? ORDER BY id DESC", (call_id,))
        return self._calls("root_call = ? AND session = ? ORDER BY id DESC", (call_id, session))

    def changes_of(self, calls: Sequence[int]) -> list[tuple[int, PathChange]]:
        """Return what some calls changed, in order, each change with its number."""
        marks = ", ".join("?" * len(calls))
        rows = self._database.execute(
            f"SELECT id, path, before, after FROM changes WHERE call IN ({marks}) ORDER BY id", tuple(calls)
        )
        return [(row[0], PathChange(os.fsdecode(row[1]), load_state(row[2]), load_state(row[3]))) for row in rows]

    def changed_later(self, path: str, *, after: int) -> list[CallRecord]:
        """Return the calls that changed a path after the change with that number."""
        where = "id IN (SELECT call FROM changes WHERE path = ? AND id > ?) ORDER BY id"
        return self._calls(where, (os.fsencode(path), after))

    def mark_undone(self, calls: Sequence[int], by: int | None) -> None:
        """Say which call has undone these; None: they are done again. Within a transaction."""
        self._database.executemany("UPDATE calls SET undone_by = ? WHERE id = ?", [(by, call) for call in calls])

    def half_undone(self) -> list[CallRecord]:
        """Return the calls that another call has begun to undo, newest first."""
        return self._calls("undone_by < 0 ORDER BY id DESC", ())

    def undone_by(self, calls: Sequence[int]) -> list[int]:
        """Return the ids of the calls that these have undone."""
        marks = ", ".join("?" * len(calls))
        return [
            row[0] for row in self._database.execute(f"SELECT id FROM calls WHERE undone_by IN ({marks})", tuple(calls))
        ]

    def _calls(self, where: str, given: Sequence[object]) -> list[CallRecord]:
        columns = (
            "id, session, call_id, root_call, tool, what, at, ended, owner, roots, names, anywhere, notes, undone_by"
        )
        rows: list[Any] = self._database.execute(f"SELECT {columns} FROM calls WHERE {where}", tuple(given)).fetchall()
        return [_build_record(row) for row in rows]

    # Bounds

    @property
    def needs_pruning(self) -> bool:
        """True if that was not done for an hour."""
        try:
            return time.time() - (self.folder / "pruned").stat().st_mtime > RECENT_USE_S
        except OSError:
            return True

    def prune(self) -> None:
        """Take out what is too old, what nothing refers to, and what killed processes left."""
        (self.folder / "pruned").touch(mode=0o600)
        oldest = time.time() - self.settings.keep_days * DAY_S
        with self.turn():
            with self.written() as database:
                database.execute("DELETE FROM calls WHERE ended IS NOT NULL AND ended < ?", (oldest,))
                database.execute("DELETE FROM changes WHERE call NOT IN (SELECT id FROM calls)")
                self._forget_roots(before=oldest)
                self._remove_unused()
                if self.bytes_kept > self.settings.max_bytes:
                    self._give_up(0)
            self._remove_strays()
            # One step frees one page; only a script takes all of them.
            self._database.executescript("PRAGMA incremental_vacuum")

    def _give_up(self, size: int) -> None:
        """Make room for `size` bytes, within a transaction.

        What was seen in workspaces that have not been used recently is forgotten first, then the oldest expendable
        calls.
        """
        wanted = max(self.settings.max_bytes - size, 0)
        self._remove_unused()
        if self.bytes_kept > wanted:
            self._forget_roots(before=time.time() - RECENT_USE_S)
            self._remove_unused()
        while self.bytes_kept > wanted:
            rows: list[Any] = self._database.execute(
                f"SELECT id FROM calls WHERE {EXPENDABLE_CALLS_SQL} ORDER BY id LIMIT 20", (time.time() - SPARED_S,)
            ).fetchall()
            if not rows:
                break
            # That a call has left a path so is known on, without the contents.
            self._database.executemany(
                "UPDATE changes SET before_digest = NULL, after_digest = NULL WHERE call = ?", rows
            )
            self._database.executemany("DELETE FROM calls WHERE id = ?", rows)
            self._remove_unused()

    def _forget_roots(self, *, before: float) -> None:
        """Forget what was seen in workspaces that were not used since, unless one in use lies in them or around them, or a call is open there."""
        rows = self._database.execute("SELECT path, used FROM roots ORDER BY used").fetchall()
        busy = [root for record in self.open_calls() for root in record.roots]
        busy += [os.fsdecode(path) for path, used in rows if used >= before]
        for path, used in rows:
            root = os.fsdecode(path)
            if used >= before or any(_is_overlapping(root, other) for other in busy):
                continue
            self.forget_states([root])
            self._database.execute("DELETE FROM roots WHERE path = ?", (path,))
            self._used.pop(root, None)
            self.forgot_roots = True

    def _remove_unused(self) -> None:
        # What came in this turn may be of a look that has not been taken down yet. Nobody else is in the middle of one.
        now = time.time()
        self._database.executemany(
            "UPDATE contents SET used = ? WHERE digest = ?", [(now, each) for each in self._needed]
        )
        self._needed.clear()
        given = (self._turn_began,)
        unused: list[Any] = self._database.execute(
            f"SELECT id, digest, size, data IS NULL FROM contents WHERE {UNUSED_CONTENTS_SQL}", given
        ).fetchall()
        self._database.executemany("DELETE FROM contents WHERE id = ?", [(row[0],) for row in unused])
        self.bytes_kept -= sum(row[2] for row in unused)
        self._unused |= {row[1] for row in unused if row[3]}

    def _remove_strays(self) -> None:
        """Remove marks of processes that are gone, and files that they began."""
        for file in (self.folder / "owners").iterdir():
            if file.name != self.owner and not is_held(file):
                file.unlink(missing_ok=True)
        known = {row[0].hex() for row in self._database.execute("SELECT digest FROM contents WHERE data IS NULL")}
        # Nobody else copies anything now: it is our turn.
        for file in list(ensure_private_folder(self.folder / "contents").rglob("*")):
            if file.is_file() and f"{file.parent.name}{file.name}" not in known:
                file.unlink(missing_ok=True)


def _build_record(row: Sequence[Any]) -> CallRecord:
    roots, names, notes = (tuple(json.loads(row[column])) for column in (9, 10, 12))
    return CallRecord(*row[:9], roots=roots, names=names, anywhere=bool(row[11]), notes=notes, undone_by=row[13])


def _path_range_below(root: str) -> tuple[bytes, bytes]:
    """Between which paths everything below a folder is, in the order of bytes."""
    start = os.fsencode(root.rstrip("/"))
    return start + b"/", start + b"0"


def _is_overlapping(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _escape_text(text: str) -> str:
    """Return the text with those characters escaped that a database cannot store."""
    return text.encode("utf-8", "backslashreplace").decode()
