"""TOML, by tomlkit, which keeps comments, order and blanks."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table, Whitespace

from handrail.json_types import is_mapping
from handrail_mcp.setup.config_format import ConfigFormat, MalformedConfigError, get_table


class TomlFormat(ConfigFormat):
    """TOML."""

    def read(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text)
        # Also raised for an integer of too many digits, besides what is no TOML.
        except ValueError as exc:
            raise MalformedConfigError(str(exc)) from exc
        except RecursionError as exc:
            raise MalformedConfigError("it is nested too deep") from exc

    def put(self, text: str, path: Sequence[str], value: Any) -> str:
        if is_mapping(value) and not get_table(self.read(text), path):
            added = f"{_end_with_blank_line(text)}{_format_table(path, value)}"
            try:
                self.read(added)
            except MalformedConfigError:
                # The table above is written on one line, or by dotted keys.
                return _set_value(text, path, value)
            return added
        return _set_value(text, path, value)

    def drop(self, text: str, path: Sequence[str]) -> str:
        document = _parse_document(text)
        parent: Any = document
        for key in path[:-1]:
            if key not in parent:
                return text
            parent = parent[key]
        if path[-1] not in parent:
            return text
        if not _remove_table(document, path):
            del parent[path[-1]]
        left = _format_document(document)
        # The empty line before what was the last table belongs to the one before.
        return left[:-1] if left.endswith("\n\n") and not text.endswith("\n\n") else left


def _end_with_blank_line(text: str) -> str:
    """Return the text followed by an empty line, unless it is empty itself."""
    text = text if not text or text.endswith("\n") else f"{text}\n"
    return text if not text or text.endswith("\n\n") else f"{text}\n"


def _format_table(path: Sequence[str], value: Mapping[str, Any]) -> str:
    table = tomlkit.table()
    for key, item in value.items():
        table.append(key, _build_item(item))
    return f"[{'.'.join(path)}]\n{table.as_string()}"


def _build_item(value: Any) -> Any:
    if not is_mapping(value):
        made: Any = tomlkit.item
        return made(value)
    inline = tomlkit.inline_table()
    for key, item in value.items():
        inline.append(key, item)
    return inline


def _set_value(text: str, path: Sequence[str], value: Any) -> str:
    document = _parse_document(text)
    parent: Any = document
    for key in path[:-1]:
        parent = parent.setdefault(key, tomlkit.table())
    parent[path[-1]] = _build_item(value)
    return _format_document(document)


def _remove_table(holder: Container, path: Sequence[str]) -> bool:
    """Take a table with a heading out of its text, and leave the comments after it: the next table may be what they are about."""
    found = False
    for at, (key, item) in enumerate(holder.body):
        if key is None or key.key != path[0] or not isinstance(item, Table):
            continue
        if path[1:]:
            found = _remove_table(item.value, path[1:]) or found
        else:
            holder.body[at] = (None, Whitespace(_get_comments_after(item)))
            found = True
    return found


def _get_comments_after(table: Table) -> str:
    """Return the comments between the table's last value and the next heading, and those of the tables below it."""
    kept, left = "", ""
    for key, item in table.value.body:
        if key is None:
            left += item.as_string()
            continue
        if isinstance(item, Table):
            kept += _trim_to_comments(left) + _get_comments_after(item)
        left = ""
    return kept + _trim_to_comments(left)


def _trim_to_comments(blank: str) -> str:
    return blank.lstrip("\n") if "#" in blank else ""


def _parse_document(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as exc:
        raise MalformedConfigError(str(exc)) from exc


def _format_document(document: tomlkit.TOMLDocument) -> str:
    try:
        return tomlkit.dumps(document)
    except TOMLKitError as exc:
        raise MalformedConfigError(str(exc)) from exc
