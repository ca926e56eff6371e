"""One call of a tool that does nothing, from the arguments a model wrote to the recorded result."""

# Peers live in .venv-bench, where the type checker does not look.
# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from time import perf_counter
from typing import Any

from pydantic import BaseModel

from benchmarks.measure import LEAD_IN, Absent, Contender, Effort, each, take_turns
from benchmarks.report import Row, compare
from benchmarks.sessions import trivial_session
from handrail import (
    Change,
    EvaluationContext,
    Evaluator,
    Invocation,
    Observer,
    Opinion,
    Remark,
    Tool,
    ToolCall,
    Verdict,
    hookimpl,
    tool,
)

LIMIT = "pydantic validation + await"
ROUNDS = 60
# Turns of about a millisecond on each side: a longer one is interrupted more often, which would count as slowness.
CALLS = 120
LIMIT_CALLS = 800
AUDITED_CALLS = 30
PEER_CALLS = 8

Arguments = dict[str, Any]
Peer = Callable[[], AbstractAsyncContextManager[Contender]]


class Operands(BaseModel):
    """Parameters of the tool, in the simplest possible model."""

    a: int
    b: int


async def add(a: int, b: int) -> dict[str, Any]:
    """Return the sum of two integers."""
    return {"sum": a + b}


def fresh(count: int) -> Sequence[Arguments]:
    """Return arguments that no earlier call has used."""
    return [{"a": random.getrandbits(20), "b": random.getrandbits(20)} for _ in range(LEAD_IN + count)]


async def limit() -> float:
    async def call(args: Arguments) -> Any:
        operands = Operands.model_validate(args)
        return await add(operands.a, operands.b)

    return await each(call, fresh(LIMIT_CALLS))


async def dispatch(effort: Effort) -> Row:
    """History on, audit off."""
    async with AsyncExitStack() as stack:
        contenders = {LIMIT: limit, "handrail": await _ours(stack, audit=False)}
        absent: dict[str, str] = {}
        for name, peer in PEERS.items():
            try:
                contenders[name] = await stack.enter_async_context(peer())
            except ImportError as exc:
                absent[name] = f"absent: {exc}"
        timings = await take_turns(contenders, rounds=effort.rounds(ROUNDS))
    return compare(
        "dispatch of a trivial tool, history on, audit off",
        timings,
        limit=LIMIT,
        goal=8,
        absent=absent,
    )


async def dispatch_audit(effort: Effort) -> Row:
    """Measure the same with both audit lines written."""
    async with AsyncExitStack() as stack:
        contenders = {LIMIT: limit, "handrail": await _ours(stack, audit=True)}
        timings = await take_turns(contenders, rounds=effort.rounds(ROUNDS))
    return compare("the same with both audit lines", timings, limit=LIMIT, goal=40)


async def dispatch_observers(effort: Effort) -> Row:
    """Measure the same with Python observers that run before and after each call and find nothing."""
    return await _beside(effort, "observers in Python", lambda number: Looking(f"o{number}"), goal=20)


async def dispatch_plugins(effort: Effort) -> Row:
    """Measure the same with other plugins that each provide a tool and an evaluator for it."""
    return await _beside(effort, "other plugins", Bystander, goal=8)


async def _beside(effort: Effort, what: str, make: Callable[[int], object], *, goal: float) -> Row:
    """Measure a call of the trivial tool with 0, 5 and 20 other plugins."""
    async with AsyncExitStack() as stack:
        contenders: dict[str, Contender] = {LIMIT: limit}
        for count in (0, 5, 20):
            plugins = {f"beside{number}": make(number) for number in range(count)}
            contenders[f"{count} {what}"] = await _ours(stack, audit=False, beside=plugins)
        timings = await take_turns(contenders, rounds=effort.rounds(ROUNDS))
    return compare(f"dispatch with 5 {what}", timings, limit=LIMIT, goal=goal, ours=f"5 {what}")


class Looking(Observer):
    """Observer of every call and its result that changes nothing, registered by its own plugin."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.looked = 0

    async def before(self, invocation: Invocation) -> Change | None:
        self.looked += 1

    async def after(self, invocation: Invocation, verdict: Verdict, result: Mapping[str, Any]) -> Remark | None:
        self.looked += 1

    @hookimpl
    def handrail_register_observers(self) -> list[Observer]:
        return [self]


class Bystander(Evaluator):
    """Plugin with a tool that is never called and an evaluator for that tool alone."""

    def __init__(self, number: int) -> None:
        self.name = f"bystander{number}"  # pyright: ignore[reportAttributeAccessIssue] # one for each

    def applies(self, tool: Tool) -> bool:
        return tool.name == self.name

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        return None

    @hookimpl
    def handrail_register_tools(self) -> list[Tool]:
        @tool(name=self.name)
        async def bystander(a: int) -> None:
            """Do nothing."""

        return [bystander]

    @hookimpl
    def handrail_register_evaluators(self) -> list[Evaluator]:
        return [self]


async def dispatch_guarded(effort: Effort) -> Row:
    """Measure the same with the loop guard enabled: every call is hashed and compared with the last hundred."""
    async with AsyncExitStack() as stack:
        ours = await _ours(stack, audit=False, HANDRAIL_LIMITS_REPEATS="50")
        timings = await take_turns({LIMIT: limit, "handrail": ours}, rounds=effort.rounds(ROUNDS))
    return compare("the same with the loop guard at work", timings, limit=LIMIT, goal=20)


async def batch(effort: Effort) -> Row:
    """Measure one call in a batch of a hundred read-only calls."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(trivial_session(audit=False))

        async def contender() -> float:
            calls = [ToolCall("add", args, f"b{at}") for at, args in enumerate(fresh(CALLS)[LEAD_IN:])]
            began = perf_counter()
            results = await session.batch(calls)
            seconds = perf_counter() - began
            if not all(result.ok for result in results):
                raise Absent("a call of the batch failed")
            return seconds / len(calls)

        timings = await take_turns({LIMIT: limit, "handrail": contender}, rounds=effort.rounds(ROUNDS))
    return compare(f"a call in a batch of {CALLS} that run together", timings, limit=LIMIT, goal=None)


