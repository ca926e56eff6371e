"""A server over a real pipe, and the SDK's clients of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from pathlib import Path
from typing import Any

import anyio
import psutil
from mcp import Client, ClientSession, StdioServerParameters, stdio_client, types

HANDRAIL = Path(sys.executable).with_name("handrail")
# How the SDK's client begins: with the handshake, or by asking what the server is and then without one.
LEGACY, MODERN = "legacy", "auto"
ERAS = (LEGACY, MODERN)

# A person's answer to a question, at once or later.
Decide = Callable[..., Any]


def accept(answer: str) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"answer": answer})


@dataclass
class Place:
    """Where one server runs: its project folder and its environment."""

    folder: Path
    environment: dict[str, str]
    args: list[str] = field(default_factory=list)
    asked: list[types.ElicitRequestFormParams] = field(default_factory=list)
    changes: anyio.Event = field(default_factory=anyio.Event)

    @property
    def parameters(self) -> StdioServerParameters:
        return StdioServerParameters(
            command=str(HANDRAIL), args=["serve", *self.args], env=self.environment, cwd=self.folder
        )

    def configure(self, text: str) -> None:
        """Replace the project's configuration at once, as editors do."""
        new = self.folder / "handrail.toml.new"
        new.write_text(text)
        new.replace(self.folder / "handrail.toml")

    def child(self) -> psutil.Process | None:
        """The child that the tool `nurse` started, once there is one."""
        file = self.folder / "child.pid"
        return psutil.Process(int(text)) if file.exists() and (text := file.read_text()) else None

    @property
    def scribbled(self) -> list[str]:
        """The words that tools really wrote."""
        file = self.folder / "scribbled.txt"
        return file.read_text().split() if file.exists() else []

    @property
    def audit(self) -> list[str]:
        """The lines of the newest session's audit."""
        newest = max(Path(self.environment["HANDRAIL_HOME"], "data", "audit").glob("*.jsonl"))
        return newest.read_text().splitlines()

    @asynccontextmanager
    async def client(
        self, era: str, decide: Decide | None = None, *, hear: Callable[..., Any] | None = None, to: Any = None
    ) -> AsyncGenerator[Client, None]:
        """The SDK's client, connected over stdio or `to` an address. `decide` answers for its person; without it the client cannot ask.

        `hear` is told of what the server says by itself.
        """

        async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
            assert decide is not None
            assert isinstance(params, types.ElicitRequestFormParams)
            self.asked.append(params)
            given = decide(params)
            return await given if isawaitable(given) else given

        async def note(message: Any) -> None:
            if hear is not None:
                await hear(message)
            if isinstance(message, types.ToolListChangedNotification):
                self.changes.set()

        with anyio.fail_after(60):
            transport = stdio_client(self.parameters) if to is None else to
            asking = answer if decide is not None else None
            async with Client(transport, mode=era, elicitation_callback=asking, message_handler=note) as client:
                yield client

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[ClientSession, None]:
        """The SDK's plain session after a handshake; it cannot ask anybody."""
        with anyio.fail_after(60):
            async with stdio_client(self.parameters) as (reading, writing), ClientSession(reading, writing) as session:
                await session.initialize()
                yield session


def made(folder: Path, stage: str) -> Place:
    """A place in an empty folder; `stage` is where the tests' plugins are installed."""
    project = folder / "project"
    project.mkdir()
    (project / "handrail.toml").write_text('backend = "treeish"\n')
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": stage,
        "HANDRAIL_PLUGINS": "mcp,mcp_stage",
        "HANDRAIL_HOME": str(folder / "home"),
        "HANDRAIL_CONFIG": str(project / "handrail.toml"),
    }
    return Place(project, environment)


def result_text(result: types.CallToolResult) -> str:
    """Return the text of a tool result, which is one block of `content` that nothing else in the result can replace."""
    assert result.structured_content is None
    # The SDK names the server there in the newer protocol.
    assert set(result.meta or {}) <= {"io.modelcontextprotocol/serverInfo"}
    first, *others = result.content
    assert isinstance(first, types.TextContent)
    assert not any(isinstance(block, types.TextContent) for block in others)
    return first.text


def result_fields(result: types.CallToolResult) -> dict[str, Any]:
    """Return the keys of a tool result as a model reads them: JSON, on the line inside the envelope if there is one."""
    lines = result_text(result).split("\n")
    assert len(lines) == (3 if lines[0].startswith("<untrusted ") else 1)
    return json.loads(lines[len(lines) // 2])


async def how_it_ended(client: Client, tool: str) -> str:
    """The status that the session has recorded for a call of the tool, as soon as there is one."""
    with anyio.fail_after(30):
        while True:
            actions = result_fields(await client.call_tool("get_action_history", {}))["actions"]
            if found := [action["status"] for action in actions if action["tool"] == tool]:
                return found[0]
            await anyio.sleep(0.02)


async def wait_for(condition: Callable[[], Any], *, seconds: float = 15) -> Any:
    """What `condition` gives once it is true."""
    with anyio.fail_after(seconds):
        while not (found := condition()):
            await anyio.sleep(0.02)
    return found
