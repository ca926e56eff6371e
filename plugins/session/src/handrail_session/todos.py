"""The tool `write_todos`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from handrail import ToolContext, Write, tool

STATUS_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


class TodoItem(BaseModel):
    """One thing to do."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    description: str = Field(min_length=1, max_length=500, description="The task.")
    status: Literal["pending", "in_progress", "completed", "cancelled"] = Field(description="Progress.")


def _check_single_in_progress(todos: list[TodoItem]) -> list[TodoItem]:
    if sum(todo.status == "in_progress" for todo in todos) > 1:
        raise ValueError("only one may be in_progress at a time")
    return todos


@tool(layer="session", title="To-do list", effects=[Write("todos")], exclusive="todos", trusted=True)
async def write_todos(
    todos: Annotated[
        list[TodoItem],
        AfterValidator(_check_single_in_progress),
        Field(max_length=100, description="The whole list; one at most in_progress."),
    ],
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Keep a list of what is to be done. Returns content, the list as a person sees it, and counts."""
    listed = [todo.model_dump() for todo in todos]
    context.stash.set("todos", listed)
    counts = {status: count for status in STATUS_MARKS if (count := sum(todo.status == status for todo in todos))}
    shown = "\n".join(f"{STATUS_MARKS[todo.status]} {' '.join(todo.description.split())}" for todo in todos)
    return {"content": shown or "the list is empty", "counts": counts}
