"""One agent's state, and the calls it makes."""

from __future__ import annotations

import asyncio
import secrets
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import BaseModel

from handrail.api.approval import Approval, Confirmer
from handrail.api.call import Invocation, ToolCall
from handrail.api.desktop import Desktop
from handrail.api.events import BackendChanged, EventBus, ModeChanged, SessionEnded, ToolsChanged
from handrail.api.observation import Observations
from handrail.api.observer import Observer
from handrail.api.result import ResultStatus, ToolResult
from handrail.api.tool import Tool, Toolset
from handrail.api.verdict import Mode, Verdict, View
from handrail.approval.broker import ApprovalBroker
from handrail.artifacts.store import ArtifactStore
from handrail.audit.history import CallHistory
from handrail.audit.writer import AuditWriter
from handrail.config.settings import Settings
from handrail.errors import Denied, Failsafe, HandrailError, NoSandbox, Stopped
from handrail.events.live_output import LiveOutputWriter
from handrail.fs.path_resolution import find_link_target
from handrail.nested_dict import Bag
from handrail.pipeline.call_recorder import CallRecorder
from handrail.pipeline.call_task import CallTask
from handrail.pipeline.limits import SessionLimits
from handrail.pipeline.observers import SessionObservers
from handrail.pipeline.run import run_call
from handrail.pipeline.scheduler import CallScheduler
from handrail.pipeline.secret_refs import SessionSecrets
from handrail.plugins.missing_plugin import describe_missing_plugin
from handrail.policy.session_policy import SessionPolicy
from handrail.sandbox.selection import DOCTOR_HINT
from handrail.sanitize.provenance import ProvenanceTracker
from handrail.session.tool_context import ToolContext
from handrail.tools.session_tools import ListedTool, SessionTools
from handrail.undo.call_changes import CallChanges
from handrail.vision.backend_chain import Vision
from handrail.vision.backend_switcher import BackendSwitcher

# How often a call looks whether those are over that it has to wait for.
WAIT_POLL_S = 0.02

if TYPE_CHECKING:
    from handrail.approval.ask_user import Inquiry
    from handrail.approval.inbox import PostedQuestion
    from handrail.events.event_stream import EventStream
    from handrail.events.telemetry import CallTracer
    from handrail.sandbox.confinement import Confinement, SessionConfinement
    from handrail.sandbox.gateway import ProxyConnections
    from handrail.sandbox.quarantine import HostRun
    from handrail.session.runtime import Runtime
    from handrail.undo.plans import UndoPlan

# How long a session that ends waits for calls that do not stop.
CLOSE_TIMEOUT_S = 5.0


