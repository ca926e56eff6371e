"""Editors for configuration files that keep the text unchanged except for the requested edit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from handrail.json_types import is_object


class MalformedConfigError(Exception):
    """The text is not what it should be; `line` counts from one, None where no line is to blame."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.line = line


class ConfigFormat(ABC):
    """One format. A path leads from the outermost table to a key; lines end in a line feed alone."""

    @abstractmethod
    def read(self, text: str) -> dict[str, Any]:
        """Parse the text; an empty text gives an empty table. Raises `MalformedConfigError`."""

    @abstractmethod
    def put(self, text: str, path: Sequence[str], value: Any) -> str:
        """Return the text with this value at this path, replacing any existing one and creating missing tables."""

    @abstractmethod
    def drop(self, text: str, path: Sequence[str]) -> str:
        """Return the text without the value at this path, if there is one."""


def get_table(content: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return the table at a path, empty if it is missing; `MalformedConfigError` if the value is not a table."""
    found = content
    for index, key in enumerate(path, start=1):
        below: Any = found.get(key)
        if below is None:
            return {}
        if not is_object(below):
            raise MalformedConfigError(f"{'.'.join(path[:index])!r} is not a table of servers")
        found = below
    return dict(found)


def nest_value(path: Sequence[str], value: Any) -> Any:
    """Wrap the value in nested tables, one for each key."""
    for key in reversed(path):
        value = {key: value}
    return value
