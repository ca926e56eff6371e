"""Every installed vision backend, each after each other one: the tools that follow it, as each kind of host sees them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.text import TextReceiveStream
from mcp import Client, StdioServerParameters, stdio_client, types
from tests.plugins.mcp.place import result_text

import handrail
from handrail import Session, VisionBackend
from handrail_adk import HandrailToolset

pytestmark = pytest.mark.anyio

HANDRAIL = str(Path(sys.executable).with_name("handrail"))
# How the SDK's client begins: with the handshake, or by asking what the server is and then without one.
ERAS = ("legacy", "auto")

# What is there with which capabilities, by contract.
LOOKING = {"observe_screen", "execute_gui", "get_ui_context", "maximize_active_window", "execute_accessible"}
PLANNING = {"execute_computer_use"}
SEES = {"parse_screen", "ocr", "understand", "accessibility_tree"}


def expected(backend: type[VisionBackend]) -> set[str]:
    looking = LOOKING if backend.capabilities & SEES else set[str]()
    return looking | (PLANNING if "plan_actions" in backend.capabilities else set())


def kinds(session: Session, *more: type[VisionBackend]) -> list[type[VisionBackend]]:
    """One backend for each set of capabilities that there is."""
    return list({b.capabilities: b for b in (*session.runtime.backends.values(), *more)}.values())


def walk(backends: list[type[VisionBackend]]) -> Iterator[type[VisionBackend]]:
    """Each backend after each other one."""
    for pair in permutations(backends, 2):
        yield from pair


STAGE = """
from pathlib import Path

import anyio

from handrail import Element, Rect, VisionBackend, hookimpl

class OnlyPlans(VisionBackend):
    name = "only_plans"
    capabilities = frozenset({"plan_actions"})

class Slow(VisionBackend):
    name = "slow"
    capabilities = frozenset({"parse_screen"})

    async def open(self, context):
        self.gate = Path(context.environment["GATE"])

    async def parse(self, frame, intent):
        (self.gate / "begun").touch()
        while not (self.gate / "open").exists():
            await anyio.sleep(0.02)
        return [Element("button", "the slow one saw this", Rect(frame.screen.x + 5, frame.screen.y + 5, 20, 20))]

@hookimpl
def handrail_register_vision_backends():
    return [OnlyPlans, Slow]