class Session:
    """Session of one agent: created by `Runtime.session`, used from one event loop, never shared.

    `desktop` is "current", "private" or the name of a running one. All calls go through `call` and `batch`.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        settings: Settings,
        confirmer: Confirmer | None,
        cwd: Path,
        workspace: Sequence[Path],
        by_hand: bool = False,
        desktop: Desktop | None = None,
    ) -> None:
        self.runtime = runtime
        # Whether a person makes the calls: they may use tools that agents may not, and their stop switch does not stop themselves.
        self.by_hand = by_hand
        self.settings = settings
        self._confirmer = confirmer
        self.id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self.began = time.time()
        self.cwd = cwd
        self.environment: Mapping[str, str] = {}
        self.workspace = tuple(workspace)
        self.closed = False
        # What calls left running and its end ended, in words.
        self.ended: Sequence[str] = ()
        self._over = anyio.Event()
        self.bus = EventBus()
        self.history = CallHistory()
        self.observations = Observations()
        kept = runtime.places.artifacts / self.id
        self.artifacts = ArtifactStore(kept, limit=settings.output.max_bytes, changed=self._artifact_came)
        self.intake = ProvenanceTracker(self.history, self.artifacts.source_of)
        self.stash = Bag()
        self.turn_stash = Bag()
        self.secrets = SessionSecrets(runtime.environment, settings.secrets, self.bus, self.artifacts)
        self.recorder = CallRecorder(self.history, self._audit(), self.secrets, self.observations, self.artifacts)
        self._calls = 0
        self.scheduler = CallScheduler(self)
        # The calls that have arrived and not ended, by their id, in the order they came.
        self.running: dict[str, CallTask] = self.scheduler.under_way
        self.approvals = ApprovalBroker(self._leave)
        self.onlookers = LiveOutputWriter(runtime.places, session=self.id, bus=self.bus)
        self.limits = SessionLimits(settings.limits, over=lambda why: self.cancel(why=why))
        self._desktop = desktop
        self._opening = anyio.Lock()
        self._confines: SessionConfinement | None = None
        # The calls that run on the host now and could have been confined.
        self._host_runs: list[HostRun] = []
        self._backend = runtime.choose_backend(settings.backend)
        self.views = self._views()
        # Whether the agent has put itself in plan mode.
        self.planning = False
        # What its calls change in files.
        self.changes = CallChanges(
            runtime.undo,
            session=self.id,
            workspace=self.workspace,
            bus=self.bus,
            kept=self.secrets.kept,
            servers=lambda: self.settings.mcp.servers,
            judge_anew=lambda: self.court.judge_anew(),
        )
        self.listing = SessionTools(self, lambda name: describe_missing_plugin("tools", name))
        self.court = SessionPolicy(self)
        # None: nobody traces calls, and nobody looks at them.
        self.tracing = self._trace()
        self.watch = self._observers()

    def _audit(self) -> AuditWriter | None:
        if not self.settings.audit.enabled:
            return None
        file = self.runtime.places.audit / f"{self.id}.jsonl"
        return AuditWriter(file, session=self.id, most=self.settings.audit.max_bytes, workspace=self.workspace)

    def _views(self) -> BackendSwitcher:
        vision = Vision(
            self._chain(), lambda name: self.runtime.open_backend(name, self), lambda: self.settings.backend_merge
        )
        return BackendSwitcher(vision, self.running, self.bus)

    def _trace(self) -> CallTracer | None:
        enabled = self.settings.telemetry.enabled
        if enabled is False or (enabled is None and "opentelemetry.trace" not in sys.modules):
            return None
        from handrail.events.telemetry import create_tracer

        return create_tracer(
            self.id,
            settings=lambda: self.settings.telemetry,
            environment=self.runtime.environment,
            kept=self.secrets.kept,
        )

    def _observers(self) -> SessionObservers | None:
        """Return the observers of calls from plugins and the configuration, or None if there are none."""
        observers: list[Observer] = list(self.runtime.observers.values())
        if self.settings.observers:
            from handrail.pipeline.observer_commands import CommandObserver

            observers += [CommandObserver(settings, self) for settings in self.settings.observers]
        return SessionObservers(self, observers) if observers else None

    # Calls

    def context_of(
        self, invocation: Invocation, running: CallTask, *, verdict: Verdict, sandbox: Confinement | None
    ) -> ToolContext:
        """Return what the handler of a call is given beside its parameters."""
        return ToolContext(self, invocation, running, verdict=verdict, sandbox=sandbox)

    async def call(self, name: str, args: Mapping[str, Any] | None = None, *, call_id: str | None = None) -> ToolResult:
        """Call a tool as a host does: judged, recorded, never raising. `call_id` is the host's own name for the call."""
        self._calls += 1
        return await run_call(self, ToolCall(name, {} if args is None else args, call_id or f"c{self._calls}"))

    async def nested(
        self, name: str, args: Mapping[str, Any], *, call_id: str, parent: Invocation, ask: str | None = None
    ) -> ToolResult:
        """Call a tool as a part of another call (`ToolContext.call`)."""
        return await run_call(self, ToolCall(name, args, call_id, ask=ask), parent)

    async def batch(
        self,
        calls: Sequence[ToolCall],
        *,
        told: Callable[[int, ToolResult], None] = lambda index, result: None,
        stop_on: Collection[ResultStatus] = (),
    ) -> list[ToolResult]:
        """Several calls of one model step. Those that do not conflict run together, the others in their order. Results in order.

        `told` hears of each result when it is there, with the index of its call. A result with a status in `stop_on` cancels what has not
        ended, as in `stop_on={"denied"}`. The argument `wait_for_previous` of a call makes it wait for all that came before.
        """
        for call in calls:
            # A call that is none would come to light deep inside, and in words of no use.
            if not isinstance(call, ToolCall):  # pyright: ignore[reportUnnecessaryIsInstance] # whoever writes without types
                raise TypeError(f"{call!r} is no call: batch takes ToolCall(name, args, call_id) values")
        return await self.scheduler.batch(calls, told, stop_on)

    async def undo(
        self,
        call: str | None = None,
        *,
        force: bool = False,
        skip_changed: bool = False,
        final: bool = False,
        call_id: str | None = None,
    ) -> ToolResult:
        """Restore files as they were before a call of this or another session: `ID` or `SESSION/ID`.

        None selects the newest call that is not undone. The undo is itself a call: judged as one that writes those
        files, recorded, and undone like any other. If any file was changed since, nothing is undone, unless `force`
        undoes that change, too, or `skip_changed` leaves such files as they are. The same applies to files whose
        present contents a redo could not restore; `final` allows losing those contents. Never raises.
        """
        from handrail.undo.undo_tool import UNDO_TITLE, build_undo_arguments

        await self.changes.settle()
        try:
            args = await build_undo_arguments(self, call, force=force, skip_changed=skip_changed, final=final)
        except HandrailError as exc:
            return ToolResult.failure(exc, title=UNDO_TITLE)
        self._calls += 1
        made = ToolCall("undo_call", args, call_id or f"c{self._calls}", by_hand=True)
        return await run_call(self, made)

    async def undo_plans(self, *, most: int = 20, everywhere: bool = False) -> list[UndoPlan]:
        """Return undo plans for the newest calls that changed files in this workspace, or `everywhere`; newest first."""
        from handrail.undo.selection import list_undo_plans

        await self.changes.settle()
        roots, stop = None if everywhere else list(map(str, self.workspace)), threading.Event()
        return await self.runtime.undo.run(lambda keeper: list_undo_plans(keeper, roots, most=most, stop=stop))

    async def undo_plan(self, call: str | None = None, *, diff: bool = False) -> tuple[UndoPlan, Sequence[str]]:
        """Return the undo plan of one call and, if `diff` is set, the lines of a diff. Raises `NotFound` for an unknown call."""
        from handrail.undo.selection import build_diff, find_undo_plan

        await self.changes.settle()
        roots, stop = list(map(str, self.workspace)), threading.Event()
        plan = await self.runtime.undo.run(lambda keeper: find_undo_plan(keeper, call, roots, stop=stop))
        lines = await self.runtime.undo.run(lambda keeper: build_diff(keeper, plan.paths)) if diff else []
        return plan, lines

    def cancel(self, call_id: str | Collection[str] | None = None, *, why: Stopped | None = None) -> int:
        """Cancel one call, several, or all, in any state (queued, awaiting approval or running); return how many.

        Their results have status `cancelled`.
        """
        return self.scheduler.cancel(call_id, why or Stopped("the call was cancelled"))

    def events(self) -> EventStream:
        """Return a stream of events from now on, for `async for event in session.events()`.

        The stream ends with the session and never blocks a call.
        """
        from handrail.events.event_stream import EventStream

        return EventStream(self.bus)

    def begin_turn(self, values: Mapping[str, Any] | None = None) -> None:
        """Begin a new turn: from a user message to the agent's answer to it.

        `values` are the initial contents of its stash. If a host has no notion of turns, the session stays in its first
        one.
        """
        self.turn_stash = Bag(values)

    # Tools

    async def tools(self) -> list[Tool]:
        """Begin a model step and return the tools the agent sees: earlier ones in their order, then new ones."""
        return [listed.tool for listed in await self.begin_step() if listed.available]

    async def begin_step(self) -> list[ListedTool]:
        """Begin a model step and return `all_tools`; ephemeral tools of the previous step are removed."""
        return await self.listing.begin_step()

    async def all_tools(self) -> list[ListedTool]:
        """Return every known tool, with the reason if it cannot be called."""
        return await self.listing.all()

    def offer(self, toolset: Toolset, *, owner: str = "host") -> None:
        """Add tools of the session's host to those of plugins. A name already in use keeps its owner."""
        self.listing.offer(toolset, owner=owner)

    async def load_tools(self, names: Iterable[str], *, source: str) -> None:
        """Declare loadable tools to the agent from its next step on, for as long as `source` ("skill:pdf") or another one holds them.

        Raises `NotFound` for a name that no tool has, and loads nothing then. Tools that need no loading are left as they are.
        """
        await self.listing.load(names, source=source)

    async def unload_tools(self, source: str) -> None:
        """Take back what `source` loaded; what another source has loaded too stays. Nothing happens when it loaded nothing."""
        self.listing.unload(source)

    def plugin_config(self, tool: str) -> BaseModel:
        """Return the settings of the plugin that owns a tool."""
        return self.runtime.plugin_config(self.listing.plugin_of(tool))

    # Judging

    @property
    def mode(self) -> Mode:
        """The mode that calls are judged in: the configuration's, or plan while the agent plans."""
        return Mode.PLAN if self.planning else self.settings.mode

    def plan(self, planning: bool) -> None:
        """Begin to plan, with tools that only look; or end it, which brings back the mode that the configuration says."""
        if planning is self.planning:
            return
        self.planning = planning
        self.court.judge_anew()
        self.bus.publish(ModeChanged("", self.mode.value))
        self.listing.changed(f"the mode is now {self.mode}")

    @property
    def confirmer(self) -> Confirmer | None:
        """Confirmer, or None; with `at_terminal` True, it is the user at the terminal where Handrail was started."""
        return self._confirmer

    @confirmer.setter
    def confirmer(self, confirmer: Confirmer | None) -> None:
        self._confirmer = confirmer
        self.court.judge_anew()
        self.listing.look_again()

    def _leave(self, question: Approval | Inquiry) -> PostedQuestion[Any]:
        """Post a question to the inbox for a user of this machine."""
        from handrail.approval.inbox import post_question

        return post_question(question, places=self.runtime.places, session=self.id)

    def keep(self, *, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        """Change the working directory or the variables for the calls that follow."""
        if cwd is not None:
            self.cwd = cwd
        if environment is not None:
            self.environment = dict(environment)
        self.court.judge_anew()

    def _artifact_came(self) -> None:
        """Publish a tool change: tools that query artifacts may have appeared, or may have a new artifact to query."""
        if self.bus.listening:
            self.bus.publish(ToolsChanged("", "the session holds another artifact"))

    def check_stopped(self) -> None:
        """Raise `Failsafe` while the user has engaged the stop switch of this desktop."""
        stops, opened = self.runtime.stops, self._desktop
        stopped = stops.engaged(self.settings.desktop) or (
            opened is not None and opened.temporary and stops.engaged(opened.switch)
        )
        if stopped and not self.by_hand:
            raise Failsafe("a person has stopped this desktop", hint="they resume it with `handrail resume`")

    # Sandbox

    @property
    def confining(self) -> bool:
        """True if a command of the session runs in a sandbox, or has left changes there that are not inspected yet."""
        return self._confines is not None and self._confines.running

    @property
    def temporary(self) -> Path | None:
        """The private folder that sandboxed commands have as /tmp and /var/tmp; None before there is one."""
        return self._confines.temporary if self._confines else None

    async def confinement(self, tool: Tool, view: View | None = None, *, hosts: Sequence[str] = ()) -> Confinement:
        """Return the confinement for a call of the tool.

        Raises `NoSandbox`, with the reason and the remedy, if there is none.

        `hosts` are the only hosts that the call may connect to.
        """
        from handrail.sandbox.confinement import find_unfit_workspace

        if not tool.confinable:
            raise NoSandbox(f"{tool.name} cannot run in a sandbox, and nothing was run")
        chosen = await self.runtime.sandbox()
        if chosen.sandbox is None:
            raise NoSandbox(f"there is no sandbox here, and nothing was run: {chosen.why_none}", hint=DOCTOR_HINT)
        if (why := find_unfit_workspace(self.workspace, home=self.court.judging.home)) is not None:
            raise NoSandbox(f"nothing was run: {why}")
        for root in self.workspace:
            if (place := find_link_target(root)) is not None:
                why = f"the workspace {str(root)!r} has become a link to {place!r}, or lies behind one"
                raise NoSandbox(
                    f"nothing was run: {why}", hint="put the folder back, or open a session in the other one"
                )
        if view is not View.READ and not self.settings.sandbox.network:
            await self._own_confines().wait_for_host()
        fresh = self.temporary is None
        given = self._own_confines().confinement(
            chosen.sandbox, self.settings.sandbox, view or View.WORK, hosts=hosts, connections=self._connections()
        )
        if fresh:
            self.court.judge_anew()
        return given

    def _connections(self) -> ProxyConnections:
        from handrail.sandbox.gateway import ProxyConnections

        network = self.settings.network
        return ProxyConnections(network.allow_private, network.proxy, self.runtime.environment)

    async def open_temporary(self) -> None:
        """Make the private folder that sandboxed commands have as /tmp, unless there is one or no sandbox would show it."""
        offer = await self.runtime.offer(self.court.judging, self.settings)
        if self.temporary is None and offer is not None and offer.private_tmp:
            self._own_confines().open_temporary()
            self.court.judge_anew()

    def _own_confines(self) -> SessionConfinement:
        from handrail.sandbox.confinement import SessionConfinement
        from handrail.sandbox.shared_runs import SharedRuns
        from handrail.sandbox.started_commands import HAS_BIND_MOUNTS

        if self._confines is None:
            self._confines = SessionConfinement(
                workspace=self.workspace,
                home=self.court.judging.home,
                environment=self.runtime.environment,
                protected=self.runtime.judging.protected,
                host_runs=self._host_runs,
                shared=SharedRuns(self.runtime.places.state, self.workspace) if HAS_BIND_MOUNTS else None,
                renamed=self.changes.look_past,
            )
        return self._confines

    async def begin_question(self) -> HostRun:
        """Pause the session's sandboxed commands while the user is asked about a call on the host.

        This ensures that the call runs what the user was shown.
        """
        from handrail.sandbox.quarantine import HostRun

        run = HostRun(asked=True)
        while any(other.confined is not None for other in self._host_runs):
            await anyio.sleep(WAIT_POLL_S)
        self._host_runs.append(run)
        await self._hold_for(run, self._own_confines().hold_own)
        return run

    async def begin_repository_run(self, sandbox: Confinement) -> HostRun:
        """Hold all other sandboxed commands while this one can change a repository: they could lead git elsewhere, into its data."""
        from handrail.sandbox.quarantine import HostRun

        return await self._begin_run(HostRun(confined=sandbox.traffic))

    async def begin_host_run(self, view: View | None, asked: HostRun | None = None) -> HostRun | None:
        """Make the workspace safe for a call that could have been confined but runs on the host.

        Returns None for a view that needs no workspace. `asked` is the run that has held commands since the user was
        asked. Raises `Denied` if the workspace cannot be made safe.
        """
        from handrail.sandbox.quarantine import HostRun

        if view in (View.SHELL, View.SYSTEM, View.FILES):
            return None
        return await self._begin_run(asked or HostRun())

    async def _begin_run(self, run: HostRun) -> HostRun:
        """Begin a run once it may: those that change a repository run alone, those on the host beside each other."""
        while True:
            others = [other for other in self._host_runs if other is not run]
            waits = any(run.confined is not None or other.confined is not None for other in others)
            if not waits and self._own_confines().announce(run):
                # From here on, what starts in the sandbox waits for the call to end.
                run.begun = True
                self._host_runs[:] = [*others, run]
                await self._prepare_run(run)
                return run
            await anyio.sleep(WAIT_POLL_S)

    async def _hold_for(self, run: HostRun, hold: Callable[[HostRun], None]) -> None:
        """Hold commands in a thread. Where that fails or the call is cancelled, they run on as soon as the thread holds no more."""

        def over(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                # Nobody else looks at why it failed.
                task.exception()
            self.end_host_run(run)

        task = asyncio.create_task(anyio.to_thread.run_sync(hold, run))
        try:
            await asyncio.shield(task)
        except BaseException:
            task.add_done_callback(over)
            raise

    async def _prepare_run(self, run: HostRun) -> None:
        """Hold other commands and quarantine what they left behind.

        Raises `Denied` if the workspace cannot be made safe.
        """
        await self._hold_for(run, self._own_confines().prepare_host_run)
        try:
            if run.unheld:
                raise Denied(
                    "nothing runs on the host now: sandboxed commands still run, and can be neither paused nor ended",
                    hint="wait for them, or end them by stop_process",
                )
            if run.left:
                raise Denied(
                    f"nothing runs on the host while this is there: {', '.join(run.left)}; a sandboxed command may have left or changed it for "
                    "programs to run unasked, and it could not be renamed or looked into, or was replaced while the command ran",
                    hint="look at it, then remove it, rename it, save it again or give its folder permissions to read",
                    details={"not_put_aside": list(run.left)},
                )
        except BaseException:
            self.end_host_run(run)
            raise

    def end_host_run(self, run: HostRun) -> None:
        """End the call's host run and let sandboxed commands resume."""
        if run not in self._host_runs:
            return
        self._host_runs.remove(run)
        self._own_confines().end_host_run(run)

    def written_outside(self, verdict: Verdict) -> Callable[[], None]:
        """Return a callback to run when a call outside the sandbox ends.

        The callback exempts the files that the call was allowed to write from quarantine.
        """
        if self._confines is None:
            return lambda: None
        written = [touch.what for part in verdict.parts for touch in part.touches if touch.kind == "write"]
        return self._confines.written_outside(written)

    # Desktop, services, backend

    async def desktop(self) -> Desktop:
        """Return the desktop this session works on, started or found on first use."""
        if self._desktop is not None:
            return self._desktop
        async with self._opening:
            if self._desktop is None:
                self._desktop = await self.runtime.desktop(self.settings.desktop, session=self.id)
                self.recorder.opened(self._desktop)
            return self._desktop

    @property
    def owners(self) -> tuple[str, ...]:
        """By what its services, and those of its desktop, are kept."""
        return (self.id, self._desktop.key) if self._desktop is not None else (self.id,)

    async def service(self, capability: str) -> Any:
        """Return a service of this process, desktop or session. Raises `ToolUnavailable` if no plugin supplies it."""
        scope = self.runtime.scope_of(capability)
        desktop = await self.desktop() if scope == "desktop" else None
        return await self.runtime.service(capability, session=self, desktop=desktop)

    @asynccontextmanager
    async def lease(self, resource: str, invocation: Invocation) -> AsyncGenerator[None, None]:
        """Hold a resource for a call. A nested call works under the leases of the call it is part of."""
        above = invocation.parent
        while above is not None and above.tool.exclusive != resource:
            above = above.parent
        if above is not None:
            yield
            return
        name = f"{self.id}:{resource}" if resource != "desktop" else f"desktop:{(await self.desktop()).key}"
        async with self.runtime.leases.hold(name):
            yield

    @property
    def backend(self) -> str | None:
        """Name of the chosen vision backend; None if there is none."""
        return self._backend

    @property
    def capabilities(self) -> frozenset[str]:
        """Capabilities the chosen backend declares, without those of fallbacks."""
        chosen = self.runtime.backends.get(self._backend or "")
        return chosen.capabilities if chosen else frozenset()

    @property
    def vision(self) -> Vision:
        """Vision for calls that begin now: the chosen backend, followed by the fallbacks."""
        return self.views.now

    async def use_backend(self, name: str) -> None:
        """Choose another vision backend; the list of tools follows at once, and calls under way end on the one before.

        `BackendUnavailable` names those there are.
        """
        if self._choose(self.runtime.choose_backend(name)):
            self.listing.changed(f"the vision backend is now {name}")

    def _choose(self, backend: str | None) -> bool:
        """See by this backend from now on; whether that is another one."""
        changed, self._backend = backend != self._backend, backend
        self.views.switch(self._chain())
        if changed:
            self.listing.look_again()
            # A private desktop is not started for it: nobody has asked for anything to be seen.
            if backend is not None and (self._desktop is not None or self.settings.desktop != "private"):
                self.vision.warm_up(backend)
            self.bus.publish(BackendChanged("", backend or ""))
        return changed

    def _chain(self) -> tuple[str, ...]:
        """Return the backends to try, in order: the chosen one, then the fallbacks."""
        return tuple(name for name in (self._backend, *self.settings.backend_fallback) if name)

    def apply(self, settings: Settings) -> None:
        """Take over settings that were changed while the session lives: backend, tools and rules. The desktop stays."""
        before = self.settings
        self.settings = settings.model_copy(update={"desktop": before.desktop})
        for name in {*before.backends, *settings.backends}:
            if before.backends.get(name) != settings.backends.get(name):
                self.vision.forget(name)
        self.court.policy.rules = self.runtime.rules
        self.artifacts.limit = settings.output.max_bytes
        self.limits.apply(self.settings.limits)
        # What `use_backend` chose stays until somebody writes another one into the file.
        other = settings.backend != before.backend
        self._choose(self.runtime.choose_backend(settings.backend) if other else self._backend)
        self.listing.look_again()
        self.court.seat_anew()
        self.tracing = self._trace()
        self.watch = self._observers()
        self.court.judge_anew()
        self.bus.publish(ToolsChanged("", "the configuration was changed"))

    async def close(self) -> None:
        """Stop running calls, close what was opened, end the audit log. Later calls are refused.

        Closing again waits for the first close to finish.
        """
        if self.closed:
            await self._over.wait()
            return
        self.closed = True
        try:
            await self._end()
        finally:
            self._over.set()

    async def _end(self) -> None:
        self.ready = {}
        self.cancel(why=Stopped("the session is over"))
        self.limits.close()
        with anyio.move_on_after(CLOSE_TIMEOUT_S):
            while self.running:
                await anyio.sleep(0.005)
        await self.vision.close()
        self.ended = await self.runtime.close_services(session=self)
        if self._confines is not None:
            await anyio.to_thread.run_sync(self._confines.finish)
        await self.changes.close()
        if self._confines is not None:
            await anyio.to_thread.run_sync(self._confines.close)
        self.artifacts.close()
        self.court.close()
        self.recorder.close()
        if self.bus.listening:
            self.bus.publish(SessionEnded("", self.id))
