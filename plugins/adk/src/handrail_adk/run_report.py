"""The report of a run: what the model called, as the page that replayed plans have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from handrail import Session
from handrail.api.call import ToolCall
from handrail.api.events import Event, Judged, Proposed
from handrail.api.result import ToolResult
from handrail.api.verdict import Verdict
from handrail.audit.step_recorder import StepRecorder
from handrail.plans.html_report import write_report
from handrail.plans.plan_file import PlanStep, ReplayPlan
from handrail.plans.replay import StepResult


class ReportRecorder(StepRecorder):
    """Recorder of a session's calls from now on, with their complete results, for the report page."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._verdicts: dict[str, Verdict] = {}
        self._told: dict[str, tuple[str, float]] = {}
        self._done: list[StepResult] = []
        session.bus.subscribe(self._hear)
        session.recorder.tape = self

    def _hear(self, event: Event) -> None:
        if isinstance(event, Proposed) and event.parent is None:
            self._told[event.call_id] = event.description, perf_counter()
        elif isinstance(event, Judged):
            self._verdicts[event.call_id] = event.verdict

    def ended(self, call: ToolCall, result: ToolResult) -> None:
        """Record a call that has ended, successfully or not."""
        name, began = self._told.pop(call.call_id, ("", perf_counter()))
        error: Mapping[str, Any] = result.get("error") or {}
        self._done.append(
            StepResult(
                str(len(self._done) + 1),
                PlanStep(tool=str(call.name), name=name),
                dict(call.args),
                result,
                self._verdicts.pop(call.call_id, None),
                None if result.status == "success" else str(error.get("message", result.status)),
                attempts=1,
                seconds=perf_counter() - began,
            )
        )

    def write(self, path: Path, task: str, model: str, ending: str) -> None:
        """Write the page."""
        steps = tuple(done.step for done in self._done) or (PlanStep(tool="nothing"),)
        plan = ReplayPlan(name=task, steps=steps)
        write_report(
            path,
            plan,
            self._done,
            self._session,
            by=f"The calls were made by the model {model}; the run ended: {ending}.",
        )
