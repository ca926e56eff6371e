"""Parsing of JSON lines from a host, and errors for invalid lines."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from handrail.text import format_suggestion


class OversizedLine:
    """Placeholder for a line that was too long and was discarded."""


class InvalidLine(Exception):
    """A line that means nothing here."""


def parse_json_line(line: bytes | OversizedLine) -> Any:
    """Parse a line of JSON; raises `InvalidLine` if it is invalid."""
    if isinstance(line, OversizedLine):
        raise InvalidLine("it is too long")
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise InvalidLine(f"this is not JSON: {exc}") from exc


def check_known_keys(asked: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise `InvalidLine` for the first key that is not known."""
    for key in asked:
        if key not in known:
            raise InvalidLine(f"unknown key {key!r}{format_suggestion(key, known)}")


def error_wire(code: str, message: str, **details: Any) -> dict[str, Any]:
    """Return the error with which a line is answered."""
    return {"code": code, "message": message, "retryable": False, "details": details}
