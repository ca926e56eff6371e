"""All servers of one session: one service, whose tools are a toolset of the session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from handrail import Session, Tool, ToolContext
from handrail.api.desktop import remove_screen_variables
from handrail.api.events import ToolsChanged
from handrail.config.settings import ServerSettings
from handrail_mcp.client import results
from handrail_mcp.client.connection import MAX_LISTED_ITEMS, ServerConnection
from handrail_mcp.client.remote_tools import DeclaredTool, create_tool, is_tool_included
from handrail_mcp.client.resources import ServerResources
from handrail_mcp.client.tool_names import ToolNames
from handrail_mcp.client.transports import ServerEnvironment

log = logging.getLogger(__name__)


class SessionServers:
    """The connections of a session, started when its tools are first listed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._connections: dict[str, ServerConnection] = {}
        self._names = ToolNames()
        self._warned: set[tuple[str, str]] = set()
        self._session: Session | None = None
        self._tools: list[Tool] | None = None
        # By all that a tool is made of; its connection, too, as its settings are another's when the configuration has changed.
        self._kept: dict[tuple[ServerConnection, str, str, frozenset[str]], Tool] = {}
        self._listed = False
        self._leaving: set[asyncio.Task[None]] = set()
        self._of_resources = ServerResources(self.server, lambda: self.connections).tools()

    async def tools(self, session: Session) -> Sequence[Tool]:
        """Return the current tools of all servers.

        The first time, wait up to `start_wait` seconds for servers that are starting.
        """
        self._session = session
        self._follow(session.settings.mcp.servers)
        if not self._listed:
            with anyio.move_on_after(session.settings.mcp.start_wait):
                for connection in self._connections.values():
                    await connection.tried.wait()
            self._listed = True
        if self._tools is None:
            self._tools = self._assembled()
        return self._tools

    @property
    def connections(self) -> Sequence[ServerConnection]:
        return list(self._connections.values())

    def states(self) -> list[dict[str, Any]]:
        """Return the state of each server in the configuration, as plain data."""
        assert self._session is not None
        off = [name for name, each in self._session.settings.mcp.servers.items() if not each.enabled]
        return [
            *(each.told() for each in self.connections),
            *({"name": n, "state": "off", "problem": "it is not enabled", "tools": 0, "resources": 0} for n in off),
        ]

    def server(self, name: str) -> ServerConnection | None:
        return self._connections.get(name)

    async def settled(self) -> None:
        """Return when each server has answered or failed to, once."""
        for connection in self.connections:
            await connection.tried.wait()

    async def close(self) -> None:
        async with anyio.create_task_group() as tasks:
            for connection in self._connections.values():
                tasks.start_soon(connection.close)
        if self._leaving:
            await asyncio.wait(self._leaving)

    def _follow(self, configured: Mapping[str, ServerSettings]) -> None:
        """Start what the configuration names and is not there, and end what it no longer names."""
        assert self._session is not None
        for name, connection in list(self._connections.items()):
            if configured.get(name) != connection.settings:
                del self._connections[name]
                self._tools = None
                leaving = asyncio.create_task(connection.close())
                self._leaving.add(leaving)
                leaving.add_done_callback(self._leaving.discard)
        for name, settings in configured.items():
            if settings.enabled and name not in self._connections:
                session = self._session
                # Servers are there before any desktop is; of a private one they learn nothing, and of the person's own neither.
                shown = session.settings.desktop == "current"
                environment = self._environment if shown else remove_screen_variables(self._environment)
                around = ServerEnvironment(
                    environment, session.runtime.programs, session.runtime.cwd, session.workspace, session.secrets.take
                )
                self._connections[name] = ServerConnection(name, settings, around, self._changed)
                self._connections[name].start()

    def _changed(self, connection: ServerConnection, why: str) -> None:
        self._tools = None
        if self._listed and self._session is not None:
            self._session.bus.publish(ToolsChanged("", why))

    def _assembled(self) -> list[Tool]:
        found = [tool for connection in self.connections if connection.present for tool in self._of(connection)]
        offered = {id(tool) for tool in found}
        self._kept = {key: tool for key, tool in self._kept.items() if id(tool) in offered}
        if any(each.present and (each.listing.resources or each.listing.templates) for each in self.connections):
            found += self._of_resources
        return found

    def _of(self, connection: ServerConnection) -> Sequence[Tool]:
        server = connection.name
        if connection.listing.cut:
            self._warn(
                server,
                "",
                f"the server {server!r} has more than {MAX_LISTED_ITEMS} tools or resources; the first {MAX_LISTED_ITEMS} are offered",
            )
        listed: dict[str, DeclaredTool] = {}
        for each in connection.listing.tools:
            own = each.tool.name
            if is_tool_included(own, connection.settings) and listed.setdefault(own, each) is not each:
                self._warn(
                    server, own, f"the server {server!r} has two tools {_truncate_text(own)!r}; the first counts"
                )
        beside = frozenset(each.fingerprint for each in listed.values())
        names = self._names.give(server, listed)
        found = (self._offered(each, names[own], connection, beside) for own, each in listed.items())
        return [tool for tool in found if tool is not None]

    def _offered(
        self, declared: DeclaredTool, name: str, connection: ServerConnection, beside: frozenset[str]
    ) -> Tool | None:
        key = (connection, name, declared.fingerprint, beside)
        if (kept := self._kept.get(key)) is not None:
            return kept

        async def handle(declared: DeclaredTool, args: dict[str, Any], context: ToolContext) -> Any:
            given = await connection.call_tool(declared.tool.name, args, context)
            return await results.build_result(given, declared, server=connection.name)

        server, settings = connection.name, connection.settings
        try:
            made = create_tool(declared, name=name, server=server, settings=settings, beside=beside, handle=handle)
        # What a server declares breaks whatever it breaks; only its tool is left out.
        except Exception as exc:  # noqa: BLE001 # it becomes the warning
            own = declared.tool.name
            self._warn(server, own, f"{_truncate_text(own)!r} of the server {server!r} is not offered: {exc}")
            return None
        self._kept[key] = made
        return made

    def _warn(self, server: str, tool: str, text: str) -> None:
        """Say it once a session."""
        if (server, tool) not in self._warned:
            self._warned.add((server, tool))
            log.warning("%s", text)


def _truncate_text(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"
