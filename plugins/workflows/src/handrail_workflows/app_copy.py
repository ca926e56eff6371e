"""The tool `copy_between_apps`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Protocol

from pydantic import Field

from handrail import Downstream, InvalidArguments, Run, ToolContext, tool
from handrail_workflows.file_dialogs import LINUX_ONLY
from handrail_workflows.steps import WorkflowSteps, wait_for_value
from handrail_workflows.windows import bring_to_front, find_app_windows, list_windows, read_elements

PASTE_TIMEOUT_S = 3.0


class ClipboardService(Protocol):
    """The service `clipboard`."""

    def borrowed(self) -> AbstractAsyncContextManager[None]:
        """Put all its formats back at its end; `Downstream` where they cannot all be had."""
        ...


@tool(
    layer="workflow",
    title="Copy between programs",
    effects=[Run("steps")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=60,
    loadable=True,
    describe=lambda given: f"Copy from {given.source_app} to {given.target_app}",
)
async def copy_between_apps(
    source_app: Annotated[str, Field(description="Title, process or window id.")],
    target_app: Annotated[str, Field(description="Likewise.")],
    content: Annotated[
        str, Field(description='"all" of the focused text field, "selection", or a text that the source shows.')
    ] = "all",
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Copy text from where one program has its focus to where another has its own, and check both ends. Returns length, effect, steps_taken."""
    steps = WorkflowSteps(context)
    with steps.told():
        shown = await list_windows(steps)
        source, target = find_app_windows(shown, source_app)[0], find_app_windows(shown, target_app)[0]
        if source.id == target.id:
            raise InvalidArguments(
                f"{source_app!r} and {target_app!r} are one window, {source.title!r}",
                hint="name each by its title or id: see window_list",
            )
        await bring_to_front(steps, source)
        said = await _read_focused_text(steps)
        text = await _find_source_text(steps, content, said)
        if not text or (said is not None and text not in said):
            raise Downstream(
                f"the source has no such text: {text[:80]!r}" if text else "nothing was copied",
                hint="click into the text, or select something, first",
            )
        now = next(window for window in await list_windows(steps) if window.id == target.id)
        await bring_to_front(steps, now)
        before = await _read_focused_text(steps)
        await steps.take("execute_gui", action="type", text=text)

        async def arrived() -> bool:
            after = await _read_focused_text(steps)
            return after is not None and after.count(text) > (before or "").count(text)

        confirmed = await wait_for_value(arrived, PASTE_TIMEOUT_S)
    return {
        "length": len(text),
        "source": source.title,
        "target": target.title,
        "effect": "confirmed" if confirmed else "unverified",
        "source_checked": said is not None,
        "steps_taken": steps.taken,
    }


async def _find_source_text(steps: WorkflowSteps, content: str, said: str | None) -> str:
    """Return the text to copy; `said` is all that the focused field holds.

    All of a text is read and never selected by keys, which would take every cell of a sheet or every file of a folder.
    """
    if content == "selection":
        return await _copy_selection(steps)
    if content != "all":
        return content
    if said is None:
        raise Downstream(
            "no text field that can be read has the focus in the source; nothing was copied",
            hint='click into the text; or select what is meant, and call again with content="selection";'
            " extract_text reads a whole window",
        )
    return said


async def _copy_selection(steps: WorkflowSteps) -> str:
    """Return the selection by means of the program's copy command; the clipboard's content is restored afterwards."""
    clipboard: ClipboardService = await steps.context.service("clipboard")
    # What nobody copies: still there, it means that nothing was copied.
    mark = f"handrail {steps.context.call_id}"

    async def read() -> str:
        held = (await steps.look("clipboard_read"))["content"] or ""
        return "" if held == mark else held

    async with clipboard.borrowed():
        await steps.take("clipboard_write", text=mark)
        await steps.take("execute_gui", action="hotkey", key="ctrl+c")
        return await wait_for_value(read, PASTE_TIMEOUT_S)


async def _read_focused_text(steps: WorkflowSteps) -> str | None:
    """Return the complete text of the focused field; None if it cannot be read."""
    field = next((part for part in await read_elements(steps) if part.has("focused") and part.role == "text"), None)
    if field is None:
        return None
    read = await steps.look("execute_accessible", action="read", element_id=field.id)
    return read.get("text")
