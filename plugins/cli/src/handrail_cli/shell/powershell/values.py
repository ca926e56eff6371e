"""Values of PowerShell expressions, as far as they can be determined without running them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from handrail_cli.shell.powershell.nodes import ScriptBlock

MAX_TEXT = 20_000
MAX_ITEMS = 500
NO_MARKS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FileListing:
    """Files that a command lists: everything that `text` names or, when `within`, what is in it; `filtered` when only some of that."""

    text: str | None
    within: bool = True
    recursive: bool = False
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class PowerShellValue:
    """A value. `text` is what it is as a word, None when that is not known; `guess` the same with nothing in place of what is not known.

    `marks` tell what it was made of: `network`, `secret`, `file`, `socket`, `shadow` (backups), `missing` (a variable without a value).
    """

    text: str | None = None
    guess: str = ""
    items: tuple[PowerShellValue, ...] | None = None
    marks: frozenset[str] = NO_MARKS
    files: tuple[FileListing, ...] = ()
    block: ScriptBlock | None = None
    table: tuple[tuple[str, PowerShellValue], ...] | None = None
    kind: str = ""

    def marked(self, marks: frozenset[str]) -> PowerShellValue:
        """Return the value with additional marks."""
        return self if marks <= self.marks else replace(self, marks=self.marks | marks)


UNKNOWN_VALUE = PowerShellValue()
NULL_VALUE = PowerShellValue("", kind="null")


def create_known_value(text: str, marks: frozenset[str] = NO_MARKS, kind: str = "string") -> PowerShellValue:
    """Create a known value for a text; a text that is longer than the limit becomes unknown."""
    return (
        PowerShellValue(text, text, marks=marks, kind=kind)
        if len(text) <= MAX_TEXT
        else PowerShellValue(guess=text[:MAX_TEXT], marks=marks)
    )


def create_list(items: Sequence[PowerShellValue]) -> PowerShellValue:
    """Several values as one; a text as PowerShell makes it of a list."""
    marks = frozenset[str]().union(*(item.marks for item in items))
    files = tuple(file for item in items for file in item.files)
    if len(items) > MAX_ITEMS:
        return PowerShellValue(marks=marks, files=files)
    text = " ".join(item.text or "" for item in items) if all(item.text is not None for item in items) else None
    return PowerShellValue(text, " ".join(item.guess for item in items), tuple(items), marks, files, kind="list")


def flatten_value(value: PowerShellValue) -> tuple[PowerShellValue, ...]:
    """Return the single values in a list, or the value itself."""
    return value.items if value.items is not None else (value,)


def join_values(parts: Sequence[PowerShellValue]) -> PowerShellValue:
    """Return the concatenation of texts."""
    marks = frozenset[str]().union(*(part.marks for part in parts))
    guess = "".join(part.guess for part in parts)
    if all(part.text is not None for part in parts):
        return create_known_value("".join(part.text or "" for part in parts), marks)
    return PowerShellValue(guess=guess[:MAX_TEXT], marks=marks)


def cast_value(kind: str, value: PowerShellValue) -> PowerShellValue:
    """Return the result of `[kind]value`."""
    if kind in ("char", "char[]"):
        items = [_convert_char(item) for item in flatten_value(value)]
        if kind == "char[]" and len(items) == 1 and value.kind == "string" and value.text is not None:
            items = [create_known_value(char, value.marks) for char in value.text[:MAX_ITEMS]]
        return items[0] if len(items) == 1 and kind == "char" else create_list(items)
    if kind in ("string", "object", "void", "array", "object[]", "string[]"):
        if kind == "string" and value.text is not None:
            return create_known_value(value.text, value.marks)
        return value
    if kind in ("int", "int32", "int64", "long", "byte", "uint32", "double", "decimal"):
        number = parse_integer(value)
        return create_known_value(str(number), value.marks, "int") if number is not None else replace(value, kind="int")
    if kind in ("pscustomobject", "psobject", "hashtable", "ordered"):
        return value
    if kind == "scriptblock":
        return replace(value, block=None, kind="scriptblock")
    return PowerShellValue(value.text, value.guess, value.items, value.marks, kind=kind)


def parse_integer(value: PowerShellValue) -> int | None:
    """Return the integer that a value represents, or None."""
    text = (value.text or "").strip().lower()
    try:
        return int(text, 16) if text.startswith("0x") else int(text)
    except ValueError:
        return None


def _convert_char(value: PowerShellValue) -> PowerShellValue:
    number = parse_integer(value)
    if number is None or (value.kind == "string" and len(value.text or "") == 1):
        return value if value.text is not None and len(value.text) == 1 else PowerShellValue(marks=value.marks)
    return create_known_value(chr(number), value.marks) if 0 <= number < 0x110000 else UNKNOWN_VALUE


def apply_operator(operator: str, left: PowerShellValue, right: PowerShellValue) -> PowerShellValue:
    """Return the result of an operator; unknown if it is not supported here."""
    marks = left.marks | right.marks
    name = operator[1:] if operator[:1] in ("c", "i") and operator[1:] in ("replace", "split") else operator
    if name == "+":
        return _add_values(left, right, marks)
    if name == "*" and left.text is not None and (times := parse_integer(right)) is not None and left.kind == "string":
        return (
            create_known_value(left.text * times, marks)
            if 0 <= times * len(left.text) <= MAX_TEXT
            else PowerShellValue(marks=marks)
        )
    if name == "f" and left.text is not None:
        return _format_value(left.text, flatten_value(right), marks)
    if name == "join" and right.text is not None:
        items = flatten_value(left)
        if all(item.text is not None for item in items):
            return create_known_value(right.text.join(item.text or "" for item in items), marks)
    if name == "replace":
        return _replace_text(left, right, marks)
    if (
        name == "split"
        and left.text is not None
        and right.text is not None
        and not re.search(r"[\\^$.|?*+(){}\[\]]", right.text)
        and right.text
    ):
        return create_list([create_known_value(part, marks) for part in left.text.split(right.text)])
    if name == "..":
        return _create_range(left, right)
    return PowerShellValue(marks=marks, guess="", kind="data")


def _add_values(left: PowerShellValue, right: PowerShellValue, marks: frozenset[str]) -> PowerShellValue:
    if left.items is not None:
        return create_list((*left.items, *flatten_value(right)))
    if left.kind == "int" or left.text is None or right.text is None:
        first, second = parse_integer(left), parse_integer(right)
        if left.kind == "int" and first is not None and second is not None:
            return create_known_value(str(first + second), marks, "int")
    return join_values((left, right)).marked(marks)


def _format_value(pattern: str, items: Sequence[PowerShellValue], marks: frozenset[str]) -> PowerShellValue:
    parts: list[PowerShellValue] = []
    at = 0
    for match in re.finditer(r"\{\{|\}\}|\{(\d+)([^}]*)\}", pattern):
        parts.append(create_known_value(pattern[at : match.start()]))
        at = match.end()
        if match[1] is None:
            parts.append(create_known_value(match[0][0]))
        elif match[2] or int(match[1]) >= len(items):
            parts.append(UNKNOWN_VALUE)
        else:
            parts.append(items[int(match[1])])
    return join_values((*parts, create_known_value(pattern[at:]))).marked(marks)


def _replace_text(left: PowerShellValue, right: PowerShellValue, marks: frozenset[str]) -> PowerShellValue:
    """Return the result of `-replace`; known only for a pattern of literals and a new text without `$`."""
    new = flatten_value(right)
    pattern = new[0].text
    by = new[1].text if len(new) > 1 else ""
    if left.text is None or pattern is None or by is None or "$" in by:
        return PowerShellValue(marks=marks, kind="data")
    plain = re.sub(r"\\([^A-Za-z0-9])", "", pattern)
    if re.search(r"[\\^$.|?*+(){}\[\]]", plain):
        return PowerShellValue(marks=marks, kind="data")
    literal = re.sub(r"\\([^A-Za-z0-9])", r"\1", pattern)
    return create_known_value(
        re.sub(re.escape(literal), by.replace("\\", r"\\"), left.text, flags=re.IGNORECASE), marks
    )


def _create_range(left: PowerShellValue, right: PowerShellValue) -> PowerShellValue:
    first, last = parse_integer(left), parse_integer(right)
    if first is None or last is None or abs(last - first) >= MAX_ITEMS:
        return UNKNOWN_VALUE
    step = 1 if last >= first else -1
    return create_list([create_known_value(str(number), kind="int") for number in range(first, last + step, step)])


def index_value(value: PowerShellValue, at: PowerShellValue) -> PowerShellValue:
    """Return the result of `value[at]`."""
    if value.table is not None:
        return next((item for name, item in value.table if name == (at.text or "").lower()), UNKNOWN_VALUE)
    source = (
        value.items
        if value.items is not None
        else tuple(map(create_known_value, value.text or ""))
        if value.kind == "string"
        else None
    )
    numbers = [parse_integer(item) for item in flatten_value(at)]
    if source is None or any(number is None or not -len(source) <= number < len(source) for number in numbers):
        return PowerShellValue(marks=value.marks)
    found = [source[number].marked(value.marks) for number in numbers if number is not None]
    return found[0] if len(found) == 1 else create_list(found)


def call_method(value: PowerShellValue, name: str, arguments: Sequence[PowerShellValue]) -> PowerShellValue | None:
    """Return the result of a text's method; None if it is not supported here."""
    texts = [argument.text for argument in arguments]
    text = value.text
    if text is None or any(item is None for item in texts) or value.items is not None:
        return None
    given = [item or "" for item in texts]
    marks = value.marks.union(*(argument.marks for argument in arguments))
    match name, given:
        case ("replace", [old, new]) if old:
            return create_known_value(text.replace(old, new), marks)
        case ("tolower" | "tolowerinvariant", []):
            return create_known_value(text.lower(), marks)
        case ("toupper" | "toupperinvariant", []):
            return create_known_value(text.upper(), marks)
        case ("tostring", []):
            return create_known_value(text, marks)
        case ("trim", []):
            return create_known_value(text.strip(), marks)
        case ("insert", [at, what]) if at.isdigit():
            return create_known_value(text[: int(at)] + what + text[int(at) :], marks)
        case ("substring" | "remove", [at]) if at.isdigit():
            return create_known_value(text[int(at) :] if name == "substring" else text[: int(at)], marks)
        case ("substring", [at, length]) if at.isdigit() and length.isdigit():
            return create_known_value(text[int(at) :][: int(length)], marks)
        case ("remove", [at, length]) if at.isdigit() and length.isdigit():
            return create_known_value(text[: int(at)] + text[int(at) + int(length) :], marks)
        case ("split", [by]) if by:
            return create_list([create_known_value(part, marks) for part in re.split(f"[{re.escape(by)}]", text)])
        case ("tochararray", []):
            return create_list([create_known_value(char, marks) for char in text[: MAX_ITEMS + 1]])
        case _:
            return None


