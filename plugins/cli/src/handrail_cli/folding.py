"""How bash reads quoted and escaped text, for text in which nothing is expanded."""

from __future__ import annotations

import re

MAX_BRACES = 64

SIMPLE = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
ANSI_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<u>[0-9a-fA-F]{1,4})|U(?P<U>[0-9a-fA-F]{1,8})|c(?P<control>.)|(?P<one>.))",
    re.DOTALL,
)
INNERMOST = re.compile(r"(?<!\$)\{([^{}]*)\}")
RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])")


def unquoted(raw: str) -> str:
    """Text outside quotes: a backslash takes the next letter as it is, and joins lines."""
    return re.sub(r"\\(.)", lambda match: "" if match[1] == "\n" else match[1], raw, flags=re.DOTALL)


def double_quoted(raw: str) -> str:
    """Text between double quotes: a backslash is one, except before $ ` " \\ and the end of a line."""
    if "\\" not in raw:
        return raw
    return re.sub(r'\\([$`"\\\n])', lambda match: "" if match[1] == "\n" else match[1], raw)


def ansi_c(raw: str) -> str:
    """Text between $' and '."""
    return ANSI_ESCAPE.sub(_ansi, raw)


def _ansi(match: re.Match[str]) -> str:
    if match["octal"] is not None:
        return chr(int(match["octal"], 8) & 0xFF)
    for name in ("hex", "u", "U"):
        if match[name] is not None:
            code = int(match[name], 16)
            return chr(code) if code < 0x110000 else "\ufffd"
    if match["control"] is not None:
        return chr(ord(match["control"].upper()) & 0x1F)
    return SIMPLE.get(match["one"], match["one"])


def braces(text: str) -> list[str] | None:
    """The words that braces make of one; None when there is nothing to expand or too much."""
    done: list[str] = []
    waiting = [text]
    expanded = False
    while waiting:
        word = waiting.pop(0)
        for match in INNERMOST.finditer(word):
            inner = _alternatives(match[1])
            if inner is not None:
                expanded = True
                waiting[:0] = [word[: match.start()] + part + word[match.end() :] for part in inner]
                break
        else:
            done.append(word)
        if len(waiting) + len(done) > MAX_BRACES:
            return None
    return done if expanded else None


def _alternatives(inner: str) -> list[str] | None:
    if "," in inner:
        return inner.split(",")
    span = RANGE.fullmatch(inner)
    if span is None:
        return None
    first, last = span[1], span[2]
    if first.isalpha() != last.isalpha():
        return None
    low, high = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    if abs(high - low) > MAX_BRACES:
        return [first, last]
    step = 1 if low <= high else -1
    numbers = range(low, high + step, step)
    return [chr(n) if first.isalpha() else str(n) for n in numbers]
