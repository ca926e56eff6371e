"""YAML, edited at the places where its parser says that things stand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import yaml

from handrail.json_types import is_object
from handrail_mcp.setup.config_format import ConfigFormat, MalformedConfigError, get_table, nest_value

# How far what is below a key is set in.
INDENT = 2


class YamlFormat(ConfigFormat):
    """YAML of one document."""

    def read(self, text: str) -> dict[str, Any]:
        try:
            content: Any = yaml.safe_load(text)
        except yaml.MarkedYAMLError as exc:
            mark = exc.problem_mark
            raise MalformedConfigError(exc.problem or "it cannot be read", mark.line + 1 if mark else None) from exc
        except (yaml.YAMLError, RecursionError) as exc:
            raise MalformedConfigError(str(exc) or "it is nested too deep") from exc
        if content is None:
            return {}
        if not is_object(content):
            raise MalformedConfigError("it is not a mapping", 1)
        return content

    def put(self, text: str, path: Sequence[str], value: Any) -> str:
        parent = yaml.compose(text, yaml.SafeLoader)
        if parent is None:
            return f"{_end_with_newline(text)}{_render_yaml(nest_value(path, value), 0)}"
        if not isinstance(parent, yaml.MappingNode):
            # A document that is begun, and says nothing so far.
            before, after = text[: parent.start_mark.index], text[parent.end_mark.index :]
            return f"{_end_with_newline(before)}{_render_yaml(nest_value(path, value), 0)}{after}"
        for index, key in enumerate(path):
            if _is_flow_mapping(parent):
                return _rewrite_flow_mapping(text, parent, path[index:], value)
            found = _find_pair(parent, key)
            rest = nest_value(path[index + 1 :], value)
            if found is None:
                return _append_entry(text, parent, {key: rest})
            name, below = found
            column = name.start_mark.column
            if index < len(path) - 1 and _is_empty_node(below):
                return _fill_empty_value(text, name, below, _render_yaml(rest, column + INDENT))
            if index == len(path) - 1 or not isinstance(below, yaml.MappingNode):
                return _replace_entry(text, name, below, _render_yaml({key: rest}, column)[column:])
            parent = below
        return text

    def drop(self, text: str, path: Sequence[str]) -> str:
        if not _has_path(self.read(text), path):
            return text
        parent = yaml.compose(text, yaml.SafeLoader)
        holder: tuple[yaml.Node, yaml.Node] | None = None
        for depth, key in enumerate(path[:-1]):
            assert isinstance(parent, yaml.MappingNode)
            if _is_flow_mapping(parent):
                return _rewrite_flow_mapping(text, parent, path[depth:], None)
            holder = _find_pair(parent, key)
            assert holder is not None
            parent = holder[1]
        assert isinstance(parent, yaml.MappingNode)
        if _is_flow_mapping(parent):
            return _rewrite_flow_mapping(text, parent, path[-1:], None)
        found = _find_pair(parent, path[-1])
        assert found is not None
        start = text.rfind("\n", 0, found[0].start_mark.index) + 1
        before, after = text[:start], text[_find_next_line(text, _find_content_end(found[1])) :]
        if len(parent.value) == 1 and holder is not None:
            colon = text.index(":", holder[0].end_mark.index) + 1
            before = f"{before[:colon]} {{}}{before[colon:]}"
        return before + after


def _has_path(content: dict[str, Any], path: Sequence[str]) -> bool:
    return path[-1] in get_table(content, path[:-1])


def _find_pair(parent: yaml.Node, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    assert isinstance(parent, yaml.MappingNode)
    found = [pair for pair in parent.value if isinstance(pair[0], yaml.ScalarNode) and pair[0].value == key]
    if len(found) > 1:
        raise MalformedConfigError(f"the key {key!r} is there twice", found[1][0].start_mark.line + 1)
    return found[0] if found else None


def _is_flow_mapping(node: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and bool(node.flow_style) and bool(node.value)


def _find_content_end(node: yaml.Node) -> int:
    """Return the offset of the end of a node's content.

    The end mark of a block collection is after the comments that follow it, so the mark of its last value is used.
    """
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return _find_content_end(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return _find_content_end(node.value[-1])
    return node.end_mark.index


def _find_next_line(text: str, at: int) -> int:
    """Return the offset of the first line start at or after this offset."""
    if at and text[at - 1] == "\n":
        return at
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline + 1


def _get_indent(text: str, key: yaml.Node) -> int:
    """Return the indentation of the line of a key, which may follow a question mark."""
    line = text[text.rfind("\n", 0, key.start_mark.index) + 1 : key.start_mark.index]
    return len(line) - len(line.lstrip(" "))


def _end_with_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _append_entry(text: str, parent: yaml.Node, content: dict[str, Any]) -> str:
    assert isinstance(parent, yaml.MappingNode)
    if not parent.value:
        return text[: parent.start_mark.index] + _render_yaml(content, 0) + text[parent.end_mark.index :].lstrip("\n")
    at = _find_next_line(text, _find_content_end(parent))
    before = _end_with_newline(text[:at])
    return f"{before}{_render_yaml(content, _get_indent(text, parent.value[0][0]))}{text[at:]}"


def _is_empty_node(node: yaml.Node) -> bool:
    return not node.value


def _fill_empty_value(text: str, name: yaml.Node, value: yaml.Node, new: str) -> str:
    """Insert `new` below a key that has an empty value; a comment on the key's line stays there."""
    colon = text.index(":", name.end_mark.index) + 1
    end = max(_find_content_end(value), colon)
    line_end = _find_next_line(text, end)
    return f"{_end_with_newline(text[:colon] + text[end:line_end])}{new}{text[line_end:]}"


def _replace_entry(text: str, name: yaml.Node, value: yaml.Node, new: str) -> str:
    """Replace a key and its value with `new`; what follows on the last line stays."""
    end = max(_find_content_end(value), text.index(":", name.end_mark.index) + 1)
    new = new if text[end - 1] == "\n" else new.removesuffix("\n")
    return text[: name.start_mark.index] + new + text[end:]


def _rewrite_flow_mapping(text: str, node: yaml.Node, path: Sequence[str], value: Any) -> str:
    """Rewrite a flow mapping as JSON with a new value at the path; a value of None removes the key.

    Raises `MalformedConfigError` for a mapping with comments, or with aliases to anchors outside of it.
    """
    start, end = node.start_mark.index, node.end_mark.index
    if "#" in text[start:end]:
        raise MalformedConfigError("there are comments in a mapping of one line", node.start_mark.line + 1)
    try:
        content = yaml.safe_load(text[start:end])
    except yaml.YAMLError as exc:
        # A name for what stands elsewhere.
        raise MalformedConfigError("a mapping of one line cannot be read by itself", node.start_mark.line + 1) from exc
    inner = content
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return text[:start] + json.dumps(content, ensure_ascii=False) + text[end:]


def _render_yaml(content: dict[str, Any], column: int) -> str:
    lines = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=math.inf).splitlines(keepends=True)
    return "".join(" " * column + line for line in lines)
