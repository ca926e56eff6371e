"""Paths as commands name them: some are patterns, as a shell fits them to names."""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Sequence

WILD = re.compile(r"[*?\[]")
# What else than stars and question marks a shell may take for a pattern.
UNSURE = re.compile(r"[\[\\]|\*\*")
# The last part of a path that stands for any files in a folder and below it.
SOME_BELOW = "**"
# Names that a pattern is looked up for; where more fit it, its folder stands for them.
MAX_NAMES = 500


def fixed_folder(path: str) -> str:
    """Return the folder that holds everything that fits a pattern; a path without wildcards is returned as it is."""
    found = WILD.search(path)
    return path if found is None else path[: found.start()].rpartition("/")[0] or "/"


def matching_paths(path: str) -> Sequence[str]:
    """Return the existing paths that fit a pattern, or its folder if they cannot be determined; without wildcards, the path if it exists."""
    if os.path.lexists(path):
        return (path,)
    if WILD.search(path) is None:
        return ()
    if UNSURE.search(path) is None:
        found = list(itertools.islice(glob.iglob(path), MAX_NAMES + 1))
        if len(found) <= MAX_NAMES:
            # A folder may be reached through links; what is named in it is the link itself.
            return [os.path.join(os.path.realpath(os.path.dirname(one)), os.path.basename(one)) for one in found]
    folder = fixed_folder(path)
    return (os.path.realpath(folder),) if os.path.lexists(folder) else ()
