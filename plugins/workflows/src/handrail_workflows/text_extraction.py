"""The tool `extract_text`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from handrail import BackendUnavailable, Downstream, Read, Run, Screen, ToolContext, tool
from handrail_workflows.file_dialogs import LINUX_ONLY
from handrail_workflows.steps import WorkflowSteps
from handrail_workflows.windows import bring_to_front, find_active_window, find_app_windows, list_windows, read_elements

TEXT_ROLES = frozenset(
    ("label", "text", "document", "heading", "paragraph", "section", "link", "cell", "list item", "caption")
)


@tool(
    layer="workflow",
    title="Extract text",
    effects=[Read("screen"), Run("steps")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=90,
    loadable=True,
)
async def extract_text(
    source: Annotated[
        Literal["accessibility", "browser", "ocr"] | None, Field(description="Default: the first that has any.")
    ] = None,
    window: Annotated[str | None, Field(description="Title, process or window id. Default: the active window.")] = None,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """The text that a window shows, and the source that gave it: its accessibility tree, the browser tool's page, or text recognition."""
    steps = WorkflowSteps(context)
    with steps.told():
        if window is not None:
            await bring_to_front(steps, find_app_windows(await list_windows(steps), window)[0])
        for kind in (source,) if source else ("accessibility", "ocr"):
            try:
                text = await _EXTRACTORS[kind](steps)
            except BackendUnavailable as exc:
                if source is not None:
                    raise
                raise Downstream(f"its program tells of no text, and its picture cannot be read: {exc}") from exc
            if text.strip():
                return {"text": text, "source": kind, "steps_taken": steps.taken}
    raise Downstream(f"no text was found by {source or 'accessibility or ocr'}")


async def _extract_from_tree(steps: WorkflowSteps) -> str:
    lines: list[str] = []
    for part in await read_elements(steps):
        if part.role not in TEXT_ROLES or "offscreen" in part.states:
            continue
        if part.role == "text" and "password" not in part.states:
            read = await steps.look("execute_accessible", action="read", element_id=part.id)
            lines.append(read.get("text") or part.name)
        else:
            lines.append(part.name or part.value)
    kept = [line for at, line in enumerate(lines) if line and (at == 0 or line != lines[at - 1])]
    return "\n".join(kept)


async def _extract_from_browser(steps: WorkflowSteps) -> str:
    return str((await steps.take("execute_browser", action="extract_text"))["content"])


async def _extract_from_pixels(steps: WorkflowSteps) -> str:
    screen: Screen = await steps.context.service("screen")
    now = await find_active_window(steps)
    frame = await screen.capture(now.rect)
    answered = await steps.context.vision.ask({"ocr"}, lambda backend: backend.parse(frame, ""))
    read = sorted(
        (e for e in answered.value if e.text and e.rect), key=lambda e: (e.rect.y // 12, e.rect.x) if e.rect else ()
    )
    return "\n".join(element.text for element in read)


_EXTRACTORS = {"accessibility": _extract_from_tree, "browser": _extract_from_browser, "ocr": _extract_from_pixels}
