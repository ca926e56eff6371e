"""Serving one session to one client."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ToolsListChanged

import handrail
from handrail import Session
from handrail.api.events import Event, Finished, ToolsChanged
from handrail.sanitize.model_output import build_instructions
from handrail_mcp.approval_forms import ClientConfirmer
from handrail_mcp.log_messages import CallLogger
from handrail_mcp.resources import SessionResources
from handrail_mcp.stdio_transport import open_streams
from handrail_mcp.tool_calls import ClientCalls, RequestContext
from handrail_mcp.tool_declarations import declare_tool

log = logging.getLogger(__name__)

CHANGE_NOTIFICATIONS = NotificationOptions(tools_changed=True, resources_changed=True)
# Connections of one client that are told of changes.
MAX_CONNECTIONS = 64
# How long one of them is waited for.
NOTIFY_TIMEOUT_S = 5.0


async def serve_session(session: Session, wire: tuple[int, int] | None) -> None:
    """Serve the session on what `claim_stdio` returned until the client disconnects or a signal ends the process."""
    async with anyio.create_task_group() as tasks:
        serving = anyio.CancelScope()
        await tasks.start(end_on_signal, serving.cancel)
        with serving:
            async with open_server(session) as server:
                await _run_stdio(server, wire)
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def open_server(session: Session) -> AsyncGenerator[Server[Any], None]:
    """Open the session as an MCP server, for any transport; running calls end when the context exits."""
    async with anyio.create_task_group() as tasks:
        calls = ClientCalls(session, tasks)
        resources = SessionResources(session)
        listing = SessionListing(session, resources)
        notes = CallLogger(calls.request_of)
        session.confirmer = ClientConfirmer(session, calls)
        stops = [session.bus.subscribe(heard) for heard in (calls.heard, listing.heard, notes.heard)]
        tasks.start_soon(listing.follow)
        tasks.start_soon(notes.send)
        try:
            yield _create_server(_build_instructions(session), calls, listing, resources, notes)
        finally:
            for stop in stops:
                stop()
            tasks.cancel_scope.cancel()


class SessionListing:
    """Lists of the session's tools and resources for clients, and the notifications when they change."""

    def __init__(self, session: Session, resources: SessionResources) -> None:
        self.changes = InMemorySubscriptionBus()
        self._session = session
        self._resources = resources
        # The newest of each connection that can be told of changes; over stdio there is one.
        self._clients: dict[str, ServerSession] = {}
        self._told: list[types.Tool] = []
        self._held = len(resources)
        self._tools_changed = False
        self._news = anyio.Event()

    async def serve(
        self, request: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Handle `tools/list`: all tools that can be called now, in one page."""
        self._remember(request)
        self._told = [declare_tool(tool) for tool in await self._session.tools()]
        return types.ListToolsResult(tools=self._told)

    async def resources(
        self, request: RequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Handle `resources/list`."""
        self._remember(request)
        return await self._resources.list(request, params)

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """Return the input schema of a listed tool; None for any other tool."""
        return next((tool.input_schema for tool in self._told if tool.name == name), None)

    def heard(self, event: Event) -> None:
        """Take note that a list may be another one."""
        if isinstance(event, ToolsChanged):
            self._tools_changed = True
            self._news.set()
        elif isinstance(event, Finished) and len(self._resources) != self._held:
            self._news.set()

    async def follow(self) -> None:
        """Tell the clients whenever a list is another one than they were last given."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            # Each notification reaches clients of one era only: the SDK drops the other.
            if self._tools_changed:
                self._tools_changed = False
                if self._clients and await self._differs():
                    await self._tell(ServerSession.send_tool_list_changed)
                    await self.changes.publish(ToolsListChanged())
            if len(self._resources) != self._held:
                self._held = len(self._resources)
                await self._tell(ServerSession.send_resource_list_changed)
                await self.changes.publish(ResourcesListChanged())

    async def _tell(self, send: Callable[[ServerSession], Awaitable[None]]) -> None:
        """Notify each connection; one that does not read delays the others by at most `NOTIFY_TIMEOUT_S`."""
        for client in list(self._clients.values()):
            with anyio.move_on_after(NOTIFY_TIMEOUT_S):
                await send(client)

    def _remember(self, request: RequestContext) -> None:
        headers = getattr(request.request, "headers", {})
        connection = headers.get("mcp-session-id", "")
        self._clients.pop(connection, None)
        self._clients[connection] = request.session
        while len(self._clients) > MAX_CONNECTIONS:
            del self._clients[next(iter(self._clients))]

    async def _differs(self) -> bool:
        try:
            # Looking is no step of the client's model.
            return [
                declare_tool(listed.tool) for listed in await self._session.all_tools() if listed.available
            ] != self._told
        # Toolsets are plugin code; one that fails must not end the server, and the client had better ask again.
        except Exception:
            log.exception("the tools could not be listed")
            return True


class SessionServer(Server[Any]):
    """A server of the protocol whose lists change, which it says on every transport."""

    def get_capabilities(
        self, notification_options: NotificationOptions | None = None, *args: Any, **kwargs: Any
    ) -> types.ServerCapabilities:
        """Return the capabilities announced to clients, with the change notifications."""
        return super().get_capabilities(CHANGE_NOTIFICATIONS, *args, **kwargs)


def _build_instructions(session: Session) -> str:
    """Build the instructions that clients receive once, covering all tools that may be available."""
    return build_instructions(owned.tool for owned in session.runtime.registry)


def _create_server(
    told: str, calls: ClientCalls, listing: SessionListing, resources: SessionResources, notes: CallLogger
) -> Server[Any]:
    async def call(
        request: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        result = await calls.serve(request, params)
        if notes.pending:
            await notes.flush()
        return result

    server = SessionServer(
        "handrail",
        title="Handrail",
        version=handrail.__version__,
        instructions=told,
        get_tool_input_schema=listing.schema,
        on_list_tools=listing.serve,
        on_call_tool=call,
        on_list_resources=listing.resources,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_subscriptions_listen=ListenHandler(listing.changes, max_subscriptions=16),
    )
    # Only up to 2025-11-25, which is why the constructor's own parameter warns.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, notes.set_level)
    return server


async def _run_stdio(server: Server[Any], wire: tuple[int, int] | None) -> None:
    options = server.create_initialization_options()
    try:
        async with open_streams(wire) as (reading, writing):
            await server.run(reading, writing, options)
    except* (BrokenPipeError, ConnectionResetError):
        log.info("the client closed its end")


async def end_on_signal(
    end: Callable[[], object], *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Call `end` on each SIGINT, SIGTERM or SIGHUP.

    On Windows, signals cannot be awaited, and this does nothing: the client ends the server by closing its input.
    """
    told = [signal.SIGINT, signal.SIGTERM]
    if sys.platform == "win32":
        # Signals cannot be awaited there; the client ends the server by closing its input.
        task_status.started()
        return
    with anyio.open_signal_receiver(*told, signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            end()
