"""The tool `extract_text`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from handrail import BackendUnavailable, Downstream, Read, Run, Screen, ToolContext, tool
from handrail_workflows.dialogs import LINUX
from handrail_workflows.steps import Steps
from handrail_workflows.windows import active_window, bring_forward, of_app, parts, windows

SAYING = frozenset(
    ("label", "text", "document", "heading", "paragraph", "section", "link", "cell", "list item", "caption")
)


@tool(
    layer="workflow",
    title="Extract text",
    effects=[Read("screen"), Run("steps")],
    platforms=LINUX,
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
    steps = Steps(context)
    with steps.told():
        if window is not None:
            await bring_forward(steps, of_app(await windows(steps), window)[0])
        for kind in (source,) if source else ("accessibility", "ocr"):
            try:
                text = await _READERS[kind](steps)
            except BackendUnavailable as exc:
                if source is not None:
                    raise
                raise Downstream(f"its program tells of no text, and its picture cannot be read: {exc}") from exc
            if text.strip():
                return {"text": text, "source": kind, "steps_taken": steps.taken}
    raise Downstream(f"no text was found by {source or 'accessibility or ocr'}")


async def _from_tree(steps: Steps) -> str:
    lines: list[str] = []
    for part in await parts(steps):
        if part.role not in SAYING or "offscreen" in part.states:
            continue
        if part.role == "text" and "password" not in part.states:
            read = await steps.look("execute_accessible", action="read", element_id=part.id)
            lines.append(read.get("text") or part.name)
        else:
            lines.append(part.name or part.value)
    kept = [line for at, line in enumerate(lines) if line and (at == 0 or line != lines[at - 1])]
    return "\n".join(kept)


async def _from_browser(steps: Steps) -> str:
    return str((await steps.take("execute_browser", action="extract_text"))["content"])


async def _from_pixels(steps: Steps) -> str:
    screen: Screen = await steps.context.service("screen")
    now = await active_window(steps)
    frame = await screen.capture(now.rect)
    answered = await steps.context.vision.ask({"ocr"}, lambda backend: backend.parse(frame, ""))
    read = sorted(
        (e for e in answered.value if e.text and e.rect), key=lambda e: (e.rect.y // 12, e.rect.x) if e.rect else ()
    )
    return "\n".join(element.text for element in read)


_READERS = {"accessibility": _from_tree, "browser": _from_browser, "ocr": _from_pixels}
