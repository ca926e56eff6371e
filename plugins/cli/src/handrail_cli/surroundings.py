"""What a command line runs in, found once for a session's circumstances: the host's variables and the folders of PATH."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from handrail import Judging
from handrail.files import paths
from handrail.files.place_kinds import SHARED_TEMPORARY
from handrail_cli.variables import unsettled

TEMPORARY = (*SHARED_TEMPORARY, "/dev/shm")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Why no program is sure to be itself (None: each is), and the folders of PATH that lie in the workspace or among temporary files.

    `workspace` are its roots and `temporary` the folders for temporary files, as text; `kept` are those of
    Handrail's own files that lie in the workspace, as they are named and as they really are, each with a `/` behind it.
    """

    unsettled: str | None
    own_programs: tuple[str, ...]
    workspace: tuple[str, ...]
    temporary: tuple[str, ...]
    kept: tuple[str, ...]

    def own(self, program: str) -> str | None:
        """Return the place of a program that PATH leads to in the workspace or a folder for temporary files; None where there is none."""
        places = (os.path.join(folder, program) for folder in self.own_programs)
        return next((place for place in places if os.path.lexists(place)), None)


def surroundings(judging: Judging) -> Surroundings:
    """The surroundings in these circumstances."""
    path = judging.environment.get("PATH", "/usr/bin").split(":")
    seen: paths.Seen = {}
    own = [entry for entry in path if paths.inside(entry, (*judging.workspace, *map(PurePath, TEMPORARY)), seen=seen)]
    own_temporary = judging.environment.get("TMPDIR", "/tmp")
    return Surroundings(
        next(_why_unsettled(judging, path, seen), None),
        tuple(own),
        tuple(map(str, judging.workspace)),
        tuple(dict.fromkeys((*SHARED_TEMPORARY, own_temporary if own_temporary.startswith("/") else "/tmp"))),
        tuple(_kept(judging, seen)),
    )


def _kept(judging: Judging, seen: paths.Seen) -> Iterator[str]:
    for place in judging.protected:
        found = paths.resolve(str(place), cwd=judging.cwd, home=judging.home, seen=seen)
        if any(paths.inside(one, judging.workspace, seen=seen) for one in (found.real, found.written)):
            yield from {f"{found.real}/", f"{found.written}/"}


def _why_unsettled(judging: Judging, path: Sequence[str], seen: paths.Seen) -> Iterator[str]:
    for name in unsettled(judging.environment):
        yield f"{name} is set, which may change what programs do"
    roots = (*map(PurePath, TEMPORARY), *judging.workspace)
    for folder in judging.environment.get("LD_LIBRARY_PATH", "/").split(":"):
        if not folder.startswith("/") or paths.inside(folder, roots, seen=seen):
            yield "LD_LIBRARY_PATH is set, which may change what programs do"
    for entry in path:
        if not entry.startswith("/"):
            yield f"programs are looked for in {entry!r}, wherever that is (PATH)"
        elif (
            paths.inside(entry, map(PurePath, TEMPORARY), seen=seen)
            and not paths.inside(entry, judging.workspace, seen=seen)
            and not _of_this_user(entry)
        ):
            yield f"programs are looked for in {entry!r}, a folder for temporary files (PATH)"


def _of_this_user(folder: str) -> bool:
    """Whether a folder among temporary files is there, and nobody but this user (or root) can change what is in it, nor put another in its place."""
    real = PurePath(os.path.realpath(folder))
    root = next((root for root in TEMPORARY if real.is_relative_to(os.path.realpath(root))), None)
    if root is None:
        return False
    below = real.relative_to(os.path.realpath(root)).parts
    return bool(below) and all(
        _kept_by_this_user(PurePath(os.path.realpath(root), *below[:depth])) for depth in range(1, len(below) + 1)
    )


def _kept_by_this_user(folder: PurePath) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid()) and not found.st_mode & others
