"""Parsing of JSON lines from a host, and errors for invalid lines."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any

from handrail.json_types import is_mapping, is_sequence
from handrail.text import format_suggestion

__all__ = ["encode_json_line"]


class OversizedLine:
    """Placeholder for a line that was too long and was discarded."""


class InvalidLine(Exception):
    """A line that means nothing here."""


def encode_json_line(value: Any) -> str:
    """Encode a value as one line of JSON that any reader accepts.

    Numbers that JSON lacks become null, and text that is not valid Unicode is escaped.
    """
    try:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
        line.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=str)
    except ValueError:
        return encode_json_line(_replace_non_finite(value))
    return line


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if is_mapping(value):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    if is_sequence(value):
        return [_replace_non_finite(item) for item in value]
    return value


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
