"""Plugin whose only tool does almost nothing, so that its surroundings are measured."""

from __future__ import annotations

from typing import Any

from handrail import Tool, hookimpl, tool


@tool(title="Add")
async def add(a: int, b: int) -> dict[str, Any]:
    """The sum of two integers. Use it to add.

    Args:
        a: The first of them.
        b: The second of them.
    """
    return {"sum": a + b}


@hookimpl
def handrail_register_tools() -> list[Tool]:
    return [add]
