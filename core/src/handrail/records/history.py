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

from handrail.calls.invocation import Invocation, ToolCall
from handrail.judging.verdicts import Verdict
from handrail.results.values import PICTURES, ToolResult

log = logging.getLogger(__name__)

RING = 50
SUMMARY = 500

# Keys whose values are pictures or other bytes: large, and of no use in a summary.
BULKY = frozenset({*PICTURES, "media", "ui_elements"})


@dataclass(slots=True)
class Record:
    """One finished call. `at` is unix time in seconds; `verdict` is None when the call never got to be judged."""

    call: ToolCall
    verdict: Verdict | None
    result: Mapping[str, Any]
    at: float
    invocation: Invocation | None = None

    @property
    def command(self) -> str:
        """What the call was, on one line."""
        if self.invocation is not None:
            return self.invocation.describe()
        return f"{self.call.name} {json.dumps(self.call.args, ensure_ascii=False, default=str)}"[:SUMMARY]

    @property
    def summary(self) -> str:
        """The result in at most 500 characters."""
        shown = {key: value for key, value in self.result.items() if key not in BULKY}
        try:
            text = json.dumps(shown, ensure_ascii=False, default=str)
        except Exception as exc:  # noqa: BLE001 # a handler may return anything: cycles, depths, objects that fail to print
            text = json.dumps({"status": self.result["status"], "note": f"it cannot be shown ({type(exc).__name__})"})
        return text if len(text) <= SUMMARY else f"{text[: SUMMARY - 1]}…"

    def wire(self) -> dict[str, Any]:
        """As `get_action_history` shows it."""
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
        """What would take the call back, where its tool says so."""
        undo = self.invocation.tool.undo if self.invocation is not None else None
        if undo is None or self.invocation is None or self.result["status"] != "success":
            return {}
        try:
            told = undo(self.invocation.params, self.result)
        # Plugin code, and an observer may have left something else of the result.
        except Exception:
            log.exception("%s does not say how it is undone", self.call.name)
            return {}
        return {"undo": told[:SUMMARY]} if told else {}

    def _forms(self) -> dict[str, Any]:
        """Of a call that a person changed: what was asked for."""
        if self.invocation is None or self.invocation.before is None:
            return {}
        return {"asked_for": self.invocation.earlier_forms()[0].describe()}


class History:
    """The last 50 top-level calls, oldest first. `total` counts all there ever were."""

    __slots__ = ("_ring", "total")

    def __init__(self) -> None:
        self._ring: deque[Record] = deque(maxlen=RING)
        self.total = 0

    def add(self, call: ToolCall, invocation: Invocation | None, verdict: Verdict | None, result: ToolResult) -> None:
        """Remember a finished call, without what is large in it."""
        kept: Mapping[str, Any] = result
        if not BULKY.isdisjoint(result):
            kept = {key: value for key, value in result.items() if key not in BULKY}
        self._ring.append(Record(call, verdict, kept, time.time(), invocation))
        self.total += 1

    def last(self, n: int = RING) -> list[Record]:
        """The newest `n` records, oldest first."""
        return list(self._ring)[-n:] if n > 0 else []