"""


class OnlyPlans(VisionBackend):
    """What the hosts have beside the installed ones, whatever these can do."""

    name = "only_plans"
    capabilities = frozenset({"plan_actions"})


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "handrail.toml").write_text(written("accessibility"))
    site = tmp_path / "site"
    info = site / "handrail_only_plans-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: handrail-only-plans\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[handrail]\nonly_plans = handrail_only_plans\n")
    (site / "handrail_only_plans.py").write_text(STAGE)
    return {
        **os.environ,
        "HANDRAIL_CONFIG": str(tmp_path / "handrail.toml"),
        "PYTHONPATH": str(site),
        "GATE": str(tmp_path),
    }


def written(backend: str) -> str:
    # Hidden tools are called again and again here, which the loop guard would end.
    rest = 'desktop = "private"\ntools.profile = "all"\nlimits.failures = 0\nlimits.repeats = 0\n'
    return f'backend = "{backend}"\n{rest}'


@pytest.fixture
async def session(tmp_path: Path, environment: dict[str, str]) -> AsyncGenerator[Session, None]:
    async with handrail.open(environment=environment, cwd=tmp_path) as found:
        yield found


async def known(session: Session) -> set[str]:
    return {listed.tool.name for listed in await session.all_tools()} & (LOOKING | PLANNING)


async def test_in_python_the_list_follows_every_backend_after_every_other(session: Session) -> None:
    there = await known(session)
    assert there >= LOOKING
    for backend in walk(list(session.runtime.backends.values())):
        await session.use_backend(backend.name)
        assert {tool.name for tool in await session.tools()} & there == expected(backend) & there, backend.name
        for hidden in there - expected(backend):
            refused = await session.call(hidden, {})
            assert refused.error_code == "tool_unavailable", backend.name


async def test_an_agent_of_adk_is_shown_what_the_backend_can_do(session: Session) -> None:
    toolset, there = HandrailToolset(session), await known(session)
    for backend in walk(kinds(session)):
        await session.use_backend(backend.name)
        assert {tool.name for tool in await toolset.get_tools()} & there == expected(backend) & there, backend.name


async def test_in_jsonl_the_list_follows_and_a_hidden_tool_is_refused_by_name(
    session: Session, environment: dict[str, str], tmp_path: Path
) -> None:
    there = await known(session)
    async with in_jsonl(environment, tmp_path) as (say, answers):
        for backend in walk(kinds(session, OnlyPlans)):
            await say(control="backend", id=1, name=backend.name)
            assert (await anext(answers))["ok"]
            await say(control="tools", id=2)
            told = {tool["name"] for tool in (await anext(answers))["tools"]}
            assert told & there == expected(backend) & there, backend.name
            for hidden in there - expected(backend):
                await say(id=3, tool=hidden, args={})
                assert (await anext(answers))["result"]["error"]["code"] == "tool_unavailable"
        await say(control="backend", id=4, name="acessibility")
        assert "did you mean 'accessibility'" in (await anext(answers))["error"]["message"]


async def begun(folder: Path) -> None:
    while not (folder / "begun").exists():
        await anyio.sleep(0.02)


async def test_in_jsonl_a_call_under_way_ends_on_the_old_backend(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "handrail.toml").write_text(written("slow"))
    async with in_jsonl(environment, tmp_path) as (say, answers):
        await say(id=1, tool="observe_screen", args={})
        await begun(tmp_path)
        await say(control="backend", id=2, name="only_plans")
        assert await anext(answers) == {"id": 2, "ok": True}
        await say(control="tools", id=3)
        listed = await anext(answers)
        assert not {tool["name"] for tool in listed["tools"]} & LOOKING
        # Calls have their turn when those before are over.
        await say(id=4, tool="observe_screen", args={})
        (tmp_path / "open").touch()
        looked, refused = [await anext(answers) for _ in range(2)]
        assert "the slow one saw this" in json.dumps(looked)
        assert refused["result"]["error"]["code"] == "tool_unavailable"


@asynccontextmanager
async def in_jsonl(
    environment: dict[str, str], folder: Path
) -> AsyncGenerator[tuple[Callable[..., Awaitable[None]], AsyncGenerator[Any, None]], None]:
    """A `session --jsonl` that ends with its input: what sends it a line, and its answers."""
    argv = [HANDRAIL, "session", "--jsonl"]
    with anyio.fail_after(60):
        async with await anyio.open_process(argv, env=environment, cwd=folder, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            writing = process.stdin
            assert writing is not None

            async def say(**line: Any) -> None:
                await writing.send(f"{json.dumps(line)}\n".encode())

            yield say, lines(TextReceiveStream(process.stdout))
            await writing.aclose()


async def lines(stream: TextReceiveStream) -> AsyncGenerator[Any, None]:
    rest = ""
    async for text in stream:
        *whole, rest = (rest + text).split("\n")
        for line in whole:
            yield json.loads(line)


@pytest.mark.parametrize("era", ERAS)
async def test_over_mcp_an_edited_file_changes_the_list_and_the_client_is_told(
    session: Session, environment: dict[str, str], tmp_path: Path, era: str
) -> None:
    there = await known(session)
    with anyio.fail_after(90):
        async with served(environment, tmp_path, era) as (client, changes):
            for backend in walk(kinds(session, OnlyPlans)):
                edit(tmp_path, backend.name)
                wanted = expected(backend) & there
                # Nothing but being told makes the client look again.
                while {tool.name for tool in (await client.list_tools()).tools} & there != wanted:
                    await changes.get()
                for hidden in there - wanted:
                    refused = await client.call_tool(hidden, {})
                    assert refused.is_error
                    assert "tool_unavailable" in result_text(refused)


@pytest.mark.parametrize("era", ERAS)
async def test_over_mcp_a_call_under_way_ends_on_the_old_backend(
    environment: dict[str, str], tmp_path: Path, era: str
) -> None:
    edit(tmp_path, "slow")
    with anyio.fail_after(60):
        async with served(environment, tmp_path, era) as (client, changes):
            looking = asyncio.ensure_future(client.call_tool("observe_screen", {}))
            await begun(tmp_path)
            edit(tmp_path, "only_plans")
            while {tool.name for tool in (await client.list_tools()).tools} & LOOKING:
                await changes.get()
            # It uses what the call under way holds, and does not wait for that.
            refused = await client.call_tool("observe_screen", {})
            assert "tool_unavailable" in result_text(refused)
            assert not looking.done()
            (tmp_path / "open").touch()
            assert "the slow one saw this" in result_text(await looking)


def edit(folder: Path, backend: str) -> None:
    new = folder / "new.toml"
    new.write_text(written(backend))
    new.replace(folder / "handrail.toml")


@asynccontextmanager
async def served(environment: dict[str, str], folder: Path, era: str) -> AsyncGenerator[tuple[Client, Any], None]:
    """A client of `handrail serve`, and where it hears that the list has changed."""
    changes = asyncio.Queue[None]()

    async def note(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changes.put_nowait(None)

    async def listen(client: Client, *, task_status: Any) -> None:
        async with client.listen(tools_list_changed=True) as heard:
            task_status.started()
            async for _ in heard:
                changes.put_nowait(None)

    parameters = StdioServerParameters(command=HANDRAIL, args=["serve"], env=environment, cwd=folder)
    async with Client(stdio_client(parameters), mode=era, message_handler=note) as client:
        await client.list_tools()
        async with anyio.create_task_group() as group:
            if era == "auto":
                await group.start(lambda *, task_status: listen(client, task_status=task_status))
            yield client, changes
            group.cancel_scope.cancel()
