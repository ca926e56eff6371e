"""The session's memory of its last calls."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from handrail.api.call import Invocation, ToolCall
from handrail.api.result import ToolResult
from handrail.api.verdict import Verdict
from handrail.json_types import PICTURE_KEYS

log = logging.getLogger(__name__)

MAX_RECORDS = 50
MAX_SUMMARY_CHARS = 500

# Keys whose values are pictures or other bytes: large, and of no use in a summary.
BULKY_KEYS = frozenset({*PICTURE_KEYS, "media", "ui_elements"})


@dataclass(slots=True)
class HistoryRecord:
    """Record of a finished call. `at` is Unix time in seconds; `verdict` is None if the call was never judged."""

    call: ToolCall
    verdict: Verdict | None
    result: Mapping[str, Any]
    at: float
    invocation: Invocation | None = None

    @property
    def command(self) -> str:
        """One-line description of the call."""
        if self.invocation is not None:
            return self.invocation.describe()
        return f"{self.call.name} {json.dumps(self.call.args, ensure_ascii=False, default=str)}"[:MAX_SUMMARY_CHARS]

    @property
    def summary(self) -> str:
        """The result in at most 500 characters."""
        shown = {key: value for key, value in self.result.items() if key not in BULKY_KEYS}
        try:
            text = json.dumps(shown, ensure_ascii=False, default=str)
        except Exception as exc:  # noqa: BLE001 # a handler may return anything: cycles, depths, objects that fail to print
            text = json.dumps({"status": self.result["status"], "note": f"it cannot be shown ({type(exc).__name__})"})
        return text if len(text) <= MAX_SUMMARY_CHARS else f"{text[: MAX_SUMMARY_CHARS - 1]}…"

    def wire(self) -> dict[str, Any]:
        """Return the record in the form of `get_action_history`."""
        return {
            "call_id": self.call.call_id,
            "tool": self.call.name,
            "command": self.command,
            "result": self.summary,
            "timestamp": datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds"),
            "decision": self.verdict.decision if self.verdict else None,
            "rule": self.verdict.rule if self.verdict else None,
            "status": self.result["status"],
            "duration_ms": self.result.get("duration_ms"),
            **self._forms(),
            **self._undo(),
        }

    def _undo(self) -> dict[str, Any]:
        """Return what would undo the call, if its tool provides that."""
        undo = self.invocation.tool.undo if self.invocation is not None else None
        if undo is None or self.invocation is None or self.result["status"] != "success":
            return {}
        try:
            told = undo(self.invocation.params, self.result)
        # Plugin code, and an observer may have left something else of the result.
        except Exception:
            log.exception("%s does not say how it is undone", self.call.name)
            return {}
        return {"undo": told[:MAX_SUMMARY_CHARS]} if told else {}

    def _forms(self) -> dict[str, Any]:
        """Return the originally requested call if it was changed."""
        if self.invocation is None or self.invocation.before is None:
            return {}
        return {"asked_for": self.invocation.earlier_forms()[0].describe()}


class CallHistory:
    """The last 50 top-level calls, oldest first. `total` counts all there ever were."""

    __slots__ = ("_ring", "total")

    def __init__(self) -> None:
        self._ring: deque[HistoryRecord] = deque(maxlen=MAX_RECORDS)
        self.total = 0

    def add(self, call: ToolCall, invocation: Invocation | None, verdict: Verdict | None, result: ToolResult) -> None:
        """Remember a finished call, without what is large in it."""
        kept: Mapping[str, Any] = result
        if not BULKY_KEYS.isdisjoint(result):
            kept = {key: value for key, value in result.items() if key not in BULKY_KEYS}
        self._ring.append(HistoryRecord(call, verdict, kept, time.time(), invocation))
        self.total += 1

    def last(self, n: int = MAX_RECORDS) -> list[HistoryRecord]:
        """Return the newest `n` records, oldest first."""
        return list(self._ring)[-n:] if n > 0 else []
