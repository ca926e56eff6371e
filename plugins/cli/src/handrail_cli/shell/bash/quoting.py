"""Reading of quoted and escaped text as in bash, for text in which nothing is expanded."""

from __future__ import annotations

import re

MAX_BRACES = 64

SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
ANSI_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<u>[0-9a-fA-F]{1,4})|U(?P<U>[0-9a-fA-F]{1,8})|c(?P<control>.)|(?P<one>.))",
    re.DOTALL,
)
INNERMOST_BRACES = re.compile(r"(?<!\$)\{([^{}]*)\}")
BRACE_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])")

# A variable with a plain operator: what follows the operator holds nothing that is expanded.
PARAMETER_EXPANSION = re.compile(
    r"\$\{([A-Za-z_]\w*)(:?[-+?]|##?|%%?|//?|/[#%]|\^\^?|,,?|:(?=\d))([\w ./:@%+,*?-]*)\}", re.ASCII
)
# Decimal numbers: with a zero in front, bash takes them for octal ones.
SUBSTRING_OFFSETS = re.compile(r"(0|[1-9]\d{0,4})(?::(0|[1-9]\d{0,4}))?", re.ASCII)


def expand_parameter(value: str, operator: str, word: str) -> str:
    """Return the value of `${name<operator>word}` (bash manual, "Shell Parameter Expansion"); unset counts as empty."""
    if operator in (":-", "-"):
        return value or word
    if operator in (":?", "?"):
        # Without a value nothing goes on.
        return value or "?"
    if operator in (":+", "+"):
        return word if value else ""
    if operator[0] in "^,":
        change = str.upper if operator[0] == "^" else str.lower
        return change(value) if len(operator) == 2 else change(value[:1]) + value[1:]
    if operator == ":":
        part = SUBSTRING_OFFSETS.fullmatch(word)
        if part is None:
            return value
        start = int(part[1])
        return value[start:] if part[2] is None else value[start : start + int(part[2])]
    if operator[0] in "#%":
        return _trim_value(value, operator, word)
    pattern, _, put = word.partition("/")
    anchored = _translate_glob(pattern)
    if operator == "/#":
        return re.sub(rf"\A{anchored}", lambda _: put, value, count=1)
    if operator == "/%":
        return re.sub(rf"{anchored}\Z", lambda _: put, value, count=1)
    return re.sub(anchored, lambda _: put, value, count=0 if operator == "//" else 1) if pattern else value


def _trim_value(value: str, operator: str, word: str) -> str:
    pattern = re.compile(_translate_glob(word), re.DOTALL)
    cuts = range(len(value) + 1)
    if operator[0] == "#":
        hits = [at for at in cuts if pattern.fullmatch(value, 0, at)]
        return value[(hits[-1] if len(operator) == 2 else hits[0]) :] if hits else value
    hits = [at for at in cuts if pattern.fullmatch(value, at)]
    return value[: hits[0] if len(operator) == 2 else hits[-1]] if hits else value


def _translate_glob(glob: str) -> str:
    return "".join(".*" if letter == "*" else "." if letter == "?" else re.escape(letter) for letter in glob)


def unescape_unquoted(raw: str) -> str:
    """Text outside quotes: a backslash takes the next letter as it is, and joins lines."""
    return re.sub(r"\\(.)", lambda match: "" if match[1] == "\n" else match[1], raw, flags=re.DOTALL)


def unescape_double_quoted(raw: str) -> str:
    """Text between double quotes: a backslash is one, except before $ ` " \\ and the end of a line."""
    if "\\" not in raw:
        return raw
    return re.sub(r'\\([$`"\\\n])', lambda match: "" if match[1] == "\n" else match[1], raw)


def unescape_ansi_c(raw: str) -> str:
    """Text between $' and '."""
    return ANSI_ESCAPE.sub(_replace_ansi_escape, raw)


def _replace_ansi_escape(match: re.Match[str]) -> str:
    if match["octal"] is not None:
        return chr(int(match["octal"], 8) & 0xFF)
    for name in ("hex", "u", "U"):
        if match[name] is not None:
            code = int(match[name], 16)
            return chr(code) if code < 0x110000 else "\ufffd"
    if match["control"] is not None:
        return chr(ord(match["control"].upper()) & 0x1F)
    return SIMPLE_ESCAPES.get(match["one"], match["one"])


def expand_braces(text: str) -> list[str] | None:
    """Return the words that brace expansion makes of one; None if there is nothing to expand, or too much."""
    done: list[str] = []
    waiting = [text]
    expanded = False
    while waiting:
        word = waiting.pop(0)
        for match in INNERMOST_BRACES.finditer(word):
            inner = _list_alternatives(match[1])
            if inner is not None:
                expanded = True
                waiting[:0] = [word[: match.start()] + part + word[match.end() :] for part in inner]
                break
        else:
            done.append(word)
        if len(waiting) + len(done) > MAX_BRACES:
            return None
    return done if expanded else None


def _list_alternatives(inner: str) -> list[str] | None:
    if "," in inner:
        return inner.split(",")
    span = BRACE_RANGE.fullmatch(inner)
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
