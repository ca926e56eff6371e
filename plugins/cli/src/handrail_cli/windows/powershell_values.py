"""What a piece of PowerShell gives, as far as that can be told without running it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from handrail_cli.windows.powershell_nodes import Block

MAX_TEXT = 20_000
MAX_ITEMS = 500
NO_MARKS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Files:
    """Files that a command lists: everything that `text` names or, when `within`, what is in it; `filtered` when only some of that."""

    text: str | None
    within: bool = True
    recursive: bool = False
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """A value. `text` is what it is as a word, None when that is not known; `guess` the same with nothing in place of what is not known.

    `marks` tell what it was made of: `network`, `secret`, `file`, `socket`, `shadow` (backups), `missing` (a variable without a value).
    """

    text: str | None = None
    guess: str = ""
    items: tuple[Value, ...] | None = None
    marks: frozenset[str] = NO_MARKS
    files: tuple[Files, ...] = ()
    block: Block | None = None
    table: tuple[tuple[str, Value], ...] | None = None
    kind: str = ""

    def marked(self, marks: frozenset[str]) -> Value:
        """It with more marks."""
        return self if marks <= self.marks else replace(self, marks=self.marks | marks)


UNKNOWN = Value()
NOTHING = Value("", kind="null")


def known(text: str, marks: frozenset[str] = NO_MARKS, kind: str = "string") -> Value:
    """A text that is known; one that is longer than is followed is not."""
    return (
        Value(text, text, marks=marks, kind=kind)
        if len(text) <= MAX_TEXT
        else Value(guess=text[:MAX_TEXT], marks=marks)
    )


def listed(items: Sequence[Value]) -> Value:
    """Several values as one; a text as PowerShell makes it of a list."""
    marks = frozenset[str]().union(*(item.marks for item in items))
    files = tuple(file for item in items for file in item.files)
    if len(items) > MAX_ITEMS:
        return Value(marks=marks, files=files)
    text = " ".join(item.text or "" for item in items) if all(item.text is not None for item in items) else None
    return Value(text, " ".join(item.guess for item in items), tuple(items), marks, files, kind="list")


def flat(value: Value) -> tuple[Value, ...]:
    """The single values in a list, or the value itself."""
    return value.items if value.items is not None else (value,)


def joined(parts: Sequence[Value]) -> Value:
    """Texts one after the other."""
    marks = frozenset[str]().union(*(part.marks for part in parts))
    guess = "".join(part.guess for part in parts)
    if all(part.text is not None for part in parts):
        return known("".join(part.text or "" for part in parts), marks)
    return Value(guess=guess[:MAX_TEXT], marks=marks)


def cast(kind: str, value: Value) -> Value:
    """What `[kind]value` gives."""
    if kind in ("char", "char[]"):
        items = [_char(item) for item in flat(value)]
        if kind == "char[]" and len(items) == 1 and value.kind == "string" and value.text is not None:
            items = [known(char, value.marks) for char in value.text[:MAX_ITEMS]]
        return items[0] if len(items) == 1 and kind == "char" else listed(items)
    if kind in ("string", "object", "void", "array", "object[]", "string[]"):
        if kind == "string" and value.text is not None:
            return known(value.text, value.marks)
        return value
    if kind in ("int", "int32", "int64", "long", "byte", "uint32", "double", "decimal"):
        number = integer(value)
        return known(str(number), value.marks, "int") if number is not None else replace(value, kind="int")
    if kind in ("pscustomobject", "psobject", "hashtable", "ordered"):
        return value
    if kind == "scriptblock":
        return replace(value, block=None, kind="scriptblock")
    return Value(value.text, value.guess, value.items, value.marks, kind=kind)


def integer(value: Value) -> int | None:
    """The whole number that a value is."""
    text = (value.text or "").strip().lower()
    try:
        return int(text, 16) if text.startswith("0x") else int(text)
    except ValueError:
        return None


def _char(value: Value) -> Value:
    number = integer(value)
    if number is None or (value.kind == "string" and len(value.text or "") == 1):
        return value if value.text is not None and len(value.text) == 1 else Value(marks=value.marks)
    return known(chr(number), value.marks) if 0 <= number < 0x110000 else UNKNOWN


def binary(operator: str, left: Value, right: Value) -> Value:
    """What an operator gives; not known where it is not worked out here."""
    marks = left.marks | right.marks
    name = operator[1:] if operator[:1] in ("c", "i") and operator[1:] in ("replace", "split") else operator
    if name == "+":
        return _sum(left, right, marks)
    if name == "*" and left.text is not None and (times := integer(right)) is not None and left.kind == "string":
        return known(left.text * times, marks) if 0 <= times * len(left.text) <= MAX_TEXT else Value(marks=marks)
    if name == "f" and left.text is not None:
        return _formatted(left.text, flat(right), marks)
    if name == "join" and right.text is not None:
        items = flat(left)
        if all(item.text is not None for item in items):
            return known(right.text.join(item.text or "" for item in items), marks)
    if name == "replace":
        return _replaced(left, right, marks)
    if (
        name == "split"
        and left.text is not None
        and right.text is not None
        and not re.search(r"[\\^$.|?*+(){}\[\]]", right.text)
        and right.text
    ):
        return listed([known(part, marks) for part in left.text.split(right.text)])
    if name == "..":
        return _range(left, right)
    return Value(marks=marks, guess="", kind="data")


def _sum(left: Value, right: Value, marks: frozenset[str]) -> Value:
    if left.items is not None:
        return listed((*left.items, *flat(right)))
    if left.kind == "int" or left.text is None or right.text is None:
        first, second = integer(left), integer(right)
        if left.kind == "int" and first is not None and second is not None:
            return known(str(first + second), marks, "int")
    return joined((left, right)).marked(marks)


def _formatted(pattern: str, items: Sequence[Value], marks: frozenset[str]) -> Value:
    parts: list[Value] = []
    at = 0
    for match in re.finditer(r"\{\{|\}\}|\{(\d+)([^}]*)\}", pattern):
        parts.append(known(pattern[at : match.start()]))
        at = match.end()
        if match[1] is None:
            parts.append(known(match[0][0]))
        elif match[2] or int(match[1]) >= len(items):
            parts.append(UNKNOWN)
        else:
            parts.append(items[int(match[1])])
    return joined((*parts, known(pattern[at:]))).marked(marks)


def _replaced(left: Value, right: Value, marks: frozenset[str]) -> Value:
    """`-replace`, where the pattern has no signs but escaped ones and the new text no `$`."""
    new = flat(right)
    pattern = new[0].text
    by = new[1].text if len(new) > 1 else ""
    if left.text is None or pattern is None or by is None or "$" in by:
        return Value(marks=marks, kind="data")
    plain = re.sub(r"\\([^A-Za-z0-9])", "", pattern)
    if re.search(r"[\\^$.|?*+(){}\[\]]", plain):
        return Value(marks=marks, kind="data")
    literal = re.sub(r"\\([^A-Za-z0-9])", r"\1", pattern)
    return known(re.sub(re.escape(literal), by.replace("\\", r"\\"), left.text, flags=re.IGNORECASE), marks)


def _range(left: Value, right: Value) -> Value:
    first, last = integer(left), integer(right)
    if first is None or last is None or abs(last - first) >= MAX_ITEMS:
        return UNKNOWN
    step = 1 if last >= first else -1
    return listed([known(str(number), kind="int") for number in range(first, last + step, step)])


def index(value: Value, at: Value) -> Value:
    """`value[at]`."""
    if value.table is not None:
        return next((item for name, item in value.table if name == (at.text or "").lower()), UNKNOWN)
    source = (
        value.items
        if value.items is not None
        else tuple(map(known, value.text or ""))
        if value.kind == "string"
        else None
    )
    numbers = [integer(item) for item in flat(at)]
    if source is None or any(number is None or not -len(source) <= number < len(source) for number in numbers):
        return Value(marks=value.marks)
    found = [source[number].marked(value.marks) for number in numbers if number is not None]
    return found[0] if len(found) == 1 else listed(found)


def method(value: Value, name: str, arguments: Sequence[Value]) -> Value | None:
    """What a method of a text gives; None when it is not worked out here."""
    texts = [argument.text for argument in arguments]
    text = value.text
    if text is None or any(item is None for item in texts) or value.items is not None:
        return None
    given = [item or "" for item in texts]
    marks = value.marks.union(*(argument.marks for argument in arguments))
    match name, given:
        case ("replace", [old, new]) if old:
            return known(text.replace(old, new), marks)
        case ("tolower" | "tolowerinvariant", []):
            return known(text.lower(), marks)
        case ("toupper" | "toupperinvariant", []):
            return known(text.upper(), marks)
        case ("tostring", []):
            return known(text, marks)
        case ("trim", []):
            return known(text.strip(), marks)
        case ("insert", [at, what]) if at.isdigit():
            return known(text[: int(at)] + what + text[int(at) :], marks)
        case ("substring" | "remove", [at]) if at.isdigit():
            return known(text[int(at) :] if name == "substring" else text[: int(at)], marks)
        case ("substring", [at, length]) if at.isdigit() and length.isdigit():
            return known(text[int(at) :][: int(length)], marks)
        case ("remove", [at, length]) if at.isdigit() and length.isdigit():
            return known(text[: int(at)] + text[int(at) + int(length) :], marks)
        case ("split", [by]) if by:
            return listed([known(part, marks) for part in re.split(f"[{re.escape(by)}]", text)])
        case ("tochararray", []):
            return listed([known(char, marks) for char in text[: MAX_ITEMS + 1]])
        case _:
            return None


def static(kind: str, name: str, arguments: Sequence[Value]) -> Value | None:
    """What a static method gives that makes text of text; None when it is not worked out here."""
    marks = frozenset[str]().union(*(argument.marks for argument in arguments))
    if kind == "convert" and name == "frombase64string" and arguments and arguments[0].text is not None:
        raw = decoded_base64(arguments[0].text)
        return Value(None, raw.decode("latin-1"), marks=marks, kind="bytes") if raw is not None else None
    if kind == "string" and name == "join" and len(arguments) > 1 and arguments[0].text is not None:
        return binary("join", listed([item for argument in arguments[1:] for item in flat(argument)]), arguments[0])
    if kind == "string" and name == "concat":
        return joined([item for argument in arguments for item in flat(argument)])
    if kind == "string" and name == "format" and arguments and arguments[0].text is not None:
        return binary("f", arguments[0], listed([item for argument in arguments[1:] for item in flat(argument)]))
    if kind in ("text.encoding", "text.utf8encoding") and name == "getstring":
        return _decoded(arguments[0], "utf-8", marks) if arguments else None
    if kind == "io.path" and name == "combine" and all(argument.text is not None for argument in arguments):
        return known("\\".join((argument.text or "").rstrip("\\/") for argument in arguments), marks)
    return None


def decoded_base64(text: str) -> bytes | None:
    """The bytes of a text in base64, padded or not."""
    bare = re.sub(r"\s", "", text).rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def decoded_text(value: Value, encoding: str) -> Value:
    """The text that bytes stand for."""
    return _decoded(value, encoding, value.marks)


def _decoded(value: Value, encoding: str, marks: frozenset[str]) -> Value:
    if value.kind == "bytes":
        return known(value.guess.encode("latin-1", "replace").decode(encoding, "replace"), marks)
    numbers = [integer(item) for item in flat(value)]
    if value.items is not None and all(number is not None and 0 <= number < 256 for number in numbers):
        return known(bytes(number or 0 for number in numbers).decode(encoding, "replace"), marks)
    return Value(marks=marks)
