"""Putting files back as a plan says: all of it, or nothing.

Each path is reached from the root through no link, and is looked at once more before it is touched. Each step is written down with what takes
it back.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from handrail.errors import Downstream, HandrailError
from handrail.fs import file_metadata
from handrail.fs.atomic_write import create_sibling_name, open_draft
from handrail.fs.dirfd_walk import (
    NO_FOLLOW,
    PATH_FLAGS,
    SAFE_OPEN_FLAGS,
    HeldFolder,
    hold_parent_folder,
    path_exchanged_error,
    read_status,
)
from handrail.undo.path_states import ABSENT_STATE, PathKind, PathState, format_path
from handrail.undo.plans import PathPlan
from handrail.undo.store import UndoStore

# An owner who may make and remove names in a folder.
OWNER_CHANGES = stat.S_IWUSR | stat.S_IXUSR
NAME_ONLY_FLAGS = PATH_FLAGS & ~getattr(os, "O_DIRECTORY", 0) | NO_FOLLOW
# What a step is taken back by.
ReverseStep = Callable[[], None]
# A device and an inode.
InodeKey = tuple[int, int]


class PathRestorer:
    """Restorer of paths.

    `left`: directories that stay because they contain something else. `linked`: paths by the inode of a file with
    several hard links. `through`: files with several hard links that were written in place; the change shows under each
    of their names.
    """

    def __init__(self, store: UndoStore, linked: Mapping[InodeKey, str]) -> None:
        self.left: list[str] = []
        self.through: list[str] = []
        self._store = store
        self._linked = dict(linked)
        self._steps: list[tuple[str, ReverseStep]] = []
        # What is at each path that is changed, before anything is.
        self._present: dict[str, PathState] = {}
        # The modes that folders are given at the end, which were opened for writing meanwhile.
        self._modes: dict[str, int] = {}

    def apply(self, plans: Sequence[PathPlan], *, check: Callable[[], None] = lambda: None) -> None:
        """Do what the plans say. `check` is called before each step and may end it. On an error everything is put back as it was before."""
        acting = sorted((plan for plan in plans if plan.acts), key=lambda plan: plan.path)
        self._present = {plan.path: plan.now for plan in acting}
        try:
            for plan in acting:
                if plan.now.kind is plan.wanted.kind is PathKind.FOLDER:
                    self._open_up(plan)
            # What is in a folder goes before it, and comes after it.
            for plan in reversed(acting):
                check()
                if _is_removed_first(plan) and not plan.moves:
                    self._remove(plan.path, plan.now, wanted=plan.wanted)
            # A file with several names comes first, so that names which were deleted become names of it again.
            for plan in sorted(acting, key=lambda plan: not is_same_file(plan)):
                check()
                if plan.wanted.kind is not PathKind.ABSENT and plan.now.kind is PathKind.ABSENT:
                    self._make_way(os.path.dirname(plan.path))
                self._make(plan)
        except BaseException as exc:
            if (failed := self._take_back()) and isinstance(exc, Exception):
                raise Downstream(
                    f"undo failed, and these could not be put back as they were before: {', '.join(map(format_path, failed))} ({exc})",
                    hint="see what is there; `handrail undo --list` shows what is kept of it",
                ) from exc
            if isinstance(exc, OSError):
                raise Downstream(f"nothing was undone: {exc.strerror}: {exc.filename!r}") from exc
            raise
        finally:
            self._set_modes()

    def _take_back(self) -> list[str]:
        """Take every step back, the last one first; the paths where that failed."""
        failed: list[str] = []
        for path, reverse in reversed(self._steps):
            try:
                reverse()
            except (OSError, HandrailError):
                failed.append(path)
        self._steps.clear()
        return failed

    # Taking away

    def _remove(self, path: str, now: PathState, *, wanted: PathState = ABSENT_STATE) -> None:
        with self._folder_of(path) as at:
            _check_unchanged(at, path, now)
            name = at.name(Path(path))
            if now.kind is not PathKind.FOLDER:
                os.unlink(name, dir_fd=at.fd)
            else:
                try:
                    os.rmdir(name, dir_fd=at.fd)
                except OSError as exc:
                    if wanted.kind is not PathKind.ABSENT or exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
                    self.left.append(path)
                    return
        self._steps.append((path, lambda: self._put(path, now)))

    # Making

    def _make(self, plan: PathPlan) -> None:
        path, now, wanted = plan.path, plan.now, plan.wanted
        if plan.source:
            self._name_again(plan)
            return
        if wanted.kind is PathKind.ABSENT:
            return
        there = ABSENT_STATE if _is_removed_first(plan) else now
        if wanted.kind is PathKind.FOLDER and there.kind is PathKind.FOLDER:
            self._modes[path] = wanted.mode
            self._steps.append((path, lambda: self._modes.update({path: now.mode})))
        elif plan.step == "mode":
            with self._folder_of(path) as at:
                _check_unchanged(at, path, there)
                change_mode(at, path, wanted.mode)
            self._steps.append((path, lambda: self._put_mode(path, now.mode)))
        else:
            with self._folder_of(path) as at:
                _check_unchanged(at, path, there)
                self._put_in(at, path, wanted)
            self._steps.append((path, lambda: self._put_back(path, there)))

    def _make_way(self, folder: str) -> None:
        """Make the folders that are missing around what is made again: those that undo leaves out are in no plan."""
        missing = itertools.takewhile(
            lambda place: not os.path.lexists(place), (folder, *map(str, Path(folder).parents))
        )
        for place in reversed(list(missing)):
            with self._folder_of(place) as at:
                os.mkdir(at.name(Path(place)), dir_fd=at.fd)
            self._steps.append((place, lambda place=place: self._put_back(place, ABSENT_STATE)))

    def _name_again(self, plan: PathPlan) -> None:
        """Give a file the name that it had in its folder."""
        with self._folder_of(plan.path) as at:
            _check_unchanged(at, plan.path, ABSENT_STATE)
            _check_unchanged(at, plan.source, self._present[plan.source])
            names = at.name(Path(plan.source)), at.name(Path(plan.path))
            os.rename(*names, src_dir_fd=at.fd, dst_dir_fd=at.fd)
            self._steps.append((plan.path, lambda: self._rename_back(plan)))
            if self._present[plan.source].mode != plan.wanted.mode:
                change_mode(at, plan.path, plan.wanted.mode)

    def _rename_back(self, plan: PathPlan) -> None:
        with self._folder_of(plan.path) as at:
            change_mode(at, plan.path, self._present[plan.source].mode)
            names = at.name(Path(plan.path)), at.name(Path(plan.source))
            os.rename(*names, src_dir_fd=at.fd, dst_dir_fd=at.fd)

    def _put_back(self, path: str, before: PathState) -> None:
        if before.kind is not PathKind.ABSENT:
            self._put(path, before)
            return
        with self._folder_of(path) as at:
            status = read_status(at, Path(path))
            assert status is not None
            (os.rmdir if stat.S_ISDIR(status.st_mode) else os.unlink)(at.name(Path(path)), dir_fd=at.fd)

    def _put(self, path: str, state: PathState) -> None:
        with self._folder_of(path) as at:
            self._put_in(at, path, state)

    def _put_mode(self, path: str, mode: int) -> None:
        with self._folder_of(path) as at:
            change_mode(at, path, mode)

    def _put_in(self, at: HeldFolder, path: str, state: PathState) -> None:
        """Put this state at a path, replacing any file or symlink there."""
        match state.kind:
            case PathKind.FOLDER:
                os.mkdir(at.name(Path(path)), 0o700, dir_fd=at.fd)
                self._modes[path] = state.mode
            case PathKind.LINK:
                hidden = create_sibling_name(Path(path))
                os.symlink(os.fsdecode(state.target), at.name(hidden), dir_fd=at.fd)
                _rename_hidden(at, hidden, path)
            case PathKind.FILE if state.links > 1 and (
                self._join(at, path, state) or self._write_through(at, path, state)
            ):
                pass
            case PathKind.FILE:
                self._write(at, path, state)
            case _:
                raise Downstream(f"{format_path(path)} was a {state.kind.value}, which cannot be made again")

    def _write(self, at: HeldFolder, path: str, state: PathState) -> None:
        name = Path(path)
        with open_draft(at, name, mode=0o600) as draft:
            if not self._store.write_contents(state.digest, draft.fd):
                raise Downstream(f"the contents of {format_path(path)} are damaged, or not kept any longer")
            before = read_status(at, name, missing_ok=True)
            if before is not None and stat.S_ISREG(before.st_mode):
                file_metadata.copy_metadata(draft.fd, at.name_for_attributes(name), before)
            os.fchmod(draft.fd, state.mode)
            if state.links > 1:
                written = os.fstat(draft.fd)
                self._linked[state.device, state.inode] = path
                self._linked[written.st_dev, written.st_ino] = path
            # Where nothing is, it appears under its name at once: a process that is killed leaves no hidden one.
            draft.put(name, overwrite=before is not None)

    def _write_through(self, at: HeldFolder, path: str, state: PathState) -> bool:
        """Put the contents into the file that is there, where that is still the one with several names; whether that was done."""
        name = Path(path)
        there = read_status(at, name, missing_ok=True)
        if there is None or not _is_known_file(there, state) or there.st_nlink < 2:
            return False
        with open_draft(at, name, mode=0o600) as draft:
            # All of it is there and undamaged before the first byte is overwritten.
            if not self._store.write_contents(state.digest, draft.fd):
                raise Downstream(f"the contents of {format_path(path)} are damaged, or not kept any longer")
        if not there.st_mode & stat.S_IWUSR:
            change_mode(at, path, stat.S_IMODE(there.st_mode) | stat.S_IWUSR)
        descriptor = os.open(at.name(name), os.O_WRONLY | NO_FOLLOW | SAFE_OPEN_FLAGS, dir_fd=at.fd)
        try:
            if not _is_known_file(os.fstat(descriptor), state):
                raise path_exchanged_error(name)
            os.ftruncate(descriptor, 0)
            whole = self._store.write_contents(state.digest, descriptor)
            os.fchmod(descriptor, state.mode)
        finally:
            os.close(descriptor)
        if not whole:
            raise Downstream(f"the contents of {format_path(path)} are damaged, or not kept any longer")
        self._linked[state.device, state.inode] = path
        self.through.append(path)
        return True

    def _join(self, at: HeldFolder, path: str, state: PathState) -> bool:
        """Give another name to the file that this one was a name of, where that is still there as it was; whether that was done."""
        other = self._linked.get((state.device, state.inode))
        if other is None or other == path:
            return False
        hidden = create_sibling_name(Path(path))
        with contextlib.suppress(OSError, HandrailError), hold_parent_folder(Path(other)) as beside:
            os.link(
                beside.name(Path(other)), at.name(hidden), src_dir_fd=beside.fd, dst_dir_fd=at.fd, follow_symlinks=False
            )
            status = read_status(at, hidden)
            assert status is not None
            if stat.S_ISREG(status.st_mode) and self._linked.get((status.st_dev, status.st_ino)) == other:
                _rename_hidden(at, hidden, path)
                return True
            os.unlink(at.name(hidden), dir_fd=at.fd)
        return False

    # Folders

    @contextmanager
    def _folder_of(self, path: str) -> Generator[HeldFolder]:
        """Open the directory that contains a path; its owner can change names in it until the end."""
        with hold_parent_folder(Path(path)) as at:
            assert at.fd is not None
            status = os.fstat(at.fd)
            if status.st_mode & OWNER_CHANGES != OWNER_CHANGES and status.st_uid == os.geteuid():
                self._modes.setdefault(os.path.dirname(path), stat.S_IMODE(status.st_mode))
                _change_open_mode(at.fd, stat.S_IMODE(status.st_mode) | stat.S_IRWXU)
            yield at

    def _open_up(self, plan: PathPlan) -> None:
        """Make a directory whose mode will change accessible to its owner, to reach what is in it."""
        if plan.now.mode & OWNER_CHANGES != OWNER_CHANGES:
            with self._folder_of(plan.path) as at:
                _check_unchanged(at, plan.path, plan.now)
                self._modes[plan.path] = plan.now.mode
                change_mode(at, plan.path, plan.now.mode | stat.S_IRWXU)

    def _set_modes(self) -> None:
        for folder, mode in sorted(self._modes.items(), reverse=True):
            with contextlib.suppress(OSError, HandrailError), hold_parent_folder(Path(folder)) as at:
                change_mode(at, folder, mode)


def _is_removed_first(plan: PathPlan) -> bool:
    """Return True if what is at the path must be removed before the wanted state can be created.

    A file or symlink replaces another one directly.
    """
    if plan.now.kind is PathKind.ABSENT or (plan.now.kind is plan.wanted.kind):
        return False
    return plan.wanted.kind not in (PathKind.FILE, PathKind.LINK) or plan.now.kind is PathKind.FOLDER


def is_same_file(plan: PathPlan) -> bool:
    """Return True if a file with several hard links is still the same file."""
    now, wanted = plan.now, plan.wanted
    if now.kind is not PathKind.FILE or wanted.kind is not PathKind.FILE or min(now.links, wanted.links) < 2:
        return False
    return (now.device, now.inode) == (wanted.device, wanted.inode)


def _is_known_file(status: os.stat_result, state: PathState) -> bool:
    return stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) == (state.device, state.inode)


def _check_unchanged(at: HeldFolder, path: str, known: PathState) -> None:
    """Raise `Downstream` where something else is at a path by now than was planned for."""
    status = read_status(at, Path(path), missing_ok=True)
    if status is None:
        same = known.kind is PathKind.ABSENT
    elif stat.S_ISDIR(status.st_mode) or known.links > 1:
        # The time of change of a file with several names is that of all of them.
        same = (known.device, known.inode) == (status.st_dev, status.st_ino)
    else:
        same = (known.inode, known.changed) == (status.st_ino, status.st_ctime_ns)
    if not same:
        raise Downstream(f"{format_path(path)} was changed in this moment", hint="nothing was undone; try again")


def _rename_hidden(at: HeldFolder, hidden: Path, path: str) -> None:
    try:
        os.replace(at.name(hidden), at.name(Path(path)), src_dir_fd=at.fd, dst_dir_fd=at.fd)
    finally:
        # Two names of one file are left as they are.
        with contextlib.suppress(OSError):
            os.unlink(at.name(hidden), dir_fd=at.fd)


def change_mode(at: HeldFolder, path: str, mode: int) -> None:
    """Set the permissions of a file or directory, never of a symlink's target."""
    name = at.name(Path(path))
    if sys.platform != "linux":
        os.chmod(name, mode, dir_fd=at.fd, follow_symlinks=False)
        return
    descriptor = os.open(name, NAME_ONLY_FLAGS, dir_fd=at.fd)
    try:
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            raise path_exchanged_error(Path(path))
        _change_open_mode(descriptor, mode)
    finally:
        os.close(descriptor)


def _change_open_mode(descriptor: int, mode: int) -> None:
    if sys.platform == "linux":
        # It is open for nothing but its name, which only this takes.
        os.chmod(f"/proc/self/fd/{descriptor}", mode)
    else:
        os.fchmod(descriptor, mode)
