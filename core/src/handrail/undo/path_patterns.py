"""Paths as commands name them: some are patterns, as a shell fits them to names."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from handrail.glob_match import is_glob_match

__all__ = ["SOME_BELOW", "PathLookup", "get_fixed_folder"]

WILDCARD_CHARS = re.compile(r"[*?\[]")
# What else than stars and question marks a shell may take for a pattern.
UNSURE_PATTERN = re.compile(r"[\[\\]|\*\*")
# The last part of a path that stands for any files in a folder and below it.
SOME_BELOW = "**"
# Names that a pattern is looked up for; where more fit it, its folder stands for them.
MAX_NAMES = 500
# Entries of folders that are read for one pattern, and the seconds that all patterns of a command may take.
MAX_ENTRIES = 20_000
MAX_SECONDS = 1.0


class TooManyPathsError(Exception):
    """Error of a pattern that cannot be looked up within the bounds."""


def get_fixed_folder(path: str) -> str:
    """Return the folder that holds everything that fits a pattern; a path without wildcards is returned as it is."""
    found = WILDCARD_CHARS.search(path)
    return path if found is None else path[: found.start()].rpartition("/")[0] or "/"


@dataclass(slots=True)
class PathLookup:
    """Lookup of the paths that the patterns of one command match, within a time limit for all of them."""

    seconds: float = MAX_SECONDS

    def matching(self, path: str) -> Sequence[str]:
        """Return the existing paths that fit a pattern, or its folder if they cannot be determined; without wildcards, the path if it exists."""
        if os.path.lexists(path):
            return (path,)
        if WILDCARD_CHARS.search(path) is None:
            return ()
        if UNSURE_PATTERN.search(path) is None:
            began = time.monotonic()
            try:
                return _PatternWalk(began + self.seconds).paths_of(path)
            except TooManyPathsError:
                pass
            finally:
                self.seconds -= time.monotonic() - began
        folder = get_fixed_folder(path)
        return (os.path.realpath(folder),) if os.path.lexists(folder) else ()


@dataclass(slots=True)
class _PatternWalk:
    """Search for what matches one pattern, by the rules of a shell.

    Symlinks to directories are followed, and hidden names need a dot in the pattern. A directory that can be reached
    through several symlinks is searched once for each part of the pattern.
    """

    until: float
    entries: int = 0

    def paths_of(self, pattern: str) -> list[str]:
        """Return what fits, each below the real path of its folder; raise `TooManyPathsError` past the bounds."""
        fixed = get_fixed_folder(pattern)
        *shapes, last = [shape for shape in pattern[len(fixed) :].split("/") if shape] or [""]
        folders = _distinct_folders([fixed])
        for shape in shapes:
            folders = _distinct_folders(self._fitting(folders, shape))
        found: list[str] = []
        for path in self._fitting(folders, last):
            if not pattern.endswith("/") or os.path.isdir(path):
                found.append(path)
            if len(found) > MAX_NAMES:
                raise TooManyPathsError
        return found

    def _fitting(self, folders: Iterable[str], shape: str) -> Iterator[str]:
        for folder in folders:
            self._count_entry()
            if WILDCARD_CHARS.search(shape) is None:
                if os.path.lexists(path := os.path.join(folder, shape)):
                    yield path
                continue
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        self._count_entry()
                        if _fits(entry.name, shape):
                            yield os.path.join(folder, entry.name)
            except OSError:
                continue

    def _count_entry(self) -> None:
        self.entries += 1
        if self.entries > MAX_ENTRIES or time.monotonic() > self.until:
            raise TooManyPathsError


def _distinct_folders(paths: Iterable[str]) -> list[str]:
    """Return the real paths of those that are folders, each folder once."""
    found: dict[tuple[int, int], str] = {}
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        key = status.st_dev, status.st_ino
        if stat.S_ISDIR(status.st_mode) and key not in found:
            found[key] = os.path.realpath(path)
    return list(found.values())


def _fits(name: str, shape: str) -> bool:
    """Return True if a shell would fit one part of a pattern to the name."""
    return (shape.startswith(".") or not name.startswith(".")) and is_glob_match(name, shape, if_long=True)
