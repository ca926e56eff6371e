"""What JSON lines from a host say, and what is answered to those that say nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from handrail.words import nearest


class TooLong:
    """Stands for a line that was longer than is taken, and was thrown away."""


class BadLine(Exception):
    """A line that means nothing here."""


def parsed(line: bytes | TooLong) -> Any:
    """What a line of JSON says; `BadLine` for one that is none."""
    if isinstance(line, TooLong):
        raise BadLine("it is too long")
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise BadLine(f"this is not JSON: {exc}") from exc


def check_keys(asked: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise `BadLine` for the first key that is not known."""
    for key in asked:
        if key not in known:
            raise BadLine(f"unknown key {key!r}{nearest(key, known)}")


def error_wire(code: str, message: str, **details: Any) -> dict[str, Any]:
    """The error that answers a line."""
    return {"code": code, "message": message, "retryable": False, "details": details}
