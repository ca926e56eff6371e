"""Configuration files as text, edited so that nothing changes but what is asked for."""

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
        """What it says; an empty text says nothing. Raises `MalformedConfigError`."""

    @abstractmethod
    def put(self, text: str, path: Sequence[str], value: Any) -> str:
        """The text with this value at this path, in place of the one that is there; tables on the way are made."""

    @abstractmethod
    def drop(self, text: str, path: Sequence[str]) -> str:
        """The text without what is at this path, where something is."""


def get_table(content: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The table at a path; an empty one where nothing is. Raises `MalformedConfigError` where something else is."""
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
    """The value inside tables, one for each key."""
    for key in reversed(path):
        value = {key: value}
    return value
