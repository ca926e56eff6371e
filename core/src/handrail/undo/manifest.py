"""The last known state of the disk, as the store has it, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from handrail.undo.path_states import ABSENT_STATE, PathKind, PathState
from handrail.undo.store import UndoStore


class DiskManifest:
    """States by folder and name. Everything in it is in the store, too, or is written there in the same turn."""

    def __init__(self, store: UndoStore) -> None:
        self._store = store
        self.folders: dict[str, dict[str, PathState]] = {}
        # Files that have to be looked at again though nothing tells of a change: the clock was too coarse, or another name leads to them.
        self.unsettled: set[str] = set()
        self.linked: set[str] = set()
        # Files whose contents are not kept, and folders that could not be read or are left out.
        self.not_kept: set[str] = set()
        self._roots: set[str] = set()
        self._version = 0
        self._elsewhere = -1

    def refresh(self) -> None:
        """Take over what other processes have written. In a turn."""
        elsewhere = self._store.changed_elsewhere()
        if elsewhere == self._elsewhere:
            return
        self._elsewhere = elsewhere
        for root in [root for root in self._roots if not self._store.has_root(root)]:
            self._forget_below(root)
            self._roots.discard(root)
        if self._roots:
            version = self._store.version()
            for path, state in list(self._store.seen_since(self._version)):
                if any(path == root or path.startswith(f"{root}/") for root in self._roots):
                    self._put(path, state)
            self._version = version

    def load(self, root: str) -> None:
        """Know what the store knows of a workspace. In a turn, after `refresh`."""
        if self.is_loaded(root):
            return
        if not self._roots:
            self._version = self._store.version()
        if self._store.has_root(root):
            if (state := self._store.seen(root)) is not None:
                self._put(root, state)
            for path, below in self._store.seen_below(root):
                self._put(path, below)
        self._roots.add(root)

    def is_loaded(self, path: str) -> bool:
        """Return True if the store knows nothing more about the path than the manifest."""
        return any(path == root or path.startswith(f"{root}/") for root in self._roots)

    def get(self, path: str) -> PathState | None:
        """Return what was last seen at a path; None if it was never looked at."""
        state = self._known(path)
        return self._store.seen(path) if state is None and not self.is_loaded(path) else state

    def default_in(self, folder: str) -> PathState | None:
        """Return the state of names in a folder that have no entry: `ABSENT_STATE` where the folder was listed, else None."""
        above = self._known(folder)
        return ABSENT_STATE if above is not None and _is_fully_known(above) else None

    def _known(self, path: str) -> PathState | None:
        folder, _, name = path.rpartition("/")
        entries = self.folders.get(folder)
        if entries is not None and (state := entries.get(name)) is not None:
            return state
        above = self._known(folder) if folder else None
        return ABSENT_STATE if above is not None and _is_fully_known(above) else None

    def below(self, path: str) -> Iterator[tuple[str, PathState]]:
        """Everything that is known below a folder, without what is known not to be there."""
        for name, state in self.folders.get(path, {}).items():
            if state.kind is PathKind.ABSENT:
                continue
            at = f"{path}/{name}"
            yield at, state
            if state.kind is PathKind.FOLDER:
                yield from self.below(at)

    def take(self, states: Mapping[str, PathState]) -> None:
        """Know this from now on, and write it down. In a transaction."""
        for path, state in states.items():
            self._put(path, state)
        self._version = self._store.write_states(states)

    def _put(self, path: str, state: PathState) -> None:
        folder, _, name = path.rpartition("/")
        entries = self.folders.setdefault(folder, {})
        before = entries.get(name)
        if before is not None and before.kind is PathKind.FOLDER and state.kind is not PathKind.FOLDER:
            self._forget_below(path)
        above = self._known(folder) if state.kind is PathKind.ABSENT and folder else None
        if above is not None and _is_fully_known(above):
            entries.pop(name, None)
        else:
            entries[name] = state
        if state.kind is PathKind.FOLDER:
            self.folders.setdefault(path, {})
        _set_mark(self.unsettled, path, not state.settled and state.kind in (PathKind.FILE, PathKind.FOLDER))
        _set_mark(self.linked, path, state.links > 1 and state.kind is PathKind.FILE)
        _set_mark(self.not_kept, path, bool(state.why))

    def forget(self, paths: Iterable[str]) -> None:
        """Forget everything about these paths."""
        for path in paths:
            folder, _, name = path.rpartition("/")
            self._forget_below(path)
            self.folders.get(folder, {}).pop(name, None)
            self._unmark(path)

    def _forget_below(self, path: str) -> None:
        for name, state in self.folders.pop(path, {}).items():
            at = f"{path}/{name}"
            self._unmark(at)
            if state.kind is PathKind.FOLDER:
                self._forget_below(at)

    def _unmark(self, path: str) -> None:
        for marked in (self.unsettled, self.linked, self.not_kept):
            marked.discard(path)


def _is_fully_known(state: PathState) -> bool:
    """Return True if everything that exists below this is known."""
    return state.listed if state.kind is PathKind.FOLDER else state.kind is not PathKind.LEFT_OUT


def _set_mark(marked: set[str], path: str, wanted: bool) -> None:
    if wanted:
        marked.add(path)
    else:
        marked.discard(path)