def call_static_method(kind: str, name: str, arguments: Sequence[PowerShellValue]) -> PowerShellValue | None:
    """Return the result of a static method that converts text to text; None if it is not supported here."""
    marks = frozenset[str]().union(*(argument.marks for argument in arguments))
    if kind == "convert" and name == "frombase64string" and arguments and arguments[0].text is not None:
        raw = decode_base64(arguments[0].text)
        return PowerShellValue(None, raw.decode("latin-1"), marks=marks, kind="bytes") if raw is not None else None
    if kind == "string" and name == "join" and len(arguments) > 1 and arguments[0].text is not None:
        return apply_operator(
            "join", create_list([item for argument in arguments[1:] for item in flatten_value(argument)]), arguments[0]
        )
    if kind == "string" and name == "concat":
        return join_values([item for argument in arguments for item in flatten_value(argument)])
    if kind == "string" and name == "format" and arguments and arguments[0].text is not None:
        return apply_operator(
            "f", arguments[0], create_list([item for argument in arguments[1:] for item in flatten_value(argument)])
        )
    if kind in ("text.encoding", "text.utf8encoding") and name == "getstring":
        return _decode_bytes(arguments[0], "utf-8", marks) if arguments else None
    if kind == "io.path" and name == "combine" and all(argument.text is not None for argument in arguments):
        return create_known_value("\\".join((argument.text or "").rstrip("\\/") for argument in arguments), marks)
    return None


def decode_base64(text: str) -> bytes | None:
    """Decode a base64 text, padded or not; None if it is invalid."""
    bare = re.sub(r"\s", "", text).rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def decode_text(value: PowerShellValue, encoding: str) -> PowerShellValue:
    """Decode bytes into the text they represent."""
    return _decode_bytes(value, encoding, value.marks)


def _decode_bytes(value: PowerShellValue, encoding: str, marks: frozenset[str]) -> PowerShellValue:
    if value.kind == "bytes":
        return create_known_value(value.guess.encode("latin-1", "replace").decode(encoding, "replace"), marks)
    numbers = [parse_integer(item) for item in flatten_value(value)]
    if value.items is not None and all(number is not None and 0 <= number < 256 for number in numbers):
        return create_known_value(bytes(number or 0 for number in numbers).decode(encoding, "replace"), marks)
    return PowerShellValue(marks=marks)
