"""Small files in the state directory that tell a user's sessions about each other's commands in overlapping workspaces.

There are four kinds of records: a running sandboxed command, a call during which no other sandboxed command runs (see
`HostRun`), a session whose user is being prompted about such a call, and a workspace in which sandboxed commands have
run since it was last searched completely for leftovers. A writer of a record reads the others' records under the same
lock, so of two commands that start at the same moment at least one knows of the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from handrail.errors import NoSandbox
from handrail.fs.app_dirs import ensure_private_folder, hold_file_lock
from handrail.fs.file_locks import try_lock
from handrail.undo.workspace_roots import is_inside, roots_overlap
from handrail.workers import processes

RUNS_FOLDER = "sandboxed"
RUN_POLL_S = 0.05

RunKind = Literal["sandboxed", "host", "asking", "unsearched"]
FileIdentities = Mapping[str, tuple[int, int]]
SET_FIELDS = ("obeyed", "missing")
SETUP_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class SharedRun:
    """A record. `since_ns`: when it began, in nanoseconds of unix time. `pid` and `started` name its process as in `processes.ProcessInfo`.

    `kept` and `masked`: the places that a sandboxed command is kept from changing or from reading, with their device and inode. `obeyed`: the
    places that programs run or obey unasked, as they were when it began; `missing`: those that were not there. `owner` is the session's own name
    for itself. `alone`: no other call of the kind "host" runs beside it.
    """

    kind: RunKind = "sandboxed"
    name: str = ""
    owner: str = ""
    roots: tuple[str, ...] = ()
    since_ns: int = 0
    pid: int = 0
    started: int = 0
    kept: FileIdentities = field(default_factory=dict[str, tuple[int, int]])
    masked: FileIdentities = field(default_factory=dict[str, tuple[int, int]])
    obeyed: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    alone: bool = False

    @property
    def is_alive(self) -> bool:
        """True if its process is running."""
        return processes.is_alive(self.pid, self.started)

    def replaced(self) -> list[str]:
        """Return what it was kept from changing and is another file by now."""
        return list(_iter_replaced_paths(self.kept))

    @property
    def is_detached(self) -> bool:
        """True if something that it was kept from is another file by now."""
        return any(_iter_replaced_paths(self.kept)) or any(_iter_replaced_paths(self.masked))


class SharedRuns:
    """The records of one person, as one session sees and writes them. `state` is the person's state directory.

    Where the records cannot be written or read, `NoSandbox` is raised: nothing may run in a sandbox that others would not know of.
    """

    def __init__(self, state: Path, roots: Sequence[Path]) -> None:
        self._folder = state / RUNS_FOLDER
        self._roots = tuple(map(str, roots))
        self._owner = uuid.uuid4().hex
        self._names: dict[object, str] = {}

    def begin_command(self, key: object, pid: int, about: SharedRun) -> bool:
        """Record a sandboxed command of this session with what `about` says of it; return True if another session runs one on the host."""
        run = self._run("sandboxed", pid, about)
        with self._changing():
            self._write(run)
            self._names[key] = run.name
            mark = SharedRun("unsearched", self._mark, roots=self._roots, since_ns=run.since_ns)
            if not self._file(mark.kind, mark.name).exists():
                self._write(mark)
            return any(other.owner != self._owner for other in self._hosts())

    def end_command(self, key: object) -> None:
        """Remove the record of a sandboxed command that is over and whose leftovers were searched for."""
        if (name := self._names.pop(key, None)) is not None:
            self._file("sandboxed", name).unlink(missing_ok=True)

    def begin_host_run(self, key: object, *, alone: bool = False) -> list[SharedRun] | None:
        """Record a command on the host; return the sandboxed ones of other sessions, also those that ended with their session and were
        not searched, and the workspaces that were not.

        None, and nothing is recorded, while another session runs something that one of the two may not run beside.
        """
        run = self._run("host", os.getpid(), SharedRun(alone=alone))
        try:
            with self._changing():
                if any(other.owner != self._owner and (alone or other.alone) for other in self._hosts()):
                    return None
                # Where this cannot be written, no sandboxed command begins: it would have to be written down, too.
                with contextlib.suppress(OSError):
                    self._write(run)
                    self._names[key] = run.name
                return [*self._others("sandboxed"), *self._read("unsearched")]
        except NoSandbox:
            if self._folder.exists():
                raise
            return []

    def begin_alone(self, key: object) -> list[SharedRun] | None:
        """Do the same for a call that no other runs beside; None also while another session sets up a sandbox."""
        descriptor = self._setup_lock()
        if descriptor is None:
            return None
        try:
            return self.begin_host_run(key, alone=True)
        finally:
            os.close(descriptor)

    def begin_question(self, key: object) -> None:
        """Record that this session's commands are held while the user is prompted."""
        if not self._folder.is_dir():
            return
        run = self._run("asking", os.getpid(), SharedRun())
        with self._changing(), contextlib.suppress(OSError):
            self._write(run)
            self._names[key, "asking"] = run.name

    def asking(self) -> list[int]:
        """Return the process ids of the sandboxed commands that other sessions hold while the user is prompted."""
        if not self._folder.is_dir():
            return []
        with self._changing():
            owners = {run.owner for run in self._others("asking") if run.is_alive}
            return [run.pid for run in self._others("sandboxed") if run.owner in owners] if owners else []

    def end_host_run(self, key: object) -> None:
        """Remove the records of a call on the host, and of the question about it."""
        for named, kind in ((key, "host"), ((key, "asking"), "asking")):
            if (name := self._names.pop(named, None)) is not None:
                self._file(kind, name).unlink(missing_ok=True)

    def has_host_run(self) -> bool:
        """Return True if some session runs a command on the host in this workspace."""
        if not self._folder.is_dir():
            return False
        with self._changing():
            return bool(self._hosts())

    def runs_alone(self) -> bool:
        """Return True if another session runs something that no sandboxed command may begin beside."""
        if not self._folder.is_dir():
            return False
        with self._changing():
            return any(run.alone and run.owner != self._owner for run in self._hosts())

    @contextmanager
    def setting_up(self) -> Generator[None]:
        """Keep other sessions from setting up a sandbox while the block runs.

        A command in such a sandbox could replace what is being bound here. Other sessions start no call that runs alone
        either: it would be paused for a command that waits for it to end. Raises `NoSandbox` on timeout.
        """
        ends = time.monotonic() + SETUP_TIMEOUT_S
        while (descriptor := self._setup_lock()) is None:
            if time.monotonic() > ends:
                raise NoSandbox(
                    "other sessions do not finish setting up their sandboxes, or with git",
                    hint="try again, or end them",
                )
            time.sleep(RUN_POLL_S / 50)
        try:
            yield
        finally:
            os.close(descriptor)

    def _setup_lock(self) -> int | None:
        """Return the open lock of those who set a sandbox up; None while it is another's, or another session runs something alone."""
        try:
            file = ensure_private_folder(self._folder) / ".setup.lock"
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            raise self._unusable(exc) from exc
        try:
            if try_lock(descriptor) and not self.runs_alone():
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return None

    def others(self) -> list[SharedRun]:
        """Return the sandboxed commands that run in other sessions."""
        if not self._folder.is_dir():
            return []
        with self._changing():
            return [other for other in self._others("sandboxed") if other.is_alive]

    def searched(self, since_ns: int) -> None:
        """Remove the records of a workspace that was searched completely.

        If a sandboxed command still runs in it, the next search covers changes from `since_ns` on.
        """
        with self._changing():
            running = list(self._read("sandboxed"))
            for run in [run for run in running if run.owner != self._owner and not run.is_alive]:
                if _is_run_within(run, self._roots):
                    self._file(run.kind, run.name).unlink(missing_ok=True)
                    running.remove(run)
            for mark in self._read("unsearched"):
                if _is_run_within(mark, self._roots) and running:
                    self._write(replace(mark, since_ns=max(mark.since_ns, since_ns)))
                elif _is_run_within(mark, self._roots):
                    self._file(mark.kind, mark.name).unlink(missing_ok=True)

    def when_free(self, then: Callable[[], None]) -> None:
        """Call `then` in a thread once no session runs a command on the host in this workspace."""

        def wait() -> None:
            while self.has_host_run():
                time.sleep(RUN_POLL_S)
            then()

        threading.Thread(target=wait, name="handrail-host-runs", daemon=True).start()

    def close(self) -> None:
        """Remove the records of this session's commands on the host. Readers see of sandboxed ones whether they still run."""
        for name in self._names.values():
            for kind in ("host", "asking"):
                self._file(kind, name).unlink(missing_ok=True)

    def _hosts(self) -> list[SharedRun]:
        found = self._read("host")
        for gone in [run for run in found if not run.is_alive]:
            self._file(gone.kind, gone.name).unlink(missing_ok=True)
        return [run for run in found if run.is_alive]

    @property
    def _mark(self) -> str:
        return hashlib.sha256("\0".join(self._roots).encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def _run(self, kind: RunKind, pid: int, about: SharedRun) -> SharedRun:
        found = processes.read_process(pid)
        return replace(
            about,
            kind=kind,
            name=uuid.uuid4().hex,
            owner=self._owner,
            roots=self._roots,
            since_ns=time.time_ns(),
            pid=pid,
            started=found.started if found is not None else 0,
        )

    def _others(self, kind: RunKind) -> Iterator[SharedRun]:
        return (run for run in self._read(kind) if run.owner != self._owner)

    def _read(self, kind: RunKind) -> list[SharedRun]:
        """Return the records of a kind whose workspaces overlap this session's."""
        found = (_load_run(file) for file in self._folder.glob(f"{kind}-*.json"))
        return [run for run in found if run is not None and roots_overlap(run.roots, self._roots)]

    def _write(self, run: SharedRun) -> None:
        file = self._file(run.kind, run.name)
        values = {each.name: getattr(run, each.name) for each in fields(run)}
        values |= {name: sorted(values[name]) for name in SET_FIELDS}
        descriptor = os.open(
            ensure_private_folder(self._folder) / f".{file.name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
        )
        # It is of no use after the machine has gone down: nothing waits for the disk.
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as opened:
            opened.write(json.dumps(values))
        self._file("." + run.kind, run.name).replace(file)

    def _file(self, kind: str, name: str) -> Path:
        return self._folder / f"{kind}-{name}.json"

    @contextmanager
    def _changing(self) -> Generator[None]:
        try:
            with hold_file_lock(self._folder / "runs"):
                yield
        except (OSError, ValueError, TypeError) as exc:
            raise self._unusable(exc) from exc

    def _unusable(self, exc: Exception) -> NoSandbox:
        return NoSandbox(
            f"what runs in sandboxes cannot be written down or read in {str(self._folder)!r}: {exc}",
            hint="make room there and give the directory permission to be written to; remove what is not Handrail's",
        )


def _is_run_within(run: SharedRun, roots: Sequence[str]) -> bool:
    return all(is_inside(root, roots) for root in run.roots)


def _load_run(file: Path) -> SharedRun | None:
    """Return the record in a file, or None if the file is gone.

    Raises ValueError or TypeError if it does not contain a record.
    """
    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return None
    values: dict[str, Any] = json.loads(text)
    for name in ("kept", "masked"):
        values[name] = {path: (device, inode) for path, (device, inode) in values.get(name, {}).items()}
    for name in SET_FIELDS:
        values[name] = frozenset(values.get(name, ()))
    values["roots"] = tuple(values.get("roots", ()))
    # Another version of Handrail may say more.
    return SharedRun(**{each.name: values[each.name] for each in fields(SharedRun) if each.name in values})


def _iter_replaced_paths(known: FileIdentities) -> Iterator[str]:
    for path, identity in known.items():
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if (status.st_dev, status.st_ino) != identity:
                yield path
