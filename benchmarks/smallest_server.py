"""The smallest MCP server that the official SDK allows: one tool, low level, stdio. What `handrail serve` is measured beside."""

from __future__ import annotations

from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ADD = types.Tool(
    name="add",
    description="The sum of two integers.",
    input_schema={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)


async def list_tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[ADD])


async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    given = params.arguments or {}
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(given["a"] + given["b"]))])


async def serve() -> None:
    server = Server("smallest", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(serve)
