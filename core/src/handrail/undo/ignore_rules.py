"""Git's ignore rules, read from `.gitignore` files without running git, which would obey the repository's settings."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

from handrail.fs.dirfd_walk import NO_FOLLOW, SAFE_OPEN_FLAGS

# A longer file is not read: nothing in it counts.
MAX_FILE_BYTES = 65_536
MAX_RULES = 2_000
# Letters of a rule; a longer one counts for nothing.
MAX_RULE_CHARS = 1_000
IGNORE_FILE = ".gitignore"
EXCLUDE_FILE = ".git/info/exclude"
# Seconds by which the clock that stamps files may be behind.
BEHIND_S = 0.05
PATTERN_SIGNS = frozenset("*?\\")
ESCAPED_CHAR = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Rule from one line of a `.gitignore`.

    `parts` are matched one by one; `**` matches any number of directories.
    """

    parts: tuple[str, ...]
    negated: bool
    folders_only: bool

    def fits(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Return True if the rule applies to the path, given by its names below the directory of the `.gitignore`."""
        return (is_folder or not self.folders_only) and _is_path_match(self.parts, tuple(names))


def is_ignored(folder: str, *, since: float = math.inf) -> bool:
    """Return True if git would ignore this directory.

    The ignore files of the repository around it count, for this directory and for those above it; the nearest file
    takes precedence. Files changed since that unix time no longer cause anything to be ignored.
    """
    root = _find_repository_root(folder)
    if root is None:
        return False
    names = os.path.relpath(folder, root).split(os.sep)
    files = _read_rules(f"{root}/{EXCLUDE_FILE}", 0, since)
    at = root
    for depth, name in enumerate(names):
        files = (*_read_rules(f"{at}/{IGNORE_FILE}", depth, since), *files)
        # The last rule that fits decides.
        if next((not rule.negated for rule in _fitting(files, names[: depth + 1])), False):
            return True
        at = f"{at}/{name}"
    return False


def _find_repository_root(folder: str) -> str | None:
    at = os.path.dirname(folder)
    while True:
        if os.path.lexists(f"{at}/.git"):
            return at
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above


class _RuleFile(NamedTuple):
    """A file of rules for paths that begin at a `depth`. Only what is `old` can make git ignore something."""

    data: bytes
    depth: int
    old: bool


def _read_rules(file: str, depth: int, since: float) -> tuple[_RuleFile, ...]:
    """Return the file if it can be read, in a tuple."""
    data = read_regular_file(file, most=MAX_FILE_BYTES)
    # Asked after it was read: what was exchanged meanwhile has changed.
    return () if data is None else (_RuleFile(data, depth, is_changed_before(file, since)),)


def _fitting(files: Sequence[_RuleFile], names: Sequence[str]) -> Iterator[IgnoreRule]:
    """Yield the rules that count and speak of a folder: of each file the last one first."""
    for data, depth, old in files:
        for rule in reversed(_rules_for(data, names[-1])):
            if (old or rule.negated) and rule.fits(names[depth:], is_folder=True):
                yield rule


@lru_cache(maxsize=256)
def _rules_for(data: bytes, name: str) -> Sequence[IgnoreRule]:
    """Return the rules of a file that may speak of a folder with this name, by what they end with."""
    letters = frozenset(name)
    return [
        rule
        for rule, needed in _parsed_rules(data)
        if needed <= letters and (rule.parts[-1] == "**" or _compile_part(rule.parts[-1]).match(name) is not None)
    ]


@lru_cache(maxsize=64)
def _parsed_rules(data: bytes) -> Sequence[tuple[IgnoreRule, frozenset[str]]]:
    """Return the rules of a file, each with letters that the last name of what it speaks of has to hold."""
    rules = map(parse_rule, data.decode("utf-8", "surrogateescape").splitlines()[:MAX_RULES])
    # Brackets stand for one of their letters.
    return [(r, frozenset(r.parts[-1].partition("[")[0]) - PATTERN_SIGNS) for r in rules if r is not None]


def is_changed_before(path: str, since: float) -> bool:
    """Return True if a file or symlink was last written, moved or given another mode before that unix time.

    False if it does not exist.
    """
    try:
        return os.lstat(path).st_ctime < since - BEHIND_S
    except OSError:
        return False


def read_regular_file(file: str, *, most: int) -> bytes | None:
    """Return what a plain file holds; None for a missing file, a link, or more than `most` bytes."""
    try:
        descriptor = os.open(file, os.O_RDONLY | NO_FOLLOW | SAFE_OPEN_FLAGS)
    except OSError:
        return None
    try:
        data = os.read(descriptor, most + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data if len(data) <= most else None


def parse_rule(line: str) -> IgnoreRule | None:
    """Return the rule of one line; None for an empty line or a comment."""
    text = _strip_trailing_blanks(line)
    if not text or text.startswith("#") or len(text) > MAX_RULE_CHARS:
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    anchored = "/" in text
    parts = tuple(part for part in text.split("/") if part)
    return IgnoreRule(parts if anchored else ("**", *parts), negated, folders_only)


def _strip_trailing_blanks(line: str) -> str:
    """Return the line without the blanks at its end, of which a backslash keeps the first."""
    text = line.rstrip(" \t")
    return line[: len(text) + 1] if text.endswith("\\") else text


def _is_path_match(parts: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Return True if the parts match all the names.

    Each pair is checked once, which bounds the time for any pattern.
    """
    reached = {0}
    for number, part in enumerate(parts):
        if part != "**":
            match = _compile_part(part).match
            reached = {at + 1 for at in reached if at < len(names) and match(names[at]) is not None}
        elif reached:
            # At the end it stands for what is in a folder, and not for the folder.
            least = min(reached) + (number > 0 and number == len(parts) - 1)
            reached = set(range(least, len(names) + 1))
    return len(names) in reached


# As many as one file may hold.
@lru_cache(maxsize=2 * MAX_RULES)
def _compile_part(part: str) -> re.Pattern[str]:
    # Python's translation tries no star twice.
    return re.compile(translate(ESCAPED_CHAR.sub(_unescape_match, part)))


def _unescape_match(found: re.Match[str]) -> str:
    return f"[{found[1]}]" if found[1] in "*?[" else found[1]
