"""Scripts of GNU sed: which of their commands run something, read or write files (info sed, "sed scripts")."""

from __future__ import annotations

import re

from handrail_cli.programs.scripts.script_finding import UNCLEAR, ScriptFinding, create_dangerous_finding
from handrail_cli.programs.values import OperandRole

REGEX = r"(?:\\.|[^/\\\n])*"
ADDRESS = re.compile(
    rf"\s*(?:(?:\d+|\$|/{REGEX}/[IM]*|\\(?P<mark>[^\n\\])(?:\\.|(?!(?P=mark))[^\\\n])*(?P=mark)[IM]*)(?:~\d+)?)",
    re.DOTALL,
)
RELATIVE_ADDRESS = re.compile(r"\s*,\s*[+~]\d+")
COMMAND_END = re.compile(r"[ \t]*(?:;|\n|$|(?=\})|#[^\n]*(?:\n|$))")
SIMPLE_COMMAND = re.compile(r"[=dDgGhHnNpPxzF]")
NUMBERED_COMMAND = re.compile(r"[qQlL][ \t]*\d*")
LABEL_COMMAND = re.compile(r"[:btT][ \t]*[^\s;}]*")
TEXT_COMMAND = re.compile(r"[aic][ \t]*(?:\\\n?)?(?:[^\n\\]|\\.)*(?:\n|$)", re.DOTALL)
# Where text seems to end with a backslash, versions differ on whether it goes on.
AMBIGUOUS_CONTINUATION = re.compile(r"\\\\\n")
FILE_COMMAND = re.compile(r"([rRwW])[ \t]*([^\n]*)")
SUBSTITUTION_FLAG = re.compile(r"[gpiIMm0-9]")
MAX_STEPS = 2000
# Scripts that every sed reads alike: one-letter commands, and `s` with plain flags, on one line. No text, label, block or file.
ESCAPED = r"\\[A-Zabefg-mnp-wyz0-9.*+?|(){}\[\]^$/&'\",:;@!%~_=# -]"
CHAR_LIST = r"\[\^?(?:\[:[a-z]+:\]|\\[tsw.]|[^\[\]/\\\n])+\]"
ONE_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/(?:{ESCAPED}|{CHAR_LIST}|[^\[\\\n/])*/I?)"
ADDRESSES = rf"(?:{ONE_ADDRESS}(?:[ \t]*,[ \t]*(?:{ONE_ADDRESS}|[+~]\d+))?[ \t]*(?:![ \t]*)?)?"
SUBSTITUTIONS = "|".join(
    rf"{re.escape(mark)}(?:{ESCAPED}|{CHAR_LIST.replace('/', mark)}|[^\[\\\n{mark}])*{re.escape(mark)}"
    rf"(?:{ESCAPED}|[^\\\n{mark}])*{re.escape(mark)}"
    for mark in "/|,@!%~_=#"
)
ONE_COMMAND = rf"{ADDRESSES}(?:[pdqnNDPgGhHx=]|s(?:{SUBSTITUTIONS})[gpiI\d]*)"
PORTABLE_SCRIPT = re.compile(rf"[ \t;]*{ONE_COMMAND}[ \t]*(?:;[ \t;]*{ONE_COMMAND}[ \t]*)*;?[ \t]*")
MAX_SIMPLE = 400


def is_simple_sed(script: str) -> bool:
    """Return True for a script of which no sed can make more than printing."""
    return len(script) <= MAX_SIMPLE and PORTABLE_SCRIPT.fullmatch(script) is not None


def check_sed_script(script: str) -> ScriptFinding:
    """Check what a script does besides printing."""
    named: list[tuple[OperandRole, str]] = []
    at = 0
    for _ in range(MAX_STEPS):
        while at < len(script) and script[at] in " \t\n;{}":
            at += 1
        if at >= len(script):
            return ScriptFinding("effect" if any(role == "write" for role, _ in named) else "reads", named=tuple(named))
        if script[at] == "#":
            at = _find_line_end(script, at)
            continue
        at = _skip_addresses(script, at)
        if at > len(script):
            return UNCLEAR
        found = _check_command(script, at, named)
        if isinstance(found, ScriptFinding):
            return found
        at = found
    return UNCLEAR


