"""One agent's state, and the calls it makes."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from pydantic import BaseModel

from handrail.artifacts.store import Artifacts
from handrail.asking.approvals import Approvals
from handrail.asking.confirm import Confirmer
from handrail.bag import Bag
from handrail.calls import pipeline
from handrail.calls.invocation import GrantOption, Invocation, ToolCall
from handrail.calls.limits import OVER, Limits, TimeIsUp
from handrail.calls.named_secrets import Secrets
from handrail.calls.running import Running
from handrail.calls.scheduler import Scheduler
from handrail.config.settings import Settings
from handrail.desktops.desktop import Desktop, Focusing
from handrail.errors import (
    Failsafe,
    HandrailError,
    NoSandbox,
    Stopped,
    ToolUnavailable,
    UnknownTool,
)
from handrail.files import paths
from handrail.judging.grants import Grant
from handrail.judging.policy import Policy
from handrail.judging.verdicts import Focus, Judging, Mode, Seat, Verdict, decided, hear
from handrail.records.audit import Audit
from handrail.records.history import History
from handrail.records.recorder import Recorder
from handrail.results.values import Status, ToolResult
from handrail.sandboxing.choosing import CURE
from handrail.tools.contract import Tool, Toolset
from handrail.tools.pool import Pool
from handrail.tools.registry import Owned
from handrail.untrusted.intake import Intake
from handrail.vision.observation import Observations
from handrail.vision.seeing import Vision
from handrail.vision.switching import Views
from handrail.watching.events import BackendChanged, Bus, ModeChanged, SessionEnded, ToolsChanged
from handrail.watching.observers import Observer
from handrail.watching.observing import Watch
from handrail.words import nearest

if TYPE_CHECKING:
    from handrail.runtime import Runtime
    from handrail.sandboxing.confining import Confinement, Confines
    from handrail.watching.event_stream import EventStream
    from handrail.watching.telemetry import Tracing


log = logging.getLogger(__name__)

# How long a session that ends waits for calls that do not stop.
CLOSING_S = 5.0


@dataclass(frozen=True, slots=True)
class Listed:
    """A known tool, and why it cannot be called now; `reason` is None when it can.

    `source` says what it comes from beside its plugin: "server:docs", "skill:pdf", or None.
    """

    tool: Tool
    plugin: str
    source: str | None
    reason: str | None

    @property
    def available(self) -> bool:
        return self.reason is None


class Session:
    """One agent's session: made by `Runtime.session`, used from one event loop, shared with nobody.

    `desktop` is "current", "private" or the name of a started one. Calls go through `call` and `batch`, and through nothing else.
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
    ) -> None:
        self.runtime = runtime
        # Whether a person makes the calls: they may use tools that agents may not, and their stop switch does not stop themselves.
        self.by_hand = by_hand
        self.settings = settings
        self._confirmer = confirmer
        self.id = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self.cwd = cwd
        self.environment: Mapping[str, str] = {}
        self.workspace = tuple(workspace)
        self.bus = Bus()
        self.history = History()
        self.observations = Observations()
        self.artifacts = Artifacts(
            runtime.places.artifacts / self.id, limit=settings.output.max_bytes, changed=self._artifact_came
        )
        self.intake = Intake(self.history, self.artifacts.source_of)
        self.stash = Bag()
        self.turn_stash = Bag()
        self.policy = Policy(runtime.rules)
        self.policy.lasting = runtime.grants
        self._uses: Counter[str] = Counter()
        self.closed = False
        self._over = anyio.Event()
        self.scheduler = Scheduler(self)
        # The calls that have arrived and not ended, by their id, in the order they came.
        self.running: dict[str, Running] = self.scheduler.under_way
        self.approvals = Approvals()
        self.limits = Limits(settings.limits)
        file, most = runtime.places.audit / f"{self.id}.jsonl", settings.audit.max_bytes
        on = settings.audit.enabled
        audit = Audit(file, session=self.id, most=most, workspace=self.workspace) if on else None
        self.secrets = Secrets(runtime.environment, settings.secrets, self.bus, self.artifacts)
        self.recorder = Recorder(self.history, audit, self.secrets, self.observations)
        self.pool = Pool(runtime.registry, runtime.toolsets)
        self._backend = runtime.choose_backend(settings.backend)
        vision = Vision(
            self._chain(), lambda name: runtime.open_backend(name, self), lambda: self.settings.backend_merge
        )
        self.views = Views(vision, self.running, self.bus)
        self._desktop: Desktop | None = None
        self._opening = anyio.Lock()
        self._calls = 0
        self._remembered: frozenset[str] = frozenset()
        # Whether the agent has put itself in plan mode.
        self.planning = False
        self._reasons: dict[str, str | None] = {}
        # Tools of no toolset that a host may call, as far as they have been called since something changed.
        self.ready: dict[str, Tool] = {}
        self._seats: dict[str, tuple[Seat, ...]] = {}
        self._confines: Confines | None = None
        # None: nobody looks at calls.
        self.watch: Watch | None = None
        # None: nobody traces calls.
        self.tracing = self._trace()
        self._observe()
        self._alarm: asyncio.TimerHandle | None = None
        self._set_alarm()
        self.judge_anew()

    # Calls

    async def call(self, name: str, args: Mapping[str, Any] | None = None, *, call_id: str | None = None) -> ToolResult:
        """Call a tool as a host does: judged, recorded, never raising. `call_id` is the host's own name for the call."""
        self._calls += 1
        return await pipeline.run_call(self, ToolCall(name, {} if args is None else args, call_id or f"c{self._calls}"))

    async def nested(
        self, name: str, args: Mapping[str, Any], *, call_id: str, parent: Invocation, ask: str | None = None
    ) -> ToolResult:
        """Call a tool as a part of another call (`ToolContext.call`)."""
        return await pipeline.run_call(self, ToolCall(name, args, call_id, ask=ask), parent)

    async def batch(
        self,
        calls: Sequence[ToolCall],
        *,
        told: Callable[[int, ToolResult], None] = lambda index, result: None,
        stop_on: Collection[Status] = (),
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

    def cancel(self, call_id: str | Collection[str] | None = None, *, why: Stopped | None = None) -> int:
        """Stop one call, several, or all, whether they wait, are asked about or run; how many there were. Their results say `cancelled`."""
        return self.scheduler.cancel(call_id, why or Stopped("the call was cancelled"))

    def _set_alarm(self) -> None:
        """When the session's time is over, what is under way is stopped."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if (left := self.limits.seconds_left) is not None:
            why = TimeIsUp(self.limits.time_is_up, hint=OVER)
            self._alarm = asyncio.get_running_loop().call_later(left, lambda: self.cancel(why=why))

    def events(self) -> EventStream:
        """What happens from now on, for `async for event in session.events()`; it ends with the session and holds up no call."""
        from handrail.watching.event_stream import EventStream

        return EventStream(self.bus)

    def begin_turn(self, values: Mapping[str, Any] | None = None) -> None:
        """A new turn: from what a person says to the agent's answer to it. `values` are what its stash begins with.

        A host that knows no turns leaves the session in its first one.
        """
        self.turn_stash = Bag(values)

    # Tools

    async def tools(self) -> list[Tool]:
        """What the agent sees in the model step that begins now: what it saw before in its order, then what is new."""
        return [listed.tool for listed in await self.begin_step() if listed.available]

    async def begin_step(self) -> list[Listed]:
        """`all_tools`, as a host asks before each step of its model. The ephemeral tools of the step before are gone."""
        if self.pool.end_step():
            self._look_again()
        await self._read_toolsets()
        self.pool.begin_step([owned.tool for owned in self.pool if self._reason(owned) is None])
        return self._listed()

    async def all_tools(self) -> list[Listed]:
        """Every tool that is known, with the reason where it cannot be called."""
        await self._read_toolsets()
        return self._listed()

    def _listed(self) -> list[Listed]:
        return [Listed(owned.tool, owned.plugin, self._source(owned.tool), self._reason(owned)) for owned in self.pool]

    def _source(self, tool: Tool) -> str | None:
        """What the tool comes from beside its plugin: a server, a skill, or who loaded it."""
        return tool.source or next(iter(self.pool.loaders(tool)), None)

    async def callable_tool(self, name: str, *, nested: bool) -> Tool:
        """The tool of that name, if it may be called; the same predicate as for listing.

        A nested call needs its tool enabled, permitted and able to run here, not visible.
        """
        owned = self.pool.get(name)
        if owned is None or owned is not self.pool.fixed(name):
            await self._read_toolsets()
            owned = self.pool.get(name)
        if owned is None:
            listed = [entry.tool.name for entry in self.pool if self._reason(entry) is None]
            raise UnknownTool(f"there is no tool {name!r}{nearest(name, listed)}", details={"available": listed})
        reason = self._barred(owned) if nested else self._reason(owned)
        if reason is not None:
            raise ToolUnavailable(f"{name} cannot be called now: {reason}")
        if not nested and owned is self.pool.fixed(name):
            self.ready[name] = owned.tool
        return owned.tool

    def offer(self, toolset: Toolset, *, owner: str = "host") -> None:
        """Take in tools of whoever holds the session, beside those of plugins. A name that is taken stays whose it is."""
        self.pool.add(toolset, owner)
        self._tools_changed(f"{owner} offers more tools")

    async def load_tools(self, names: Iterable[str], *, source: str) -> None:
        """Declare loadable tools to the agent from its next step on, for as long as `source` ("skill:pdf") or another one holds them.

        Raises `NotFound` for a name that no tool has, and loads nothing then. Tools that need no loading are left as they are.
        """
        await self._read_toolsets()
        if self.pool.load(names, source):
            self._tools_changed(f"{source} was loaded")

    async def unload_tools(self, source: str) -> None:
        """Take back what `source` loaded; what another source has loaded too stays. Nothing happens when it loaded nothing."""
        if self.pool.unload(source):
            self._tools_changed(f"{source} was unloaded")

    def _tools_changed(self, why: str) -> None:
        self._look_again()
        self.bus.publish(ToolsChanged("", why))

    def known(self, name: str) -> Tool | None:
        """The tool of that name as far as it is known now, whether or not it may be called."""
        owned = self.pool.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance] # hosts pass what a model wrote
        return owned.tool if owned is not None else None

    def plugin_config(self, tool: str) -> BaseModel:
        """The settings of the plugin that owns a tool."""
        owned = self.pool.get(tool)
        return self.runtime.plugin_config(owned.plugin if owned else "")

    def _reason(self, owned: Owned) -> str | None:
        """Why a tool cannot be called by a host, remembered until something changes."""
        name = owned.tool.name
        if name not in self._reasons:
            self._reasons[name] = self._barred(owned) or self._unseen(owned.tool)
        return self._reasons[name]

    def _look_again(self) -> None:
        """What may be called is to be found out anew."""
        self._reasons.clear()
        self.ready.clear()

    def _barred(self, owned: Owned) -> str | None:
        """Why a tool cannot be called at all: disabled, denied, or not able to run here."""
        tool = owned.tool
        if self.settings.tools.disables(tool):
            return "it is disabled by tools.disabled"
        if denied := self.policy.hides(tool, self._judging):
            return denied
        if tool.by_hand and not self.by_hand:
            return "it is a person's, and no agent's"
        if tool.loosens and not self.planning:
            return "the agent has not entered plan mode"
        if tool.platforms and self.runtime.platform not in tool.platforms:
            return f"it works on {', '.join(sorted(tool.platforms))}, and this is {self.runtime.platform}"
        if tool.exclusive == "desktop":
            return self.runtime.desktop_missing(self.settings.desktop)
        return None

    def _unseen(self, tool: Tool) -> str | None:
        """Why a tool is not declared to the agent: the chosen backend cannot do what it needs, nobody has loaded it, or the profile leaves it
        out. What was loaded was asked for, and is there in every profile.
        """
        if unseeing := self.unseeing(tool):
            return unseeing
        if withheld := self.pool.withheld(tool):
            return withheld
        if tool.loadable:
            return None
        profile = self.settings.tools.profile
        if profile != "all" and profile not in tool.profiles:
            return f"it is not in the profile {profile!r} (tools.profile)"
        return None

    def unseeing(self, tool: Tool) -> str | None:
        """Why the chosen backend cannot do what the tool needs. Only whoever holds the session chooses another one, and no call."""
        if not tool.requires or tool.requires & self.capabilities:
            return None
        needed = " or ".join(sorted(tool.requires))
        return f"it needs a vision backend with {needed}; {self.backend or 'none'} is chosen"

    async def _read_toolsets(self) -> None:
        """Take over what toolsets offer now."""
        if await self.pool.refresh(self):
            self._look_again()
            self._seats.clear()

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
        self.judge_anew()
        self.bus.publish(ModeChanged("", self.mode.value))
        self._tools_changed(f"the mode is now {self.mode}")

    @property
    def judging(self) -> Judging:
        """The circumstances that calls are judged in now."""
        return self._judging

    async def judge(self, invocation: Invocation, *, seen: paths.Seen | None = None) -> Verdict:
        """The verdict on a bound call. Judgements that belong to one call look at no place twice when they pass the same dictionary as `seen`."""
        tool = invocation.tool
        seats = self._seats.get(tool.name)
        if seats is None:
            seats = self._seats[tool.name] = self.runtime.seats_for(tool)
        judging = await self._with_sandbox() if tool.confinable else self._judging
        if tool.inputs and (focus := await self._focus(invocation)) is not None:
            judging = replace(judging, focus=focus)
        if seen is not None:
            judging = self._together(judging, seen)
        heard = await hear(invocation, seats=seats, judging=judging)
        verdict = decided(invocation, heard, policy=self.policy, judging=judging)
        if verdict.grants:
            self._uses.update(verdict.grants)
        return verdict

    def _together(self, judging: Judging, seen: paths.Seen) -> Judging:
        """The circumstances with what was looked at, made anew where either is another one than for the judgement before."""
        if self._shared is None or self._shared[0] is not judging or self._shared[1].seen is not seen:
            self._shared = judging, replace(judging, seen=seen)
        return self._shared[1]

    async def _with_sandbox(self) -> Judging:
        """The circumstances of a call that may run in the sandbox, where there is one."""
        if self._confinable is None:
            self._confinable = replace(self._judging, sandbox=await self.runtime.offer(self._judging, self.settings))
        return self._confinable

    async def _focus(self, invocation: Invocation) -> Focus | None:
        """The terminal that the call's keys would go to. Who types looks again, so that what cannot be told here is not typed there."""
        try:
            focusing: Focusing = await self.service("focus")
            return await focusing.focus(invocation)
        except HandrailError as exc:
            log.debug("nobody can tell where the keys of %s would go: %s", invocation.tool.name, exc)
            return None

    def grant(self, option: GrantOption, *, always: bool = False) -> None:
        """Let calls that fit the option pass from now on: in this session, or always."""
        grant = Grant.given(option, self._judging, always=always, days=self.settings.policy.grant_days)
        if always:
            self.runtime.book.add(grant)
            self.runtime.read_grants()
        else:
            self.policy.grants = (*self.policy.grants, grant)

    def approved(self, verdict: Verdict, grant: GrantOption | None, *, always: bool = False) -> None:
        """Remember what a person's yes is good for beyond this one call: in this session, or `always`."""
        if verdict.remember is not None:
            self._remembered |= {verdict.remember}
        if grant is not None:
            self.grant(grant, always=always)
        self.judge_anew()

    @property
    def confirmer(self) -> Confirmer | None:
        """Who says yes; one whose `at_terminal` is True is a person at the terminal that Handrail was started at."""
        return self._confirmer

    @confirmer.setter
    def confirmer(self, confirmer: Confirmer | None) -> None:
        self._confirmer = confirmer
        self.judge_anew()
        self._look_again()

    def keep(self, *, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        """Change the working directory or the variables for the calls that follow."""
        if cwd is not None:
            self.cwd = cwd
        if environment is not None:
            self.environment = dict(environment)
        self.judge_anew()

    def _artifact_came(self) -> None:
        """Tools that ask something of it are there now, or know of it."""
        if self.bus.listening:
            self.bus.publish(ToolsChanged("", "the session holds another artifact"))

    def check_stopped(self) -> None:
        """Raise `Failsafe` while a person holds the stop switch of this desktop."""
        stops, opened = self.runtime.stops, self._desktop
        stopped = stops.engaged(self.settings.desktop) or (
            opened is not None and opened.temporary and stops.engaged(opened.switch)
        )
        if stopped and not self.by_hand:
            raise Failsafe("a person has stopped this desktop", hint="they resume it with `handrail resume`")

    def _trace(self) -> Tracing | None:
        enabled = self.settings.telemetry.enabled
        if enabled is False or (enabled is None and "opentelemetry.trace" not in sys.modules):
            return None
        from handrail.watching.telemetry import tracing

        return tracing(self)

    def _observe(self) -> None:
        """Take over who looks at calls."""
        observers: list[Observer] = list(self.runtime.observers.values())
        if self.settings.observers:
            from handrail.watching.observer_commands import CommandObserver

            observers += [CommandObserver(settings, self) for settings in self.settings.observers]
        self.watch = Watch(self, observers) if observers else None

    def judge_anew(self) -> None:
        """The calls that follow are judged in other circumstances."""
        self._judging = self._circumstances()
        self._confinable: Judging | None = None
        self._shared: tuple[Judging, Judging] | None = None

    def _circumstances(self) -> Judging:
        return replace(
            self.runtime.judging,
            cwd=self.cwd,
            environment={**self.runtime.environment, **self.environment},
            workspace=self.workspace,
            mode=self.mode,
            private_desktop=self.settings.desktop != "current",
            remembered=self._remembered,
            allow_private=self.settings.network.allow_private,
            interactive=self._confirmer is not None and self.settings.mode is not Mode.HEADLESS,
            at_terminal=getattr(self._confirmer, "at_terminal", False) is True,
            temporary=self._confines.temporary if self._confines else None,
            untrusted=self.intake.seen,
        )

    # Sandbox

    @property
    def confining(self) -> bool:
        """Whether a command of it runs in a sandbox, or has left there what is not looked through yet."""
        return self._confines is not None and self._confines.running

    async def confinement(self, tool: Tool) -> Confinement:
        """What a call of the tool is given to run in the sandbox; `NoSandbox` says why there is none and the cure."""
        from handrail.sandboxing.confining import Confines, unfit

        if not tool.confinable:
            raise NoSandbox(f"{tool.name} cannot run in a sandbox, and nothing was run")
        chosen = await self.runtime.sandbox()
        if chosen.sandbox is None:
            raise NoSandbox(f"there is no sandbox here, and nothing was run: {chosen.why_none}", hint=CURE)
        home = self._judging.home
        if (why := unfit(self.workspace, home=home)) is not None:
            raise NoSandbox(f"nothing was run: {why}")
        if self._confines is None:
            self._confines = Confines(
                workspace=self.workspace,
                home=home,
                environment=self.runtime.environment,
                protected=self.runtime.judging.protected,
            )
        fresh = self._confines.temporary is None
        given = self._confines.confinement(chosen.sandbox, self.settings.sandbox)
        if fresh:
            self.judge_anew()
        return given

    # Desktop, services, backend

    async def desktop(self) -> Desktop:
        """The desktop this session works on, started or found on first use."""
        if self._desktop is not None:
            return self._desktop
        async with self._opening:
            if self._desktop is None:
                self._desktop = await self.runtime.desktop(self.settings.desktop, session=self.id)
            return self._desktop

    @property
    def owners(self) -> tuple[str, ...]:
        """By what its services, and those of its desktop, are kept."""
        return (self.id, self._desktop.key) if self._desktop is not None else (self.id,)

    async def service(self, capability: str) -> Any:
        """A service of this process, desktop or session; `ToolUnavailable` when no plugin supplies it."""
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
        """The chosen vision backend's name; None when there is none."""
        return self._backend

    @property
    def capabilities(self) -> frozenset[str]:
        """What the chosen backend declares; not what a fallback could."""
        chosen = self.runtime.backends.get(self._backend or "")
        return chosen.capabilities if chosen else frozenset()

    @property
    def vision(self) -> Vision:
        """How a call that begins now sees: the chosen backend, and the fallbacks after it."""
        return self.views.now

    async def use_backend(self, name: str) -> None:
        """Choose another vision backend; the list of tools follows at once, and calls under way end on the one before.

        `BackendUnavailable` names those there are.
        """
        if self._choose(self.runtime.choose_backend(name)):
            self._tools_changed(f"the vision backend is now {name}")

    def _choose(self, backend: str | None) -> bool:
        """See by this backend from now on; whether that is another one."""
        changed, self._backend = backend != self._backend, backend
        self.views.switch(self._chain())
        if changed:
            self._look_again()
            # A private desktop is not started for it: nobody has asked for anything to be seen.
            if backend is not None and (self._desktop is not None or self.settings.desktop != "private"):
                self.vision.warm_up(backend)
            self.bus.publish(BackendChanged("", backend or ""))
        return changed

    def _chain(self) -> tuple[str, ...]:
        """The backends that are asked, in order: the chosen one, then the fallbacks."""
        return tuple(name for name in (self._backend, *self.settings.backend_fallback) if name)

    def apply(self, settings: Settings) -> None:
        """Take over settings that were changed while the session lives: backend, tools and rules. The desktop stays."""
        before = self.settings
        self.settings = settings.model_copy(update={"desktop": before.desktop})
        for name in {*before.backends, *settings.backends}:
            if before.backends.get(name) != settings.backends.get(name):
                self.vision.forget(name)
        self.policy.rules = self.runtime.rules
        self.artifacts.limit = settings.output.max_bytes
        self.limits.apply(self.settings.limits)
        self._set_alarm()
        # What `use_backend` chose stays until somebody writes another one into the file.
        other = settings.backend != before.backend
        self._choose(self.runtime.choose_backend(settings.backend) if other else self._backend)
        self._look_again()
        self._seats.clear()
        self.tracing = self._trace()
        self._observe()
        self.judge_anew()
        self.bus.publish(ToolsChanged("", "the configuration was changed"))

    async def close(self) -> None:
        """Stop what runs, close what was opened, end the audit. Whatever is called later is refused. Closing it again waits for that end."""
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
        if self._alarm is not None:
            self._alarm.cancel()
        with anyio.move_on_after(CLOSING_S):
            while self.running:
                await anyio.sleep(0.005)
        await self.vision.close()
        await self.runtime.close_services(session=self)
        if self._confines is not None:
            await anyio.to_thread.run_sync(self._confines.close)
        self.artifacts.close()
        lasting = {grant.id for grant in self.policy.lasting}
        if used := {id: uses for id, uses in self._uses.items() if id in lasting}:
            self.runtime.book.used(used)
        self.recorder.close()
        if self.bus.listening:
            self.bus.publish(SessionEnded("", self.id))
