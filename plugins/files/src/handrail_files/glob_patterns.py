"""Patterns of file names: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, and `**` for any folders; `*` and `?` never fit a slash.

RE2 matches them, in time linear in the name: `re` looks for `*a*a*a…b` in exponentially many ways, and nothing else runs meanwhile.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

WILDCARD = re.compile(r"[*?\[{]")
# Letters of a pattern, and alternatives in it.
MAX_GLOB = 1_000
MAX_ALTERNATIVES = 100
MAX_CODE_POINT = 0x10FFFF
STARS = re.compile(r"\**")


class GlobError(ValueError):
    """A pattern that is too long, or that cannot be read."""


class NamePattern:
    """Regular expression in RE2 syntax that matches a complete name; `GlobError` if it is invalid or too complex."""

    def __init__(self, expression: str, *, ignore_case: bool = False) -> None:
        # It has no types, and most sessions search for no file by its name.
        re2: Any = importlib.import_module("re2")
        options = re2.Options()
        options.never_capture = True
        options.log_errors = False
        options.dot_nl = True
        options.case_sensitive = not ignore_case
        try:
            self._fullmatch: Any = re2.compile(_encode_name(expression), options).fullmatch
        except re2.error as exc:
            raise GlobError("the pattern cannot be read, or is too complex") from exc

    def fits(self, name: str) -> bool:
        """Return True if the expression matches the complete name."""
        return self._fullmatch(_encode_name(name)) is not None


def _encode_name(text: str) -> bytes:
    # Bytes of a name that are no UTF-8 are lone surrogates, in the pattern and in the name.
    return text.encode("utf-8", "surrogatepass")


def compile_name_pattern(pattern: str) -> NamePattern:
    """Compile a pattern for paths below the searched folder.

    A pattern with a slash matches the complete path, any other the last component; plain text without wildcards matches
    as a substring, ignoring case. Raises `GlobError`.
    """
    if WILDCARD.search(pattern) is None:
        within = re.escape(_check_bounds(pattern))
        whole = f".*{within}.*" if "/" in pattern else f"(?:.*/)?[^/]*{within}[^/]*"
        return NamePattern(whole, ignore_case=True)
    if "/" in pattern:
        return NamePattern(translate_glob(pattern.removeprefix("./").removeprefix("/")))
    return NamePattern(f"(?:.*/)?{translate_glob(pattern)}")


def compile_any_pattern(patterns: Iterable[str]) -> NamePattern:
    """Compile a pattern that matches a name if one of the glob patterns does. Raises `GlobError`."""
    return NamePattern("|".join(f"(?:{translate_glob(pattern)})" for pattern in patterns))


def translate_glob(glob: str) -> str:
    """Translate a glob to a regular expression that matches a complete path with slashes. Raises `GlobError`."""
    _check_bounds(glob)
    made: list[str] = []
    at = depth = 0
    while at < len(glob):
        letter = glob[at]
        at += 1
        if letter == "*":
            stars = STARS.match(glob, at)
            assert stars is not None
            whole = at == 1 or glob[at - 2] == "/"
            end = stars.end()
            if stars[0] == "*" and whole and (end == len(glob) or glob[end] == "/"):
                at = end + 1
                made.append("(?:[^/]+/)*" if end < len(glob) else ".*")
            else:
                at = end
                made.append("[^/]*")
        elif letter == "?":
            made.append("[^/]")
        elif letter == "[" and (end := _find_class_end(glob, at)) > 0:
            made.append(_translate_class(glob[at:end]))
            at = end + 1
        elif letter == "{" and "}" in glob[at:]:
            depth += 1
            made.append("(?:")
        elif letter == "}" and depth:
            depth -= 1
            made.append(")")
        elif letter == "," and depth:
            made.append("|")
        elif letter == "\\" and at < len(glob):
            made.append(re.escape(glob[at]))
            at += 1
        else:
            made.append(re.escape(letter))
    return "".join(made) + ")" * depth


def _check_bounds(glob: str) -> str:
    if len(glob) > MAX_GLOB:
        raise GlobError(f"a pattern has {len(glob):,} letters; at most {MAX_GLOB:,} are taken")
    if "{" in glob and (count := glob.count(",")) > MAX_ALTERNATIVES:
        raise GlobError(f"a pattern has {count:,} alternatives; at most {MAX_ALTERNATIVES} are taken")
    return glob


def _find_class_end(glob: str, at: int) -> int:
    start = at + 1 if glob[at : at + 1] in ("!", "^") else at
    return glob.find("]", start + 1)


def _translate_class(inside: str) -> str:
    """Return the class of letters without the slash, which no class fits."""
    negated = inside[:1] in ("!", "^")
    ranges = list(_parse_ranges(inside[1:] if negated else inside))
    if negated:
        return f"[^/{''.join(_format_range(low, high) for low, high in ranges)}]"
    slash = ord("/")
    parts = [part for low, high in ranges for part in ((low, min(high, slash - 1)), (max(low, slash + 1), high))]
    kept = [_format_range(low, high) for low, high in dict.fromkeys(parts) if low <= high]
    return f"[{''.join(kept)}]" if kept else _format_empty_class()


def _parse_ranges(letters: str) -> Iterable[tuple[int, int]]:
    at = 0
    while at < len(letters):
        low = high = ord(letters[at])
        if letters[at + 1 : at + 2] == "-" and at + 2 < len(letters):
            high = ord(letters[at + 2])
            if high < low:
                raise GlobError(f"the range {letters[at : at + 3]!r} in a pattern has its ends the wrong way round")
            at += 2
        at += 1
        yield low, high


def _format_range(low: int, high: int) -> str:
    return f"\\x{{{low:x}}}-\\x{{{high:x}}}"


def _format_empty_class() -> str:
    return f"[^{_format_range(0, MAX_CODE_POINT)}]"