def _find_line_end(script: str, at: int) -> int:
    end = script.find("\n", at)
    return len(script) if end < 0 else end + 1


def _skip_addresses(script: str, at: int) -> int:
    if (first := ADDRESS.match(script, at)) is not None and first.end() > at:
        if _ends_in_brackets(first[0]):
            return len(script) + 1
        at = first.end()
        if (relative := RELATIVE_ADDRESS.match(script, at)) is not None:
            at = relative.end()
        elif (comma := re.compile(r"\s*,").match(script, at)) is not None:
            second = ADDRESS.match(script, comma.end())
            if second is None or _ends_in_brackets(second[0]):
                return len(script) + 1
            at = second.end()
    spaces = re.compile(r"[\s!]*").match(script, at)
    return spaces.end() if spaces is not None else at


def _check_command(script: str, at: int, named: list[tuple[OperandRole, str]]) -> int | ScriptFinding:
    """Return the index at which the next command begins, or a finding that says why the script is not plain."""
    letter = script[at : at + 1]
    if letter in ("{", "}"):
        return at + 1
    if letter == "e":
        return create_dangerous_finding("runs commands (`e`)")
    if (match := FILE_COMMAND.match(script, at)) is not None:
        _note_file(match[1], match[2], named)
        return match.end()
    if letter in ("s", "y"):
        return _check_substitution(script, at, named)
    if (match := TEXT_COMMAND.match(script, at)) is not None:
        return UNCLEAR if AMBIGUOUS_CONTINUATION.search(match[0]) else match.end()
    if (match := LABEL_COMMAND.match(script, at)) is not None:
        return _find_command_end(script, match.end())
    if (match := NUMBERED_COMMAND.match(script, at) or SIMPLE_COMMAND.match(script, at)) is not None:
        return _find_command_end(script, match.end())
    return UNCLEAR


def _find_command_end(script: str, at: int) -> int | ScriptFinding:
    end = COMMAND_END.match(script, at)
    return end.end() if end is not None else UNCLEAR


def _note_file(letter: str, name: str, named: list[tuple[OperandRole, str]]) -> None:
    if name not in ("/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/null"):
        named.append(("read" if letter in "rR" else "write", name))


def _check_substitution(script: str, at: int, named: list[tuple[OperandRole, str]]) -> int | ScriptFinding:
    """Check `s/regex/replacement/flags` and `y/…/…/` with any delimiter."""
    mark = script[at + 1 : at + 2]
    if mark in ("", "\n", "\\"):
        return UNCLEAR
    kind, at = script[at], at + 2
    for part in ("pattern", "replacement"):
        end = _find_delimiter(script, at, mark)
        if end is None or (part == "pattern" and kind == "s" and _ends_in_brackets(script[at:end])):
            return UNCLEAR
        at = end + 1
    while kind == "s" and at < len(script):
        if script[at] == "e":
            return create_dangerous_finding("runs what it makes of a line (`s///e`)")
        if script[at] == "w":
            name = script[at + 1 : _find_line_end(script, at)].strip()
            _note_file("w", name, named)
            return _find_line_end(script, at)
        if SUBSTITUTION_FLAG.match(script[at]) is None:
            break
        at += 1
    return _find_command_end(script, at)


def _find_delimiter(script: str, at: int, mark: str) -> int | None:
    """Return the index of the next delimiter that is not escaped, or None."""
    while at < len(script):
        if script[at] == "\\":
            at += 2
        elif script[at] == mark:
            return at
        else:
            at += 1
    return None


def _ends_in_brackets(pattern: str) -> bool:
    """Return True if a pattern ends inside brackets, where versions of sed differ on whether the delimiter ends it."""
    return "[" in BRACKET_EXPRESSION.sub("", pattern)


BRACKET_EXPRESSION = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)
