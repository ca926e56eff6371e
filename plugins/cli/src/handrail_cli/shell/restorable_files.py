"""The files that a command would overwrite or delete and that nothing could restore: not git and, if it is off, not undo."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence

from handrail import EvaluationContext, Reason
from handrail.fs.git_index import GitIndexes
from handrail.undo.coverage import REGENERATED_REASONS, REPOSITORY_DATA, FileCoverage
from handrail.undo.path_patterns import PathLookup

# The code of a reason for a change that nothing could take back.
NOT_RESTORABLE = "not_restorable"
# More files are not compared with what git has of them.
MAX_FILES = 500


def find_unrestorable_reason(losing: Sequence[str], judging: EvaluationContext) -> Reason | None:
    """Return why a command that may overwrite or delete what is at these resolved paths needs approval; None where undo or git keeps that."""
    if not losing or judging.undoable:
        return None
    roots = [os.path.realpath(root) for root in judging.workspace]
    lost = next(_find_unrestorable(losing, roots, since=judging.began), None)
    if lost is None:
        return None
    return Reason(NOT_RESTORABLE, f"it overwrites or deletes {lost!r}, which neither git nor undo can bring back")


def _find_unrestorable(paths: Iterable[str], roots: Sequence[str], *, since: float = math.inf) -> Iterator[str]:
    """Yield the files among and below these resolved paths and patterns whose present contents git does not have.

    `roots` are those of the workspace. Generated directories can be regenerated and do not count, if they were declared
    as such before `since` (Unix time in seconds). A directory with too many files to compare is yielded in their place.
    """
    indexes, coverage, lookup = GitIndexes(), FileCoverage((), ()), PathLookup()
    for path in dict.fromkeys(paths):
        for found in lookup.matching(path):
            if not _is_generated_path(found, coverage, roots, since):
                yield from _find_unrestorable_below(found, roots, indexes, coverage, since)


def _find_unrestorable_below(
    path: str, roots: Sequence[str], indexes: GitIndexes, coverage: FileCoverage, since: float
) -> Iterator[str]:
    if os.path.islink(path) or not os.path.isdir(path):
        if not indexes.has_contents(path):
            yield path
        return
    count = 0
    for folder, names, files in os.walk(path):
        links = [name for name in names if os.path.islink(f"{folder}/{name}")]
        whys = {
            name: coverage.reason_against(f"{folder}/{name}", root=path, is_folder=True, since=since) for name in names
        }
        if folder not in roots:
            yield from (f"{folder}/{name}" for name in names if whys[name] == REPOSITORY_DATA)
        names[:] = [name for name in names if name not in links and not whys[name]]
        for name in (*files, *links):
            count += 1
            if count > MAX_FILES:
                yield path
                return
            if not indexes.has_contents(f"{folder}/{name}"):
                yield f"{folder}/{name}"


def _is_generated_path(path: str, coverage: FileCoverage, roots: Sequence[str], since: float) -> bool:
    """Return True for a generated directory of the workspace and for anything inside one."""
    while any(path.startswith(f"{root}/") for root in roots):
        if coverage.reason_against(path, root=path, is_folder=os.path.isdir(path), since=since) in REGENERATED_REASONS:
            return True
        path = os.path.dirname(path)
    return False
