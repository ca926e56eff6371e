"""A session as the stages of a call see it: the parts of it that they work with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from handrail.policy.session_policy import PolicyRuntime, PolicySession

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from handrail.api.call import Invocation
    from handrail.api.context import CallContext
    from handrail.api.desktop import Desktop
    from handrail.api.events import EventBus
    from handrail.api.tool import Tool
    from handrail.api.verdict import Verdict, View
    from handrail.approval.broker import ApprovalBroker
    from handrail.artifacts.store import ArtifactStore
    from handrail.desktop.recent_agent_input import AgentInputRecord
    from handrail.events.live_output import LiveOutputWriter
    from handrail.events.telemetry import CallTracer
    from handrail.pipeline.call_recorder import CallRecorder
    from handrail.pipeline.call_task import CallTask
    from handrail.pipeline.limits import SessionLimits
    from handrail.pipeline.observers import SessionObservers
    from handrail.pipeline.scheduler import CallScheduler
    from handrail.pipeline.secret_refs import SessionSecrets
    from handrail.policy.session_policy import SessionPolicy
    from handrail.sandbox.confinement import Confinement
    from handrail.sandbox.quarantine import HostRun
    from handrail.sandbox.selection import SandboxChoice
    from handrail.tools.session_tools import SessionTools
    from handrail.workers.host_programs import HostPrograms


class CallRuntime(PolicyRuntime, Protocol):
    """Runtime of a session as the stages of a call use it."""

    @property
    def cwd(self) -> Path: ...
    @property
    def programs(self) -> HostPrograms: ...
    @property
    def presses(self) -> AgentInputRecord: ...
    async def sandbox(self) -> SandboxChoice: ...


class CallSession(PolicySession, Protocol):
    """Session as the stages of a call use it; `Session` describes each member."""

    @property
    def runtime(self) -> CallRuntime: ...
    @property
    def id(self) -> str: ...
    @property
    def by_hand(self) -> bool: ...
    @property
    def closed(self) -> bool: ...

    # Its parts

    @property
    def bus(self) -> EventBus: ...
    @property
    def listing(self) -> SessionTools: ...
    @property
    def court(self) -> SessionPolicy: ...
    @property
    def approvals(self) -> ApprovalBroker: ...
    @property
    def scheduler(self) -> CallScheduler: ...
    @property
    def running(self) -> dict[str, CallTask]: ...
    @property
    def limits(self) -> SessionLimits: ...
    @property
    def secrets(self) -> SessionSecrets: ...
    @property
    def artifacts(self) -> ArtifactStore: ...
    @property
    def recorder(self) -> CallRecorder: ...
    @property
    def onlookers(self) -> LiveOutputWriter: ...
    @property
    def tracing(self) -> CallTracer | None: ...
    @property
    def watch(self) -> SessionObservers | None: ...

    # What it does for a call

    def context_of(
        self, invocation: Invocation, running: CallTask, *, verdict: Verdict, sandbox: Confinement | None
    ) -> CallContext: ...
    def check_stopped(self) -> None: ...
    async def desktop(self) -> Desktop: ...
    def lease(self, resource: str, invocation: Invocation) -> AbstractAsyncContextManager[None]: ...
    async def confinement(self, tool: Tool, view: View | None = None, *, hosts: Sequence[str] = ()) -> Confinement: ...
    async def begin_question(self) -> HostRun: ...
    async def begin_repository_run(self, sandbox: Confinement) -> HostRun: ...
    async def begin_host_run(self, view: View | None, asked: HostRun | None = None) -> HostRun | None: ...
    def end_host_run(self, run: HostRun) -> None: ...
    def written_outside(self, verdict: Verdict) -> Callable[[], None]: ...
