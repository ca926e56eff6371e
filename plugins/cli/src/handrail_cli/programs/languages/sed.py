"""Scripts of GNU sed: which of their commands run something, read or write files (info sed, "sed scripts")."""

from __future__ import annotations

import re

from handrail_cli.programs.languages.finding import UNCLEAR, Finding, dangerous
from handrail_cli.programs.values import Role

REGEX = r"(?:\\.|[^/\\\n])*"
ADDRESS = re.compile(
    rf"\s*(?:(?:\d+|\$|/{REGEX}/[IM]*|\\(?P<mark>[^\n\\])(?:\\.|(?!(?P=mark))[^\\\n])*(?P=mark)[IM]*)(?:~\d+)?)",
    re.DOTALL,
)
RANGE = re.compile(r"\s*,\s*[+~]\d+")
END = re.compile(r"[ \t]*(?:;|\n|$|(?=\})|#[^\n]*(?:\n|$))")
SIMPLE = re.compile(r"[=dDgGhHnNpPxzF]")
NUMBERED = re.compile(r"[qQlL][ \t]*\d*")
LABEL = re.compile(r"[:btT][ \t]*[^\s;}]*")
TEXT = re.compile(r"[aic][ \t]*(?:\\\n?)?(?:[^\n\\]|\\.)*(?:\n|$)", re.DOTALL)
# Where text seems to end with a backslash, versions differ on whether it goes on.
GOING_ON = re.compile(r"\\\\\n")
FILE = re.compile(r"([rRwW])[ \t]*([^\n]*)")
FLAG = re.compile(r"[gpiIMm0-9]")
MAX_STEPS = 2000
# Scripts that every sed reads alike: one-letter commands, and `s` with plain flags, on one line. No text, label, block or file.
ESCAPED = r"\\[A-Zabefg-mnp-wyz0-9.*+?|(){}\[\]^$/&'\",:;@!%~_=# -]"
LISTED = r"\[\^?(?:\[:[a-z]+:\]|\\[tsw.]|[^\[\]/\\\n])+\]"
ONE_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/(?:{ESCAPED}|{LISTED}|[^\[\\\n/])*/I?)"
ADDRESSES = rf"(?:{ONE_ADDRESS}(?:[ \t]*,[ \t]*(?:{ONE_ADDRESS}|[+~]\d+))?[ \t]*(?:![ \t]*)?)?"
SUBSTITUTIONS = "|".join(
    rf"{re.escape(mark)}(?:{ESCAPED}|{LISTED.replace('/', mark)}|[^\[\\\n{mark}])*{re.escape(mark)}(?:{ESCAPED}|[^\\\n{mark}])*{re.escape(mark)}"
    for mark in "/|,@!%~_=#"
)
ONE_COMMAND = rf"{ADDRESSES}(?:[pdqnNDPgGhHx=]|s(?:{SUBSTITUTIONS})[gpiI\d]*)"
ALIKE = re.compile(rf"[ \t;]*{ONE_COMMAND}[ \t]*(?:;[ \t;]*{ONE_COMMAND}[ \t]*)*;?[ \t]*")
MAX_SIMPLE = 400


def is_simple(script: str) -> bool:
    """Return True for a script of which no sed can make more than printing."""
    return len(script) <= MAX_SIMPLE and ALIKE.fullmatch(script) is not None


def look(script: str) -> Finding:
    """What a script does besides printing."""
    named: list[tuple[Role, str]] = []
    at = 0
    for _ in range(MAX_STEPS):
        while at < len(script) and script[at] in " \t\n;{}":
            at += 1
        if at >= len(script):
            return Finding("effect" if any(role == "write" for role, _ in named) else "reads", named=tuple(named))
        if script[at] == "#":
            at = _line_end(script, at)
            continue
        at = _after_addresses(script, at)
        if at > len(script):
            return UNCLEAR
        found = _command(script, at, named)
        if isinstance(found, Finding):
            return found
        at = found
    return UNCLEAR


def _line_end(script: str, at: int) -> int:
    end = script.find("\n", at)
    return len(script) if end < 0 else end + 1


def _after_addresses(script: str, at: int) -> int:
    if (first := ADDRESS.match(script, at)) is not None and first.end() > at:
        if _in_brackets(first[0]):
            return len(script) + 1
        at = first.end()
        if (relative := RANGE.match(script, at)) is not None:
            at = relative.end()
        elif (comma := re.compile(r"\s*,").match(script, at)) is not None:
            second = ADDRESS.match(script, comma.end())
            if second is None or _in_brackets(second[0]):
                return len(script) + 1
            at = second.end()
    spaces = re.compile(r"[\s!]*").match(script, at)
    return spaces.end() if spaces is not None else at


def _command(script: str, at: int, named: list[tuple[Role, str]]) -> int | Finding:
    """Where the next command begins, or why the script is not plain."""
    letter = script[at : at + 1]
    if letter in ("{", "}"):
        return at + 1
    if letter == "e":
        return dangerous("runs commands (`e`)")
    if (match := FILE.match(script, at)) is not None:
        _file(match[1], match[2], named)
        return match.end()
    if letter in ("s", "y"):
        return _substitution(script, at, named)
    if (match := TEXT.match(script, at)) is not None:
        return UNCLEAR if GOING_ON.search(match[0]) else match.end()
    if (match := LABEL.match(script, at)) is not None:
        return _ended(script, match.end())
    if (match := NUMBERED.match(script, at) or SIMPLE.match(script, at)) is not None:
        return _ended(script, match.end())
    return UNCLEAR


def _ended(script: str, at: int) -> int | Finding:
    end = END.match(script, at)
    return end.end() if end is not None else UNCLEAR


def _file(letter: str, name: str, named: list[tuple[Role, str]]) -> None:
    if name not in ("/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/null"):
        named.append(("read" if letter in "rR" else "write", name))


def _substitution(script: str, at: int, named: list[tuple[Role, str]]) -> int | Finding:
    """`s/regex/replacement/flags` and `y/…/…/` with any delimiter."""
    mark = script[at + 1 : at + 2]
    if mark in ("", "\n", "\\"):
        return UNCLEAR
    kind, at = script[at], at + 2
    for part in ("pattern", "replacement"):
        end = _delimiter(script, at, mark)
        if end is None or (part == "pattern" and kind == "s" and _in_brackets(script[at:end])):
            return UNCLEAR
        at = end + 1
    while kind == "s" and at < len(script):
        if script[at] == "e":
            return dangerous("runs what it makes of a line (`s///e`)")
        if script[at] == "w":
            name = script[at + 1 : _line_end(script, at)].strip()
            _file("w", name, named)
            return _line_end(script, at)
        if FLAG.match(script[at]) is None:
            break
        at += 1
    return _ended(script, at)


def _delimiter(script: str, at: int, mark: str) -> int | None:
    """Where the next delimiter stands that is not escaped."""
    while at < len(script):
        if script[at] == "\\":
            at += 2
        elif script[at] == mark:
            return at
        else:
            at += 1
    return None


def _in_brackets(pattern: str) -> bool:
    """Whether a pattern ends within brackets: there, versions of sed differ on whether the delimiter ends it."""
    return "[" in BRACKETS.sub("", pattern)


BRACKETS = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)
