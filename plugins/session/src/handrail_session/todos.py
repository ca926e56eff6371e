"""The tool `write_todos`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from handrail import ToolContext, Write, tool

MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]", "cancelled": "[-]"}


class Todo(BaseModel):
    """One thing to do."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    description: str = Field(min_length=1, max_length=500, description="What is to be done.")
    status: Literal["pending", "in_progress", "completed", "cancelled"] = Field(description="Where it stands.")


def _one_at_a_time(todos: list[Todo]) -> list[Todo]:
    if sum(todo.status == "in_progress" for todo in todos) > 1:
        raise ValueError("only one may be in_progress at a time")
    return todos


@tool(layer="session", title="To-do list", effects=[Write("todos")], exclusive="todos", trusted=True)
async def write_todos(
    todos: Annotated[
        list[Todo],
        AfterValidator(_one_at_a_time),
        Field(max_length=100, description="The whole list; one at most in_progress."),
    ],
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Keep a list of what is to be done. Returns content, the list as a person sees it, and counts."""
    listed = [todo.model_dump() for todo in todos]
    context.stash.set("todos", listed)
    counts = {status: count for status in MARKS if (count := sum(todo.status == status for todo in todos))}
    shown = "\n".join(f"{MARKS[todo.status]} {' '.join(todo.description.split())}" for todo in todos)
    return {"content": shown or "the list is empty", "counts": counts}
