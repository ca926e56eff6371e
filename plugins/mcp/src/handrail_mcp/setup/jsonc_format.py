"""JSON as people keep it, with comments and commas after the last member."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from handrail.json_types import is_object
from handrail_mcp.setup.config_format import ConfigFormat, MalformedConfigError, nest_value

STRING = r'"(?:[^"\\\n]|\\.)*"'
COMMENTS = re.compile(rf"{STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
# A comma with nothing before it is none of these, and is taken first.
LAST_COMMAS = re.compile(rf"{STRING}|[{{\[]\s*,|,(?=\s*[}}\]])", re.DOTALL)
# What may follow a member on its line without being of the next.
REST_OF_LINE = re.compile(r"(?:[ \t]|/\*(?:[^*\n]|\*(?!/))*\*/)*(?://[^\n]*)?(?=\n|\Z)")
SPACE = re.compile(r"\s*")
DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _JsonMember:
    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class _JsonObject:
    """Offsets at which an object opens and closes, and its members."""

    start: int
    close: int
    members: tuple[_JsonMember, ...]

    def member(self, key: str) -> _JsonMember | None:
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise MalformedConfigError(f"the key {key!r} is there twice")
        return found[0] if found else None


class JsoncFormat(ConfigFormat):
    """JSON, with comments and trailing commas where there are some."""

    def read(self, text: str) -> dict[str, Any]:
        plain = _blank_to_strict_json(text)
        if not plain.strip():
            return {}
        try:
            content: Any = json.loads(plain)
        except json.JSONDecodeError as exc:
            raise MalformedConfigError(exc.msg, exc.lineno) from exc
        except RecursionError as exc:
            raise MalformedConfigError("it is nested too deep") from exc
        if not is_object(content):
            raise MalformedConfigError("it is not an object", 1)
        return content

    def put(self, text: str, path: Sequence[str], value: Any) -> str:
        plain = _blank_to_strict_json(text)
        if not plain.strip():
            before = f"{text.rstrip()}\n" if text.strip() else ""
            return f"{before}{_render_json(nest_value(path, value), '', '  ')}\n"
        parent = _parse_root(plain)
        unit = _get_indent_unit(text, parent)
        for index, key in enumerate(path):
            member = parent.member(key)
            if member is None:
                return _insert_member(text, parent, key, nest_value(path[index + 1 :], value), unit)
            if plain[member.value] != "{" or index == len(path) - 1:
                new = _render_json(nest_value(path[index + 1 :], value), _get_indent(text, member.start), unit)
                return text[: member.value] + new + text[member.end :]
            parent = _parse_object(plain, member.value)
        return text

    def drop(self, text: str, path: Sequence[str]) -> str:
        plain = _blank_to_strict_json(text)
        if not plain.strip():
            return text
        parent = _parse_root(plain)
        for key in path[:-1]:
            member = parent.member(key)
            if member is None or plain[member.value] != "{":
                return text
            parent = _parse_object(plain, member.value)
        member = parent.member(path[-1])
        return text if member is None else _remove_member(text, parent, member)


def _blank_to_strict_json(text: str) -> str:
    """Convert to strict JSON with all offsets unchanged, by blanking comments and trailing commas."""
    return LAST_COMMAS.sub(lambda match: " " if match[0] == "," else match[0], _blank_comments(text))


def _blank_comments(text: str) -> str:
    return COMMENTS.sub(_blank_match, text)


def _blank_match(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])


def _skip_space(plain: str, at: int) -> int:
    match = SPACE.match(plain, at)
    assert match is not None
    return match.end()


def _parse_root(plain: str) -> _JsonObject:
    return _parse_object(plain, _skip_space(plain, 0))


def _parse_object(plain: str, start: int) -> _JsonObject:
    members = tuple(_iter_members(plain, start))
    last = members[-1].end if members else start + 1
    return _JsonObject(start, _skip_space(plain, last), members)


def _iter_members(plain: str, start: int) -> Iterator[_JsonMember]:
    at = _skip_space(plain, start + 1)
    while plain[at] != "}":
        key, end = DECODER.raw_decode(plain, at)
        value = _skip_space(plain, _skip_space(plain, end) + 1)
        _, end = DECODER.raw_decode(plain, value)
        yield _JsonMember(key, at, value, end)
        at = _skip_space(plain, end)
        if plain[at] == ",":
            at = _skip_space(plain, at + 1)


def _get_indent(text: str, at: int) -> str:
    """Return the indentation of the line that contains this offset."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _get_indent_unit(text: str, root: _JsonObject) -> str:
    """Return one level of indentation as used in the file; two spaces by default."""
    return (_get_indent(text, root.members[0].start) if _is_multiline(text, root) else "") or "  "


def _is_multiline(text: str, one: _JsonObject) -> bool:
    """Return True if the members are on lines of their own."""
    return bool(one.members) and "\n" in text[one.start : one.members[0].start]


def _insert_member(text: str, parent: _JsonObject, key: str, value: Any, unit: str) -> str:
    name = json.dumps(key, ensure_ascii=False)
    if not parent.members:
        outer = _get_indent(text, parent.start)
        inside = text[parent.start + 1 : parent.close].rstrip()
        member = f"{name}: {_render_json(value, outer + unit, unit)}"
        return f"{text[: parent.start + 1]}{inside}\n{outer}{unit}{member}\n{outer}{text[parent.close :]}"
    last = parent.members[-1].end
    if not _is_multiline(text, parent):
        return f"{text[:last]}, {name}: {json.dumps(value, ensure_ascii=False)}{text[last:]}"
    indent = _get_indent(text, parent.members[0].start)
    comma = _blank_comments(text).find(",", last, parent.close)
    rest = REST_OF_LINE.match(text, last if comma < 0 else comma + 1)
    end = rest.end() if rest else (last if comma < 0 else comma + 1)
    member = f"\n{indent}{name}: {_render_json(value, indent, unit)}"
    if comma < 0:
        return f"{text[:last]},{text[last:end]}{member}{text[end:]}"
    return f"{text[:end]}{member},{text[end:]}"


def _remove_member(text: str, parent: _JsonObject, member: _JsonMember) -> str:
    commas = _blank_comments(text)
    index = parent.members.index(member)
    own = commas.find(",", member.end, _get_next_start(parent, index))
    start, end = member.start, member.end if own < 0 else own + 1
    if own < 0 and index > 0:
        # The one before is the last now, and its comma goes.
        before = commas.find(",", parent.members[index - 1].end, start)
        text, start, end = text[:before] + text[before + 1 :], start - 1, end - 1
    line = text.rfind("\n", 0, start) + 1
    rest = REST_OF_LINE.match(text, end)
    if text[line:start].strip() or rest is None:
        # It shares its line.
        return text[:start].rstrip(" ") + text[end:] if own < 0 else text[:start] + text[end:].lstrip(" ")
    text = text[: line - 1] + text[rest.end() :]
    if len(parent.members) == 1 and not text[parent.start + 1 :].split("}", 1)[0].strip():
        close = text.index("}", parent.start)
        return text[: parent.start + 1] + text[close:]
    return text


def _get_next_start(parent: _JsonObject, index: int) -> int:
    return parent.members[index + 1].start if index + 1 < len(parent.members) else parent.close


def _render_json(value: Any, indent: str, unit: str) -> str:
    """Format as JSON with one line for each member, and lists on a single line."""
    if not is_object(value) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + unit
    lines = (
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_render_json(item, inner, unit)}"
        for key, item in value.items()
    )
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
