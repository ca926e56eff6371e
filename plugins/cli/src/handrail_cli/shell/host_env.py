"""Environment of a command line, found once per session context: the host's variables and the directories of PATH."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from handrail import EvaluationContext
from handrail.fs import path_resolution
from handrail.fs.sensitive_paths import SHARED_TEMPORARY
from handrail_cli.shell.bash.variable_rules import find_unsettling_variables

TEMPORARY_FOLDERS = (*SHARED_TEMPORARY, "/dev/shm")


@dataclass(frozen=True, slots=True)
class HostEnvironment:
    """Host environment of a command line.

    `unsettled` says why a program may not be the one it seems to be (None: each is). `own_programs` are the directories
    of PATH in the workspace or among temporary files. `workspace` are the workspace's roots and `temporary` the
    directories for temporary files, as text. `kept` are Handrail's own files in the workspace, as named and as
    resolved, each followed by `/`.
    """

    unsettled: str | None
    own_programs: tuple[str, ...]
    workspace: tuple[str, ...]
    temporary: tuple[str, ...]
    kept: tuple[str, ...]

    def own(self, program: str) -> str | None:
        """Return the path of a program that PATH finds in the workspace or a temporary directory, or None."""
        places = (os.path.join(folder, program) for folder in self.own_programs)
        return next((place for place in places if os.path.lexists(place)), None)


def read_host_environment(judging: EvaluationContext) -> HostEnvironment:
    """Return the host environment for this context."""
    path = judging.environment.get("PATH", "/usr/bin").split(":")
    seen: path_resolution.PathCache = {}
    own = [
        entry
        for entry in path
        if path_resolution.is_inside_roots(entry, (*judging.workspace, *map(PurePath, TEMPORARY_FOLDERS)), seen=seen)
    ]
    own_temporary = judging.environment.get("TMPDIR", "/tmp")
    return HostEnvironment(
        next(_find_unsettled_reasons(judging, path, seen), None),
        tuple(own),
        tuple(map(str, judging.workspace)),
        tuple(dict.fromkeys((*SHARED_TEMPORARY, own_temporary if own_temporary.startswith("/") else "/tmp"))),
        tuple(_find_protected_paths(judging, seen)),
    )


def _find_protected_paths(judging: EvaluationContext, seen: path_resolution.PathCache) -> Iterator[str]:
    for place in judging.protected:
        found = path_resolution.resolve_path(str(place), cwd=judging.cwd, home=judging.home, seen=seen)
        if any(
            path_resolution.is_inside_roots(one, judging.workspace, seen=seen) for one in (found.real, found.written)
        ):
            yield from {f"{found.real}/", f"{found.written}/"}


def _find_unsettled_reasons(
    judging: EvaluationContext, path: Sequence[str], seen: path_resolution.PathCache
) -> Iterator[str]:
    for name in find_unsettling_variables(judging.environment):
        yield f"{name} is set, which may change what programs do"
    roots = (*map(PurePath, TEMPORARY_FOLDERS), *judging.workspace)
    for folder in judging.environment.get("LD_LIBRARY_PATH", "/").split(":"):
        if not folder.startswith("/") or path_resolution.is_inside_roots(folder, roots, seen=seen):
            yield "LD_LIBRARY_PATH is set, which may change what programs do"
    for entry in path:
        if not entry.startswith("/"):
            yield f"programs are looked for in {entry!r}, wherever that is (PATH)"
        elif (
            path_resolution.is_inside_roots(entry, map(PurePath, TEMPORARY_FOLDERS), seen=seen)
            and not path_resolution.is_inside_roots(entry, judging.workspace, seen=seen)
            and not _is_private_temporary(entry)
        ):
            yield f"programs are looked for in {entry!r}, a folder for temporary files (PATH)"


def _is_private_temporary(folder: str) -> bool:
    """Return True if a temporary directory exists that only this user (or root) can modify or replace."""
    real = PurePath(os.path.realpath(folder))
    root = next((root for root in TEMPORARY_FOLDERS if real.is_relative_to(os.path.realpath(root))), None)
    if root is None:
        return False
    below = real.relative_to(os.path.realpath(root)).parts
    return bool(below) and all(
        _is_writable_by_user_only(PurePath(os.path.realpath(root), *below[:depth]))
        for depth in range(1, len(below) + 1)
    )


def _is_writable_by_user_only(folder: PurePath) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid()) and not found.st_mode & others
