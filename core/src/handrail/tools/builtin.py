"""The tools that core itself supplies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from time import monotonic
from typing import Annotated, Any, Protocol, Self

import anyio
from pydantic import BaseModel, ConfigDict, Field, model_validator

from handrail.api.context import CallContext
from handrail.api.observation import Observations
from handrail.api.result import ToolResult
from handrail.api.tool import Read, tool
from handrail.audit.history import MAX_RECORDS, CallHistory
from handrail.errors import NotFound, ToolUnavailable
from handrail.text import fold_text, format_suggestion
from handrail.undo.undo_tool import undo_call

CONDITION_POLL_S = 0.2
ELEMENT_ID = re.compile(r"e[0-9]+")


class RecordedSession(Protocol):
    """A session, as far as these tools need it."""

    @property
    def history(self) -> CallHistory: ...


class BuiltinContext(CallContext, Protocol):
    """Context of a call as these tools use it."""

    @property
    def session(self) -> RecordedSession: ...
    @property
    def observations(self) -> Observations: ...
    async def service(self, capability: str) -> Any: ...
    async def call(self, name: str, args: Mapping[str, Any]) -> ToolResult: ...


class Until(BaseModel):
    """Exactly one of them."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    text: str | None = Field(None, description="Shown in the active window.")
    element: str | None = Field(None, description="Name or id.")
    window: str | None = Field(None, description="Part of a window's title.")
    process: str | None = Field(None, description="A process_id that has ended.")

    @model_validator(mode="after")
    def _one_condition(self) -> Self:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError("give exactly one of text, element, window and process")
        return self


@tool(title="Wait", effects=[Read("windows"), Read("tree"), Read("processes")], timeout=75, trusted=True)
async def wait(
    seconds: Annotated[float, Field(ge=0.1, le=60, description="How long at most.")],
    until: Annotated[Until | None, Field(description="Stop as soon as this is so; exactly one of them.")] = None,
    *,
    context: BuiltinContext,
) -> dict[str, Any]:
    """Pause, better with a condition than long. Returns waited_seconds, and met when there was a condition."""
    began = monotonic()
    met = None if until is None else False
    while (left := seconds - (monotonic() - began)) > 0:
        if until is not None and (met := await _is_condition_met(until, context)):
            break
        await anyio.sleep(min(left, CONDITION_POLL_S if until is not None else left))
    waited = {"waited_seconds": round(monotonic() - began, 3)}
    return waited if met is None else {**waited, "met": met}


async def _is_condition_met(until: Until, context: BuiltinContext) -> bool:
    if until.window is not None:
        screen = await context.service("screen")
        return any(fold_text(until.window) in fold_text(window.title) for window in await screen.windows())
    if until.process is not None:
        return not await _is_process_running(until.process, context)
    accessibility = await context.service("accessibility")
    if until.element is not None and ELEMENT_ID.fullmatch(until.element):
        return await accessibility.refresh(context.observations.element(until.element)) is not None
    tree = await accessibility.tree(query=until.text or until.element, full=until.text is not None)
    return bool(tree.elements)


async def _is_process_running(process_id: str, context: BuiltinContext) -> bool:
    listed = await context.call("list_processes", {})
    if not listed.ok:
        raise ToolUnavailable(f"processes cannot be listed: {listed['error']['message']}")
    running = {process["process_id"]: process["running"] for process in listed["processes"]}
    if process_id not in running:
        raise NotFound(f"there is no process {process_id!r} in this session{format_suggestion(process_id, running)}")
    return running[process_id]


@tool(title="Action history", trusted=True)
async def get_action_history(
    last_n: Annotated[int, Field(ge=1, le=MAX_RECORDS, description="How many of the newest calls.")] = MAX_RECORDS,
    *,
    context: BuiltinContext,
) -> dict[str, Any]:
    """Your own last calls: actions, oldest first, and total_count. undo: what would take one back."""
    history = context.session.history
    return {"actions": [record.wire() for record in history.last(last_n)], "total_count": history.total}


BUILTIN_TOOLS = (wait, get_action_history, undo_call)