async def _ours(
    stack: AsyncExitStack, *, audit: bool, beside: Mapping[str, object] | None = None, **variables: str
) -> Contender:
    session = await stack.enter_async_context(trivial_session(audit=audit, beside=beside, **variables))
    if (result := await session.call("add", {"a": 2, "b": 3})) != {**result, "status": "success", "sum": 5}:
        raise Absent(f"add gave {dict(result)}")

    async def call(args: Arguments) -> Any:
        return await session.call("add", args)

    async def contender() -> float:
        return await each(call, fresh(AUDITED_CALLS if audit else CALLS))

    return contender


def _peer(call: Callable[[Arguments], Any]) -> Contender:
    async def contender() -> float:
        return await each(call, fresh(PEER_CALLS))

    return contender


@asynccontextmanager
async def pydantic_ai() -> AsyncGenerator[Contender, None]:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.toolsets import FunctionToolset
    from pydantic_ai.usage import RunUsage

    context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    manager = await ToolManager(FunctionToolset([add])).for_run_step(context)

    async def call(args: Arguments) -> Any:
        return await manager.handle_call(ToolCallPart("add", args))

    yield _peer(call)


@asynccontextmanager
async def adk_tool() -> AsyncGenerator[Contender, None]:
    from google.adk.tools.function_tool import FunctionTool
    from google.adk.tools.tool_context import ToolContext

    tool = FunctionTool(add)
    context = ToolContext(await _adk_invocation())

    async def call(args: Arguments) -> Any:
        return await tool.run_async(args=args, tool_context=context)

    yield _peer(call)


@asynccontextmanager
async def adk_flow() -> AsyncGenerator[Contender, None]:
    from google.adk.flows.llm_flows import functions
    from google.adk.tools.function_tool import FunctionTool
    from google.genai import types

    tools: Any = {"add": FunctionTool(add)}
    invocation = await _adk_invocation()

    async def call(args: Arguments) -> Any:
        asked = types.FunctionCall(id=f"c{args['a']}", name="add", args=args)
        return await functions.handle_function_call_list_async(invocation, [asked], tools)

    yield _peer(call)


async def _adk_invocation() -> Any:
    from google.adk.agents import LlmAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions import InMemorySessionService

    service = InMemorySessionService()
    session = await service.create_session(app_name="benchmark", user_id="benchmark")
    agent = LlmAgent(name="benchmark", model="none")
    return InvocationContext(session_service=service, session=session, agent=agent, invocation_id="benchmark")


@asynccontextmanager
async def fastmcp_server() -> AsyncGenerator[Contender, None]:
    from fastmcp import FastMCP

    server = FastMCP("benchmark")
    server.tool(add)

    async def call(args: Arguments) -> Any:
        return await server.call_tool("add", args)

    yield _peer(call)


@asynccontextmanager
async def fastmcp_client() -> AsyncGenerator[Contender, None]:
    from fastmcp import Client, FastMCP

    server = FastMCP("benchmark")
    server.tool(add)
    async with Client(server) as client:

        async def call(args: Arguments) -> Any:
            return await client.call_tool("add", args)

        yield _peer(call)


@asynccontextmanager
async def langchain() -> AsyncGenerator[Contender, None]:
    from langchain_core.tools import StructuredTool

    tool = StructuredTool.from_function(coroutine=add, name="add", description="The sum of two integers.")

    async def call(args: Arguments) -> Any:
        return await tool.ainvoke(args)

    yield _peer(call)


PEERS: Mapping[str, Peer] = {
    "pydantic-ai tool call": pydantic_ai,
    "ADK FunctionTool alone": adk_tool,
    "ADK function call": adk_flow,
    "fastmcp server": fastmcp_server,
    "fastmcp in-memory client": fastmcp_client,
    "LangChain StructuredTool": langchain,
}
ROWS = {
    "dispatch": dispatch,
    "dispatch-audit": dispatch_audit,
    "dispatch-observers": dispatch_observers,
    "dispatch-plugins": dispatch_plugins,
    "dispatch-guarded": dispatch_guarded,
    "batch": batch,
}
