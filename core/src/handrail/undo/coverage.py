"""The files and folders that undo keeps and leaves out, with the reason."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from handrail.glob_match import is_glob_match
from handrail.undo.ignore_rules import EXCLUDE_FILE, IGNORE_FILE, is_changed_before, is_ignored, read_regular_file

__all__ = ["REGENERATED_REASONS", "REPOSITORY_DATA", "REPOSITORY_FOLDERS", "FileCoverage"]

# Folders in which version control keeps its own data. Undo neither copies nor restores them.
REPOSITORY_FOLDERS = frozenset((".git", ".hg", ".svn", ".jj", ".bzr"))
# Names that tools give to folders which they can make again.
GENERATED_FOLDERS = frozenset((
    "node_modules", "bower_components", ".pnpm-store", "__pycache__", ".venv", "venv", "env", ".tox", ".nox", ".eggs", "__pypackages__",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", "target", "build", "dist", "out", "obj", ".build", "_build", "Pods", "DerivedData",
    ".gradle", ".next", ".nuxt", ".output", ".svelte-kit", ".turbo", ".parcel-cache", ".angular", ".vite", ".cache", ".sass-cache", "coverage",
    "htmlcov", ".nyc_output", ".terraform", ".dart_tool", ".stack-work", "dist-newstyle", "deps", "zig-cache", ".zig-cache", "zig-out",
    "cmake-build-debug", "cmake-build-release", "vendor", ".bundle", "elm-stuff",
))  # fmt: skip
# A folder of this name holds nothing else than what Python makes.
ALWAYS_LEFT_OUT = frozenset(("__pycache__",))
# Files by which a tool marks a folder as its own.
GENERATED_MARKERS = ("pyvenv.cfg", ".package-lock.json", ".yarn-integrity", ".modules.yaml")
CACHE_TAG = "CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
TAG_LENGTH = 4_096
MARKER_FILES = frozenset((*GENERATED_MARKERS, CACHE_TAG, IGNORE_FILE))

REPOSITORY_DATA = "data of version control"
GENERATED_IGNORED = "generated, and git ignores it"
GENERATED_MARKED = "generated"
LISTED_REASON = "listed in undo.leave_out"
OWN_PLACE = "one of Handrail's own"
OTHER_FILE_SYSTEM = "another file system"
# What may be lost without a person's being asked.
REGENERATED_REASONS = frozenset((GENERATED_IGNORED, GENERATED_MARKED, LISTED_REASON))


class FileCoverage:
    """Decides for each file and folder that is new whether undo keeps it. What was kept once stays kept as long as it is there."""

    def __init__(self, leave_out: Sequence[str], own: Sequence[Path]) -> None:
        self._patterns = tuple(pattern.rstrip("/") for pattern in leave_out)
        self._own = frozenset(map(str, own)) | frozenset(map(os.path.realpath, own))

    def reason_against(
        self,
        path: str,
        *,
        root: str,
        is_folder: bool,
        trusts_marks: bool = True,
        since: float = math.inf,
        ignored_since: float = math.inf,
    ) -> str:
        """Return why the file or directory is left out of undo; empty if it is kept.

        `root` is the workspace root that contains it. What tools and `.gitignore` say about a directory counts only
        with `trusts_marks`, and only if it was written before `since` (unix time in seconds): after that an agent may
        have written it. What `.gitignore` says must also have been written before `ignored_since`.
        """
        name = path.rpartition("/")[2]
        if name in REPOSITORY_FOLDERS:
            return REPOSITORY_DATA
        if path in self._own:
            return OWN_PLACE
        if self._patterns and self._is_listed(path, name, root):
            return LISTED_REASON
        if not is_folder or name not in GENERATED_FOLDERS:
            return ""
        if name in ALWAYS_LEFT_OUT or (trusts_marks and _is_marked(path, since)):
            return GENERATED_MARKED
        return GENERATED_IGNORED if trusts_marks and is_ignored(path, since=min(since, ignored_since)) else ""

    def is_own(self, path: str) -> bool:
        """Return True for one of Handrail's own places and for anything in one."""
        return any(path == own or path.startswith(f"{own}/") for own in self._own)

    def _is_listed(self, path: str, name: str, root: str) -> bool:
        below = path[len(root) :].lstrip("/") if path.startswith(root) else path
        return any(
            is_glob_match(below if "/" in pattern.lstrip("/") else name, pattern.lstrip("/")) or path == pattern
            for pattern in self._patterns
        )


def is_damaged(repository: str) -> bool:
    """Return True for a repository's own directory that lacks an essential part."""
    is_git = os.path.basename(repository) == ".git" and os.path.isdir(repository)
    needed = ("HEAD", "refs", "objects") if is_git else ()
    return any(not os.path.lexists(f"{repository}/{name}") for name in needed)


def is_generated_marker(path: str) -> bool:
    """Return True for a file that marks directories as generated."""
    return os.path.basename(path) in MARKER_FILES or path.endswith(f"/{EXCLUDE_FILE}")


def _is_marked(folder: str, since: float) -> bool:
    """Return True if the tool that created the directory marked it as generated before `since`."""
    if any(is_changed_before(f"{folder}/{mark}", since) for mark in GENERATED_MARKERS):
        return True
    tag = read_regular_file(f"{folder}/{CACHE_TAG}", most=TAG_LENGTH)
    return tag is not None and tag.startswith(CACHE_SIGNATURE) and is_changed_before(f"{folder}/{CACHE_TAG}", since)
