"""Steps of a workflow: calls of other tools, each judged and recorded on its own, and the report on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import anyio

from handrail import (
    AmbiguousElement,
    Denied,
    Downstream,
    InvalidArguments,
    NoSandbox,
    NotFound,
    StaleElement,
    Stopped,
    TimedOut,
    ToolContext,
    ToolError,
    ToolResult,
    ToolUnavailable,
)

T = TypeVar("T")

POLL_INTERVAL_S = 0.1
# Letters of a step that are told.
MAX_STEP_CHARS = 200

# A step that failed fails the workflow, for the same reason.
ERROR_TYPES: dict[str, type[ToolError]] = {
    kind.code: kind
    for kind in (
        AmbiguousElement,
        Denied,
        InvalidArguments,
        NoSandbox,
        NotFound,
        StaleElement,
        Stopped,
        TimedOut,
        ToolUnavailable,
    )
}


class FileTextService(Protocol):
    """The service `file_texts`."""

    async def read(self, path: Path, named: str) -> str:
        """Return the complete text of a judged file, with its own line ends."""
        ...

    def diff(self, before: str, after: str, named: str) -> str:
        """Return the line diff; truncated if it is too long to read."""
        ...


@dataclass(slots=True)
class WorkflowSteps:
    """Steps of one workflow, in order."""

    context: ToolContext
    taken: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def look(self, tool: str, **args: Any) -> ToolResult:
        """Make a call that only reads: judged and recorded, but not counted as a step."""
        return ensure_succeeded(await self.context.call(tool, args), tool)

    async def take(self, tool: str, *, untold: str = "", **args: Any) -> ToolResult:
        """Take a step; its failure ends the workflow.

        `untold` names an argument that must not be reported, because the caller may not know its value.
        """
        return ensure_succeeded(await self.attempt(tool, untold=untold, **args), tool)

    async def attempt(self, tool: str, *, untold: str = "", **args: Any) -> ToolResult:
        """Take a step that may fail; a denied or cancelled one still ends the workflow. `untold` as for `take`."""
        self.context.checkpoint()
        result = await self.context.call(tool, args)
        self.taken.append(_describe_step(tool, {key: value for key, value in args.items() if key != untold}, result))
        if result.status in ("denied", "cancelled"):
            ensure_succeeded(result, tool)
        return result

    def note(self, did: str, **more: Any) -> None:
        """Something that was found out on the way, which no call says."""
        self.taken.append({"did": did, **more})

    @contextmanager
    def told(self) -> Generator[None]:
        """Add the steps taken so far to an error of the workflow."""
        try:
            yield
        except ToolError as exc:
            exc.details = {**exc.details, "steps_taken": self.taken}
            raise


def ensure_succeeded(result: ToolResult, tool: str) -> ToolResult:
    """Return the result if it succeeded; raise its error as an error of this call otherwise."""
    if result.ok:
        return result
    error = result["error"]
    kind = ERROR_TYPES.get(error["code"], Denied if result.status == "denied" else Downstream)
    said = " ".join(str(result.get("stderr") or "").split())[-MAX_STEP_CHARS:]
    raise kind(f"{tool} failed: {error['message']}{f': {said}' if said else ''}", details=dict(error["details"]))


async def wait_for_value(find: Callable[[], Awaitable[T]], timeout: float) -> T:
    """Return the first true value, or the last value at the timeout (seconds)."""
    deadline = anyio.current_time() + timeout
    while not (found := await find()) and anyio.current_time() < deadline:
        await anyio.sleep(POLL_INTERVAL_S)
    return found


def _describe_step(tool: str, args: dict[str, Any], result: ToolResult) -> dict[str, Any]:
    did = result.get("description") or ", ".join(f"{key}={value!r}" for key, value in args.items())
    told: dict[str, Any] = {"tool": tool, "did": str(did)[:MAX_STEP_CHARS], "status": result.status}
    told |= {key: result[key] for key in ("effect", "evidence") if result.get(key)}
    if not result.ok:
        told["error"] = str(result["error"]["message"])[:MAX_STEP_CHARS]
    return told
