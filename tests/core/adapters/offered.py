"""What the agents of other frameworks are offered in these tests."""

from __future__ import annotations

from typing import Any

from handrail import Media, ToolContext, Variation, Write, tool

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(16)


@tool(trusted=True, families={"gpt": Variation(description="Add, GPT.")})
async def add(a: int, b: int = 1) -> dict[str, Any]:
    """Add two numbers. Returns sum."""
    return {"sum": a + b}


@tool()
async def look() -> dict[str, Any]:
    """Look. Returns a picture."""
    return {"seen": "a pixel", "media": [Media("image", "image/png", PIXEL)]}


@tool(effects=[Write("settings")])
async def change() -> None:
    """Change a setting."""


@tool(loadable=True, trusted=True)
async def spare() -> str:
    """Say so."""
    return "spare"


@tool(trusted=True)
async def fetch(context: ToolContext) -> str:
    """Load the spare tool."""
    await context.session.load_tools(["spare"], source="skill:x")
    return "loaded"


TOOLS = (add, look, change, spare, fetch)
