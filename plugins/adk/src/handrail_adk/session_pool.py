"""The Handrail sessions of one toolset: one for each ADK session and agent, opened at the first step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any

from handrail import Session, Tool
from handrail.api.approval import Confirmer
from handrail.errors import HandrailError
from handrail_adk.adk_confirmation import AdkConfirmer
from handrail_adk.state_snapshot import build_snapshot, restore_session
from handrail_adk.step_batches import StepBatcher

if TYPE_CHECKING:
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.tools.tool_context import ToolContext

    from handrail.session.runtime import Runtime

log = logging.getLogger(__name__)

SessionKey = tuple[str, str, str, str]
NO_CONTEXT_KEY: SessionKey = ("", "", "", "")


class PooledSession:
    """Session with the state that its calls from ADK need.

    `asking` is None if the session has a confirmer of its own.
    """

    def __init__(self, session: Session, *, asking: AdkConfirmer | None) -> None:
        self.session = session
        self.asking = asking
        self.steps = StepBatcher(session)
        # Artifacts that ADK's own service has.
        self.saved: set[str] = set()
        self._invocation: str | None = None
        # Those of the step whose calls have ended.
        self._contexts: list[ToolContext] = []

    def begin(self, invocation: str | None) -> None:
        """Begin a step of this run of the agent. The first step of a run begins a turn."""
        self._contexts.clear()
        if invocation != self._invocation:
            self._invocation = invocation
            self.session.begin_turn()

    async def keep(self, context: ToolContext) -> None:
        """Leave in ADK's state where the session is after a call.

        Of the calls of a step ADK takes what the last in the model's order wrote, whichever ended last. So all that have ended write the same.
        """
        self._contexts.append(context)
        now = await build_snapshot(self.session, context.agent_name, context.state.to_dict())
        for each in self._contexts:
            for key, value in now.items():
                if each.agent_name == context.agent_name and each.state.get(key) != value:
                    each.state[key] = value


class HostToolset:
    """The tools that a host adds."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools

    async def tools(self, session: Session) -> Sequence[Tool]:
        return self._tools


class SessionPool:
    """Opens and closes them. With a `session` of the host's own there is this one for all, and closing it is the host's."""

    def __init__(
        self,
        *,
        session: Session | None,
        runtime: AbstractAsyncContextManager[Runtime] | None,
        confirm: Confirmer | None,
        tools: Sequence[Tool],
    ) -> None:
        self._given = session
        self._opening = runtime
        self._confirm = confirm
        self._tools = tools
        self._runtime: Runtime | None = None
        self._holds: dict[SessionKey, PooledSession] = {}
        self._lock = asyncio.Lock()
        self._process = AsyncExitStack()
        self._sessions: list[AsyncExitStack] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def of(self, context: ReadonlyContext | None) -> PooledSession:
        """Return the session for this agent in this ADK session, opened at the first use."""
        key = NO_CONTEXT_KEY if context is None or self._given is not None else _session_key(context)
        hold = self._holds.get(key)
        if hold is not None and self._loop is asyncio.get_running_loop():
            return hold
        self._check()
        async with self._lock:
            hold = self._holds.get(key)
            if hold is None:
                hold = await self._open(context)
                self._holds[key] = hold
        return hold

    def _check(self) -> None:
        if self._closed:
            raise HandrailError("the toolset is closed", hint="make a new one for a new runner")
        loop = self._loop = self._loop or asyncio.get_running_loop()
        if loop is not asyncio.get_running_loop():
            raise HandrailError(
                "a HandrailToolset is used from one event loop", hint="use the runner's run_async, not run"
            )

    async def _open(self, context: ReadonlyContext | None) -> PooledSession:
        if self._given is not None:
            session = self._given
        else:
            if self._runtime is None:
                assert self._opening is not None
                self._runtime = await self._process.enter_async_context(self._opening)
            stack = AsyncExitStack()
            session = await stack.enter_async_context(self._runtime.session(confirm=self._confirm))
            self._sessions.append(stack)
        if self._tools:
            session.offer(HostToolset(self._tools))
        asking = None
        if session.confirmer is None:
            asking = session.confirmer = AdkConfirmer(session)
        # A session that is given goes on where the ADK session was as long as nothing has been done in it: then it is a new program's.
        if context is not None and not session.history.last(1):
            await restore_session(session, context.agent_name, _get_state(context))
        return PooledSession(session, asking=asking)

    async def close(self) -> None:
        """End every session that was opened here, with all that runs in it."""
        self._closed = True
        sessions, self._sessions = self._sessions, []
        for failure in await asyncio.gather(*(stack.aclose() for stack in sessions), return_exceptions=True):
            if failure is not None:
                log.error("a session did not close", exc_info=failure)
        for hold in self._holds.values():
            if hold.asking is not None and hold.session.confirmer is hold.asking and not hold.session.closed:
                hold.session.confirmer = None
        self._holds.clear()
        await self._process.aclose()


def _session_key(context: ReadonlyContext) -> SessionKey:
    session = context.session
    return (session.app_name, session.user_id, session.id, context.agent_name)


def _get_state(context: ReadonlyContext) -> Mapping[str, Any]:
    return context.session.state
