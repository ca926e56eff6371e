"""The tool `close_app`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from handrail import Downstream, Run, ToolContext, tool
from handrail_workflows import questions
from handrail_workflows.app_launch import is_in_process_family
from handrail_workflows.file_dialogs import LINUX_ONLY
from handrail_workflows.questions import DialogQuestion
from handrail_workflows.steps import WorkflowSteps, wait_for_value
from handrail_workflows.windows import ShownWindow, bring_to_front, find_app_windows, list_windows

SETTLE_TIMEOUT_S = 1.5
# A program that has neither closed its window nor asked anything for so long hangs.
BUSY_TIMEOUT_S = 8.0
END_TIMEOUT_S = 5.0
# Save, discard, cancel.
CHOICE_COUNT = 3


@tool(
    layer="workflow",
    title="Close a program",
    effects=[Run("steps")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=90,
    describe=lambda given: (
        f"Close {given.app_name}" + {True: ", saving", False: ", discarding changes"}.get(given.save, "")
    ),
)
async def close_app(
    app_name: Annotated[str, Field(description="Title, process, or window id.")],
    save: Annotated[bool | None, Field(description="Unsaved changes: save or discard. Default: leave it open.")] = None,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Close the windows that fit. Returns closed, how. Only what this session started is ever killed."""
    steps = WorkflowSteps(context)
    with steps.told():
        meant = find_app_windows(await list_windows(steps), app_name)
        how = "asked"
        for window in meant:
            if any(shown.id == window.id for shown in await list_windows(steps)):
                how = await _close_window(steps, window, {each.id for each in meant}, save=save) or how
    return {"closed": True, "how": how, "steps_taken": steps.taken, "effect": "confirmed"}


async def _close_window(steps: WorkflowSteps, window: ShownWindow, meant: set[str], *, save: bool | None) -> str | None:
    """Close one of the windows that are meant; how, where it was not enough to ask."""
    ids = {each.id for each in await list_windows(steps)}
    if save:
        await _save_document(steps, window, ids)
    asked = await steps.take("window_close", title=window.id)
    if asked["closed"]:
        return None

    async def question() -> DialogQuestion | None:
        for shown in await list_windows(steps):
            if shown.id not in ids and shown.pid == window.pid:
                # Another window may have come to the front meanwhile.
                await bring_to_front(steps, shown)
                return await questions.read_question(steps, shown)
        return None

    async def gone_or_asks() -> DialogQuestion | bool | None:
        if all(shown.id != window.id for shown in await list_windows(steps)):
            return True
        return await question()

    found = await wait_for_value(gone_or_asks, BUSY_TIMEOUT_S)
    if found is True:
        return None
    if found:
        return await _answer_save_question(steps, found, window, save=save)
    # With a dialog before it, or another document beside it, it is not a program to be ended.
    if other := [shown for shown in await list_windows(steps) if shown.id not in meant and shown.pid == window.pid]:
        raise Downstream(
            f"{window.title!r} stays open, and its program shows {other[0].title!r}",
            hint="look at it with observe_screen, and answer it, or leave it by escape",
        )
    return await _stop_process(steps, window)


async def _save_document(steps: WorkflowSteps, window: ShownWindow, ids: set[str]) -> None:
    """Save before the window is asked to close, so that the program has no reason to prompt.

    Raises `Downstream` if the program opens a dialog on how to save.
    """
    await bring_to_front(steps, window)
    await steps.take("execute_gui", action="hotkey", key="ctrl+s")
    new = [shown for shown in await list_windows(steps) if shown.id not in ids and shown.active]
    if new:
        await steps.attempt("execute_gui", action="press_key", key="escape")
        raise Downstream(
            f"{window.title!r} asks how to save it: {new[0].title!r}", hint="use save_dialog first, then close_app"
        )


async def _answer_save_question(
    steps: WorkflowSteps, question: DialogQuestion, window: ShownWindow, *, save: bool | None
) -> str:
    if save is not False or question.default is None or len(question.buttons) != CHOICE_COUNT:
        await steps.attempt("execute_gui", action="press_key", key="escape")
        raise Downstream(
            f"{window.title!r} asks {question.text!r}, and stays open",
            hint="set save to true or false" if save is None else "close it by hand, or by execute_accessible",
            details={"question": question.wire()},
        )
    # The default saves. Of the other two one discards, and the other only takes the closing back.
    for other in question.others:
        await questions.answer_question(steps, question, other)

        async def gone() -> bool:
            return all(shown.id != window.id for shown in await list_windows(steps))

        if await wait_for_value(gone, SETTLE_TIMEOUT_S):
            return "discarded"
        await steps.take("window_close", title=window.id)
        again = next(
            (w for w in await list_windows(steps) if w.active and w.id != window.id and w.pid == window.pid), None
        )
        asked = await questions.read_question(steps, again) if again is not None else None
        if asked is None:
            break
        rest = [button for button in asked.others if button.name != other.name]
        if (
            len(rest) == 1
            and await questions.answer_question(steps, asked, rest[0])
            and await wait_for_value(gone, SETTLE_TIMEOUT_S)
        ):
            return "discarded"
        break
    raise Downstream(f"{window.title!r} stays open", details={"question": question.wire()})


async def _stop_process(steps: WorkflowSteps, window: ShownWindow) -> str:
    """End a program that does not answer, if this session started it."""
    listed = await steps.look("list_processes")
    own = [p for p in listed["processes"] if p["running"] and is_in_process_family(window.pid, p["pid"])]
    if not own:
        raise Downstream(
            f"{window.title!r} does not close, and this session has not started it, so that it is left alone",
            hint="it may be busy, or show a question: look with observe_screen",
        )
    await steps.take("stop_process", process_id=own[0]["process_id"])

    async def gone() -> bool:
        return all(shown.id != window.id for shown in await list_windows(steps))

    if not await wait_for_value(gone, END_TIMEOUT_S):
        raise Downstream(f"{window.title!r} is still there after its process was stopped")
    return "stopped"
