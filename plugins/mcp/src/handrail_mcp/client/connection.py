"""One server of the configuration: started or reached, listed, followed, and reached again when it is gone."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic
from typing import Any, cast

import anyio
from mcp import Client, types
from mcp.client.subscriptions import ListenNotSupportedError, ResourcesListChanged, SubscriptionLost, ToolsListChanged
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, FileUrl, ValidationError

import handrail
from handrail import Downstream, HandrailError, TimedOut, ToolContext, ToolUnavailable
from handrail.config.settings import ServerSettings
from handrail.json_types import count_values
from handrail.sanitize.envelope import clean_text
from handrail_mcp.client.elicitation import CANCEL_RESULT, handle_elicitation, withdraw_questions
from handrail_mcp.client.remote_tools import DeclaredTool, inspect_tools
from handrail_mcp.client.transports import ServerEnvironment, TransportFactory, build_path_hint, list_transports

log = logging.getLogger(__name__)

# Of one server: what more it lists is left out.
MAX_LISTED_ITEMS = 500
MAX_PAGES = 50
MOST_LISTED = 500_000
# Changes of the list that come closer together than this are one.
COALESCE_S = 0.1
APART_S = 1.0
# Seconds between attempts: doubled each time up to the last, and begun anew when it had worked for a while.
FIRST_S, LAST_S, WORKED_S = 0.5, 60.0, 30.0
# A server that is gone keeps its tools for so many attempts, so that the list is not rebuilt for a short absence.
PATIENCE = 3
# Seconds that a call waits for a server that is being reached again.
AWAITED_S = 10.0
CLOSING_S = 6.0
# Progress closer together than this is not told.
PROGRESS_S = 0.05
MAX_ERROR_TEXT = 300
# What the SDK says when there is no answer; servers use the same codes for errors of their own.
CLOSED_ERRORS = ("Connection closed", "SSE stream ")
# What it says of an answer over HTTP after which a server is reached anew.
BROKEN_ERRORS = (*CLOSED_ERRORS, "Server returned an error response", "Session terminated", "Unexpected content type")

CLIENT_INFO = types.Implementation(name="handrail", version=handrail.__version__)


class ConnectionState(StrEnum):
    """State of the connection to a server."""

    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ServerListing:
    """Tools, resources and resource templates that a server has listed."""

    tools: tuple[DeclaredTool, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    # Whether it had more than is kept.
    cut: bool = False


@dataclass(eq=False, slots=True)
class ActiveCall:
    """Running call. The time that the user takes to answer the server's questions does not count."""

    context: ToolContext
    until: float
    asking: int = 0
    questions: int = 0
    told: float = 0.0

    def left(self) -> float:
        return 1.0 if self.asking else self.until - monotonic()


