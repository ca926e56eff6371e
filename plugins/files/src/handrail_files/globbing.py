"""Patterns of file names as regular expressions: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, and `**` for any folders; `*` and `?` never fit a slash."""

from __future__ import annotations

import re

WILD = re.compile(r"[*?\[{]")


def translate(glob: str) -> str:
    """The expression for a path with slashes that fits the whole pattern."""
    made: list[str] = []
    at = depth = 0
    while at < len(glob):
        letter = glob[at]
        at += 1
        if letter == "*":
            stars = re.compile(r"\**").match(glob, at)
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
        elif letter == "[" and (end := _class_end(glob, at)) > 0:
            made.append(_class(glob[at:end]))
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


def _class_end(glob: str, at: int) -> int:
    start = at + 1 if glob[at : at + 1] in ("!", "^") else at
    return glob.find("]", start + 1)


def _class(inside: str) -> str:
    negated = inside[:1] in ("!", "^")
    letters = inside[1:] if negated else inside
    safe = re.sub(r"([\\\[\]&~|^])", r"\\\1", letters)
    return f"(?![/])[{'^' if negated else ''}{safe}]"


def names(pattern: str) -> re.Pattern[str]:
    """What fits a path below the searched folder: a pattern with a slash the whole path, another the last name, plain letters a part of it."""
    if WILD.search(pattern) is None:
        within = re.escape(pattern)
        return re.compile(f"(?is:.*{within}.*)" if "/" in pattern else f"(?is:(?:.*/)?[^/]*{within}[^/]*)")
    if "/" in pattern:
        return re.compile(f"(?s:{translate(pattern.removeprefix('./').removeprefix('/'))})")
    return re.compile(f"(?s:(?:.*/)?{translate(pattern)})")
