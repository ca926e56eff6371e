"""Tools of another MCP server: one call through Handrail beside the SDK's bare client, over stdio."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from benchmarks.dispatch import fresh
from benchmarks.measure import Absent, Contender, Effort, each, take_turns
from benchmarks.report import Row, compare
from benchmarks.sessions import ROOT, session_with

LIMIT = "the SDK's bare client"
SERVER = [sys.executable, "-m", "benchmarks.smallest_server"]
CALLS = 40


async def one_call(effort: Effort) -> Row:
    """History on, audit off, a rule that allows the server: validated, judged, called, checked, cleaned and remembered as another's."""
    async with AsyncExitStack() as stack:
        contenders = {
            LIMIT: await stack.enter_async_context(_bare()),
            "handrail": await stack.enter_async_context(_ours()),
        }
        timings = await take_turns(contenders, rounds=effort.rounds(25), warm_up=2)
    return compare("MCP client: one call of another server's tool", timings, limit=LIMIT, goal=None)


@asynccontextmanager
async def _bare() -> AsyncGenerator[Contender, None]:
    from mcp import Client, StdioServerParameters

    parameters = StdioServerParameters(command=SERVER[0], args=SERVER[1:], cwd=ROOT)
    async with Client(parameters) as client:
        await client.list_tools()

        async def call(args: dict[str, Any]) -> Any:
            return await client.call_tool("add", args)

        yield lambda: each(call, fresh(CALLS))


@asynccontextmanager
async def _ours() -> AsyncGenerator[Contender, None]:
    servers = {"small": {"command": SERVER, "cwd": str(ROOT)}}
    rules = [{"server": "small", "decision": "allow"}]
    async with session_with(
        "mcp", mcp={"servers": servers, "start_wait": 60}, policy={"rules": rules}, audit={"enabled": False}
    ) as session:
        await session.tools()
        result = await session.call("mcp_small_add", {"a": 2, "b": 3})
        if result.get("content") != "5":
            raise Absent(f"add gave {dict(result)}")

        async def call(args: dict[str, Any]) -> Any:
            return await session.call("mcp_small_add", args)

        yield lambda: each(call, fresh(CALLS))


ROWS = {"mcp-client-call": one_call}