@dataclass(eq=False)
class ServerConnection:
    """Connection to a server: created, started and closed by its owner; in between it reconnects on its own.

    `changed` is called when the listing has changed.
    """

    name: str
    settings: ServerSettings
    around: ServerEnvironment
    changed: Callable[[ServerConnection, str], None]
    state: ConnectionState = ConnectionState.STARTING
    problem: str = ""
    listing: ServerListing = ServerListing()
    protocol: str = ""
    # Set when the first attempt is over, whatever came of it.
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    _client: Client | None = None
    _task: asyncio.Task[None] | None = None
    _scope: anyio.CancelScope | None = None
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _broken: anyio.Event = field(default_factory=anyio.Event)
    _stale: anyio.Event = field(default_factory=anyio.Event)
    _attempts: int = 0
    # Why the present attempt, or what it came to, is over. `problem` stays until the server is there.
    _why: str = ""
    _requests: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _calls: list[ActiveCall] = field(default_factory=list[ActiveCall])

    def start(self) -> None:
        self._task = asyncio.create_task(self._live(), name=f"mcp server {self.name}")

    async def close(self) -> None:
        """End it, with all that was started for it."""
        self.state = ConnectionState.CLOSED
        for request in self._requests:
            request.cancel()
        if self._task is None:
            return
        if self._scope is not None:
            self._scope.cancel()
        else:
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=CLOSING_S)
        if not self._task.done():
            log.error("the server %s does not let go; it is left behind", self.name)
            self._task.cancel()

    def told(self) -> dict[str, Any]:
        """Return the state of the connection as plain data."""
        return {
            "name": self.name,
            "state": str(self.state),
            "problem": self.problem,
            "protocol": self.protocol,
            "tools": len(self.listing.tools),
            "resources": len(self.listing.resources),
        }

    @property
    def present(self) -> bool:
        """True if the listed tools and resources are offered.

        They still are during the first `PATIENCE` attempts to reconnect.
        """
        return self.state is ConnectionState.READY or (
            self.state is ConnectionState.WAITING and self._attempts <= PATIENCE
        )

    @property
    def under_way(self) -> int:
        """Number of requests waiting for a response."""
        return len(self._requests)

    # Requests

    async def call_tool(self, tool: str, args: dict[str, Any], context: ToolContext) -> types.CallToolResult:
        """Call a tool once; everything that is not a result of the tool raises `ToolError`."""
        client = await self._reached(tool)
        call = ActiveCall(context, monotonic() + self.settings.timeout)

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            if (now := monotonic()) - call.told >= PROGRESS_S or progress == total:
                call.told = now
                context.progress(
                    _compute_fraction(progress, total),
                    clean_text((message or "")[: 4 * MAX_ERROR_TEXT]).text[:MAX_ERROR_TEXT],
                )

        listening: ProgressFnT | None = hear if context.listening else None
        return await self._request(client.call_tool(tool, args, progress_callback=listening), call, tool)

    async def read_resource(self, uri: str, context: ToolContext) -> types.ReadResourceResult:
        """Read the contents of a resource."""
        client = await self._reached(uri)
        call = ActiveCall(context, monotonic() + self.settings.timeout)
        return await self._request(client.read_resource(uri), call, uri)

    async def _reached(self, what: str) -> Client:
        if self._client is None and self.state is not ConnectionState.CLOSED:
            with anyio.move_on_after(min(AWAITED_S, self.settings.timeout)):
                await self._ready.wait()
        if self._client is None:
            raise ToolUnavailable(
                f"{what} cannot be called: the server {self.name!r} is not there ({self.problem or self.state})"
            )
        return self._client

    async def _request(self, request: Coroutine[Any, Any, Any], call: ActiveCall, what: str) -> Any:
        """Send a request and return the response.

        The request runs in its own task, so that a stopped call does not wait for the server to notice.
        """
        task = asyncio.create_task(request)
        self._requests.add(task)
        self._calls.append(call)
        task.add_done_callback(self._requests.discard)
        try:
            while not task.done():
                if (left := call.left()) <= 0:
                    raise TimedOut(f"the server {self.name!r} did not answer within {self.settings.timeout:g} s")
                await asyncio.wait({task}, timeout=left)
            if task.cancelled():
                raise Downstream(f"the server {self.name!r} was ended before it answered")
            return task.result()
        except HandrailError:
            raise
        except MCPError as exc:
            raise self._refused(exc, what) from exc
        # What a server sends, and what a transport makes of it, fails in many ways; all of them are this call's failure only.
        except Exception as exc:
            log.debug("the server %s answered %s wrongly", self.name, what, exc_info=True)
            raise Downstream(f"the server {self.name!r} gave an answer that is none ({type(exc).__name__})") from exc
        finally:
            self._calls.remove(call)
            if call.asking:
                withdraw_questions(call.context)
            if not task.done():
                task.add_done_callback(_consume_task_result)
                # The SDK tells the server on the way out.
                task.cancel()

    def _refused(self, exc: MCPError, what: str) -> HandrailError:
        if exc.error.message.startswith(BROKEN_ERRORS) and not self.settings.command:
            self._ended("the connection is lost")
        if exc.error.code == types.CONNECTION_CLOSED and exc.error.message.startswith(CLOSED_ERRORS):
            # The next call waits for another connection, and the transport has a moment to say why this one is over.
            asyncio.get_running_loop().call_later(1.0, self._broken.set)
            self._lost()
            return Downstream(
                f"the server {self.name!r} was gone before it answered; whether {what} was done is not known",
                hint="look before you call again",
            )
        return Downstream(
            f"the server {self.name!r} refused {what}: {clean_text(exc.error.message[: 4 * MAX_ERROR_TEXT]).text[:MAX_ERROR_TEXT]}"
        )

    # Life

    async def _live(self) -> None:
        with anyio.CancelScope() as self._scope:
            while True:
                began = monotonic()
                self.problem = await self._attempt() + build_path_hint(self.settings, self.around.cwd)
                self._lost()
                worked = monotonic() - began > WORKED_S + self.settings.start_timeout
                self._attempts = 1 if worked else self._attempts + 1
                told = log.info if self.tried.is_set() else log.warning
                told("the server %r is not there: %s; see [mcp.servers.%s]", self.name, self.problem, self.name)
                self.tried.set()
                if self._attempts == PATIENCE + 1:
                    self.changed(self, f"the server {self.name} is not there: {self.problem}")
                await anyio.sleep(min(LAST_S, FIRST_S * 2 ** min(self._attempts - 1, 10)) * random.uniform(0.8, 1.2))

    async def _attempt(self) -> str:
        """Reach the server and stay with it; why that is over."""
        try:
            options = await list_transports(self.settings, self.around, self._ended)
        except HandrailError as exc:
            return f"{exc}; {exc.hint}" if exc.hint else str(exc)
        problems: list[str] = []
        for way in options:
            self._broken = anyio.Event()
            self._why = ""
            try:
                with anyio.CancelScope(deadline=anyio.current_time() + self.settings.start_timeout) as scope:
                    await self._stay(way, scope)
                    return self._why or "it closed the connection"
                problems.append(f"it did not answer within {self.settings.start_timeout:g} s")
            # Transports and a server's answers fail in many ways, and none of them may end the others' service.
            except Exception as exc:
                log.debug("the server %s cannot be reached", self.name, exc_info=True)
                problems.append(self._why or _describe_error(exc))
                if self._client is not None:
                    return problems[-1]
        return problems[0]

    async def _stay(self, way: TransportFactory, scope: anyio.CancelScope) -> None:
        async with self._client_of(way) as client:
            self.listing = await self._list(client)
            scope.deadline = math.inf
            self._client = client
            self.state, self.problem, self.protocol = ConnectionState.READY, "", client.protocol_version
            self._ready.set()
            self.tried.set()
            self.changed(self, f"the server {self.name} is there")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, client)
                tasks.start_soon(self._listen, client)
                await self._broken.wait()
                self._lost()
                tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def _client_of(self, way: TransportFactory) -> AsyncGenerator[Client, None]:
        client = Client(
            way(),
            cache=None,
            client_info=CLIENT_INFO,
            message_handler=self._heard,
            elicitation_callback=self._asked,
            list_roots_callback=self._roots if self.settings.roots else None,
        )
        async with client:
            # Output is checked here, within bounds, and not by the SDK.
            client.session.validate_tool_result = _skip_validation
            yield client

    def _lost(self) -> None:
        self._client = None
        self._ready.clear()
        if self.state is not ConnectionState.CLOSED:
            self.state = ConnectionState.WAITING

    def _ended(self, why: str) -> None:
        self._why = self._why or why
        self._broken.set()

    # What it offers

    async def _follow(self, client: Client) -> None:
        """List again whenever the server says that something is another, and not more often than makes sense."""
        while True:
            await self._stale.wait()
            await anyio.sleep(COALESCE_S)
            self._stale = anyio.Event()
            with anyio.move_on_after(self.settings.start_timeout) as scope:
                try:
                    listing = await self._list(client)
                except (MCPError, ValidationError, RuntimeError, ValueError) as exc:
                    log.warning("the server %s cannot say what it has: %s", self.name, _describe_error(exc))
                    continue
                if listing != self.listing:
                    self.listing = listing
                    self.changed(self, f"the server {self.name} has changed its tools or resources")
            if scope.cancelled_caught:
                log.warning("the server %s does not say what it has", self.name)
            await anyio.sleep(APART_S)

    async def _listen(self, client: Client) -> None:
        """Listen for list changes on a connection that carries no unsolicited messages."""
        try:
            async with client.listen(tools_list_changed=True, resources_list_changed=True) as changes:
                async for change in changes:
                    if isinstance(change, ToolsListChanged | ResourcesListChanged):
                        self._stale.set()
        except (ListenNotSupportedError, SubscriptionLost, MCPError) as exc:
            log.debug("the server %s tells of no changes: %s", self.name, exc)

    async def _heard(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification | types.ResourceListChangedNotification):
            self._stale.set()

    async def _list(self, client: Client) -> ServerListing:
        can = client.server_capabilities
        listed, more = (
            await _collect_pages(lambda at: client.list_tools(cursor=at), "tools") if can.tools else ((), False)
        )
        # Looking through much takes long; a server that is given up meanwhile is not waited for.
        tools = tuple(await anyio.to_thread.run_sync(inspect_tools, listed, abandon_on_cancel=True))
        if not can.resources:
            return ServerListing(tools, cut=more)
        resources, more_resources = await _collect_pages(lambda at: client.list_resources(cursor=at), "resources")
        try:
            templates, _ = await _collect_pages(
                lambda at: client.list_resource_templates(cursor=at), "resource_templates"
            )
        except MCPError:
            templates = ()
        return ServerListing(tools, resources, templates, cut=more or more_resources)

    # What it asks

    async def _asked(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Answer a server's elicitation request.

        The user is only prompted while one of our calls is running, which the request can be about.
        """
        if not self._calls:
            return CANCEL_RESULT
        call = self._calls[-1]
        call.asking += 1
        call.questions += 1
        began = monotonic()
        try:
            return await handle_elicitation(params, server=self.name, context=call.context, number=call.questions)
        except (HandrailError, ValueError) as exc:
            log.info("a question of the server %s was not asked: %s", self.name, exc)
            return CANCEL_RESULT
        # The SDK would tell the server what went wrong here.
        except Exception:
            log.exception("a question of the server %s could not be asked", self.name)
            return CANCEL_RESULT
        finally:
            call.asking -= 1
            call.until += monotonic() - began

    async def _roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(
            roots=[types.Root(uri=FileUrl(root.as_uri()), name=root.name) for root in self.around.workspace]
        )


async def _collect_pages(page: Callable[[str | None], Awaitable[Any]], key: str) -> tuple[tuple[Any, ...], bool]:
    """Return the items of all pages of a list, up to the limits, and True if there were more."""
    found: list[Any] = []
    held = 0
    at: str | None = None
    for _ in range(MAX_PAGES):
        given = await page(at)
        items: list[BaseModel] = getattr(given, key)
        held += sum(_count_held(item) for item in items[:MAX_LISTED_ITEMS])
        if held > MOST_LISTED:
            log.warning(
                "the %s of a server hold more than %d values; those of further pages are left out", key, MOST_LISTED
            )
            return tuple(found[:MAX_LISTED_ITEMS]), True
        found += items
        if len(found) > MAX_LISTED_ITEMS:
            return tuple(found[:MAX_LISTED_ITEMS]), True
        if given.next_cursor is None or given.next_cursor == at:
            return tuple(found), False
        at = given.next_cursor
    return tuple(found), True


def _count_held(item: BaseModel) -> int:
    return sum(count_values(value, MOST_LISTED) for value in cast("dict[str, object]", vars(item)).values())


async def _skip_validation(name: str, result: types.CallToolResult) -> None: ...


def _consume_task_result(task: asyncio.Task[Any]) -> None:
    """Retrieve the exception of an abandoned request, so that asyncio does not report it as unhandled."""
    if not task.cancelled():
        task.exception()


def _compute_fraction(done: float, total: float | None) -> float | None:
    if not total or not math.isfinite(total) or not math.isfinite(done) or total < 0:
        return None
    return min(1.0, max(0.0, done / total))


def _describe_error(exc: BaseException) -> str:
    """Describe the error in one line."""
    while isinstance(exc, BaseExceptionGroup):
        exc = cast("BaseExceptionGroup[BaseException]", exc).exceptions[0]
    if isinstance(exc, FileNotFoundError):
        return f"there is no program or folder {exc.filename!r}"
    if isinstance(exc, ValidationError):
        # Its text has some lines for each value that does not fit, and there may be very many.
        return f"what it sent does not fit the protocol ({exc.error_count()} problems in {exc.title})"
    said = " ".join(clean_text(str(exc)[: 4 * MAX_ERROR_TEXT]).text.split())[:MAX_ERROR_TEXT]
    return f"{type(exc).__name__}: {said}" if said else type(exc).__name__
