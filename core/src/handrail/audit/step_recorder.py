"""Calls kept whole while a session makes them, for a plan."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handrail.api.call import ToolCall
from handrail.api.result import ToolResult
from handrail.json_types import PICTURE_KEYS
from handrail.redaction import redact_value

__all__ = ["StepRecorder"]

# What results say of whether it worked, beside their status.
CHECKED_KEYS = ("effect", "met")


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """Call that a host made, with its result. `meant`: the elements and points that its ids stood for (`selectors`)."""

    tool: str
    args: Mapping[str, Any]
    meant: Mapping[str, Any]
    result: Mapping[str, Any]
    picture: bytes | None = None


class StepRecorder:
    """Recorder that keeps the complete calls of one session for a plan, from now on.

    Set it as the `tape` of the session's recorder.
    """

    def __init__(self) -> None:
        self.made: list[RecordedStep] = []
        self._begun: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}

    def begun(self, call_id: str, args: Mapping[str, Any], meant: Mapping[str, Any]) -> None:
        """Record that a host's call is about to act.

        If the call is handed on or made again, its first form counts.
        """
        self._begun.setdefault(call_id, (args, meant))

    def ended(self, call: ToolCall, result: ToolResult) -> None:
        """Record that a host's call has ended; a call that never began did nothing and is not kept."""
        if (begun := self._begun.pop(call.call_id, None)) is None:
            return
        args, meant = (redact_value(part, whole=True) for part in begun)
        said = {key: value for key, value in result.items() if key in ("status", *CHECKED_KEYS) or key.endswith("_id")}
        self.made.append(RecordedStep(call.name, args, meant, said, _decode_picture(result)))


def _decode_picture(result: Mapping[str, Any]) -> bytes | None:
    found = next((data for key in reversed(PICTURE_KEYS) if isinstance(data := result.get(key), str)), None)
    return base64.b64decode(found) if found is not None else None
