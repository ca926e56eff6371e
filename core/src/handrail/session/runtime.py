"""State shared by all sessions of a process: loaded plugins, what they registered, and open services."""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from handrail.api.approval import Confirmer, yes
from handrail.api.desktop import Desktop, Desktops
from handrail.api.observer import Observer
from handrail.api.service import CallEndingService, ClosableService, Service, ServiceScope, close_safely
from handrail.api.tool import Tool, Toolset
from handrail.api.verdict import Decision, EvaluationContext, Evaluator, Mode, RegisteredEvaluator, SandboxOffer
from handrail.api.vision import NoSettings, VisionBackend
from handrail.config.loader import LoadedConfig
from handrail.config.settings import SandboxSettings, Settings
from handrail.config.validation import validate_table
from handrail.desktop.leases import ResourceLeases
from handrail.desktop.recent_agent_input import AgentInputRecord
from handrail.desktop.stop_enforcer import StopEnforcer, StoppableSession
from handrail.desktop.stop_switches import StopSwitches
from handrail.errors import (
    BackendUnavailable,
    ConfigError,
    HandrailError,
    ToolUnavailable,
)
from handrail.fs import path_resolution
from handrail.fs.app_dirs import AppDirs, find_home_folder
from handrail.json_types import is_sequence
from handrail.plugins.loader import PluginSet, check_required_plugins, load_plugins_from_environment
from handrail.plugins.missing_plugin import describe_missing_plugin
from handrail.plugins.registration import CORE_PLUGIN, register_plugins
from handrail.policy.grant_store import GrantStore
from handrail.policy.grants import Grant
from handrail.policy.rules import Rule, RuleOrigin
from handrail.sandbox.interface import Sandbox
from handrail.sandbox.selection import SandboxChoice, choose_sandbox
from handrail.sandbox.toolchains import resolve_named_folders
from handrail.session.dry_run import DryRunPolicy
from handrail.session.installed_plugins import build_rules, check_tables
from handrail.session.live_reload import ConfigWatcher
from handrail.session.open_context import OpenContext
from handrail.session.session import Session
from handrail.text import format_suggestion
from handrail.tools.registry import ToolRegistry
from handrail.undo.engine import UndoEngine
from handrail.workers.external_traces import TraceProvider
from handrail.workers.host_programs import HostPrograms, iter_named_files, list_temporary_folders

__all__ = ["Runtime"]

log = logging.getLogger(__name__)

WATCH_INTERVAL_S = 0.25
# What says on Linux that there is a screen.
DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY")


class Runtime:
    """Made by `open_runtime`. Sessions are made by `session`."""

    def __init__(
        self,
        config: LoadedConfig,
        *,
        environment: Mapping[str, str],
        cwd: Path,
        places: AppDirs,
        plugins: PluginSet,
        reload: Callable[[], LoadedConfig] | None = None,
    ) -> None:
        self.config = config
        self.environment = dict(environment)
        self.cwd = cwd
        self.places = places
        self.platform = sys.platform
        self.plugins = plugins
        self.leases = ResourceLeases(places.state / "leases")
        self.stops = StopSwitches(places.state / "stops")
        self.presses = AgentInputRecord(places.state / "presses")
        self.book = GrantStore.of(places)
        self.undo = UndoEngine(places.undo, config.settings.undo, places.all)
        self.sessions: list[Session] = []
        self._tidying: asyncio.Task[None] | None = None
        with config.locating():
            self._registered = register_plugins(plugins, config.settings)
        check_required_plugins(plugins, config.settings.plugins.require)
        self._open: dict[tuple[str, str], ClosableService] = {}
        self._sandbox: SandboxChoice | None = None
        # The last answer of `opened_folders`, under what it depends on.
        self._opened_folders: dict[object, tuple[tuple[Path, ...], tuple[Path, ...]]] = {}
        self._choosing = anyio.Lock()
        # The last answer of `programs`, under what it depends on.
        self._programs: tuple[object, HostPrograms] | None = None
        # Made now and not when `watch` gets its turn: a change in between would go unnoticed.
        self._following = ConfigWatcher(self, reload)
        self._obeying = StopEnforcer(self._services_of)
        self.grants: tuple[Grant, ...] = ()
        self.read_grants()
        self.judging = _build_evaluation_context(self)
        with config.locating():
            check_tables(self, config.settings)
        self.rules = build_rules(self, config.settings)
        self.supposing = DryRunPolicy(self)

    @property
    def settings(self) -> Settings:
        return self.config.settings

    @property
    def registry(self) -> ToolRegistry:
        return self._registered.registry

    @property
    def toolsets(self) -> list[tuple[Toolset, str]]:
        return self._registered.toolsets

    @property
    def backends(self) -> Mapping[str, type[VisionBackend]]:
        return self._registered.backends

    @property
    def sandboxes(self) -> Mapping[str, type[Sandbox]]:
        return self._registered.sandboxes

    @property
    def services(self) -> list[tuple[Service, str]]:
        """Every registered service with its plugin."""
        return list(self._registered.services.values())

    @property
    def observers(self) -> Mapping[str, Observer]:
        """Observers of calls registered by plugins, by name."""
        return self._registered.observers

    @property
    def skills(self) -> Sequence[tuple[Path, str]]:
        """The folders of skills that plugins brought, each with its plugin."""
        return self._registered.skills

    @property
    def traces(self) -> Sequence[tuple[TraceProvider, str]]:
        """Providers that report what plugins wrote into files of other programs, each with its plugin."""
        return self._registered.traces

    def plugin_config(self, plugin: str) -> BaseModel:
        """Return a plugin's validated settings."""
        return self._registered.configs.get(plugin) or NoSettings()

    # Judging

    def seats_for(self, tool: Tool) -> tuple[RegisteredEvaluator, ...]:
        """Return the evaluators that apply to a tool, each with a flag for whether it may suggest allowing calls."""
        return tuple(
            RegisteredEvaluator(evaluator, self._trusts(plugin))
            for evaluator, plugin in self._registered.evaluators
            if _is_applicable(evaluator, tool)
        )

    def read_grants(self) -> None:
        """Take over the grants that hold for always, in every session."""
        self.grants = self.book.read()
        for session in self.sessions:
            session.court.policy.lasting = self.grants
            session.court.judge_anew()

    def plugin_rules(self, settings: Settings) -> Iterator[Rule]:
        """Yield the plugins' rules: those of an untrusted plugin may only tighten, and none may lift a floor."""
        for rule, plugin in self._registered.rules:
            trusted = plugin in settings.security.trust
            if trusted or rule.decision is not Decision.ALLOW:
                yield replace(
                    rule, tier="plugin", lifts=(), tightening=not trusted, origin=RuleOrigin(f"plugin {plugin}")
                )

    def _trusts(self, plugin: str) -> bool:
        return plugin == CORE_PLUGIN or plugin in self.settings.security.trust

    # Programs

    @property
    def programs(self) -> HostPrograms:
        """The programs that may be started for Handrail's own purposes: none from a workspace, or from another folder that agents may write."""
        roots = {root for session in self.sessions for root in session.workspace} or {self.cwd}
        key = frozenset(roots), self.settings.sandbox.writable
        if self._programs is None or self._programs[0] != key:
            home = find_home_folder(self.environment)
            written = resolve_named_folders(self.settings.sandbox.writable, workspace=(self.cwd,), home=home)
            self._programs = key, HostPrograms(self.environment, (*sorted(roots), *written, *list_temporary_folders()))
        return self._programs[1]

    # Sandboxes

    async def sandbox(self) -> SandboxChoice:
        """Return the sandbox of this process, chosen on first use."""
        if self._sandbox is None:
            async with self._choosing:
                if self._sandbox is None:
                    self._sandbox = await choose_sandbox(self.sandboxes, self.settings, lambda: self.programs)
        return self._sandbox

    async def offer(self, judging: EvaluationContext, settings: Settings | None = None) -> SandboxOffer | None:
        """Return what the sandbox offers a call in this context, or None if no sandbox can be used for it."""
        if judging.platform != self.platform:
            return None
        sandbox = (await self.sandbox()).sandbox
        if sandbox is None:
            return None
        from handrail.sandbox.confinement import find_unfit_workspace

        if find_unfit_workspace(judging.workspace, home=judging.home) is not None:
            return None
        wanted = (settings or self.settings).sandbox
        writable = tuple(map(str, self.opened_folders(judging, wanted)[1]))
        network = wanted.network and sandbox.networks
        return SandboxOffer(
            sandbox.name, network, writable, sandbox.private_tmp, sandbox.filters, wanted.hosts, sandbox.own_processes
        )

    def opened_folders(
        self, judging: EvaluationContext, wanted: SandboxSettings
    ) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return the folders beside the workspace that sandboxed commands can read, and those that they can write, as real paths."""
        here = judging.home == self.judging.home and judging.platform == self.platform
        path = judging.environment.get("PATH")
        key = judging.workspace, judging.home, here, path, wanted.readable, wanted.writable
        if key not in self._opened_folders:
            from handrail.sandbox.toolchains import find_toolchains

            found = find_toolchains(judging.environment, home=judging.home, roots=judging.workspace) if here else ()
            named = [
                resolve_named_folders(texts, workspace=judging.workspace, home=judging.home)
                for texts in (wanted.readable, wanted.writable)
            ]
            self._opened_folders = {key: ((*found, *named[0]), named[1])}
        return self._opened_folders[key]

    # Backends

    def choose_backend(self, name: str | None) -> str | None:
        """Return the named backend, or for None the best one usable here.

        Prefers the accessibility tree, then OCR, then screen parsing. Returns None if no backend is usable. Raises
        `BackendUnavailable` for a name that no plugin supplies.
        """
        if name is not None:
            if name not in self.backends:
                raise self._no_backend(name)
            return name
        here = [backend for backend in self.backends.values() if self.lacks(backend) is None]
        for capability in ("accessibility_tree", "ocr", "parse_screen"):
            for backend in here:
                if capability in backend.capabilities:
                    return backend.name
        return here[0].name if here else None

    def _no_backend(self, name: str) -> BackendUnavailable:
        said, hint = describe_missing_plugin("backends", name) or (
            format_suggestion(name, self.backends),
            "`handrail plugins` shows those here",
        )
        return BackendUnavailable(f"there is no vision backend {name!r}{said}", hint=hint)

    def lacks(self, backend: type[VisionBackend]) -> str | None:
        """Return why a backend cannot be used here with its settings, or None if no reason is known.

        A check that crashes counts as a reason.
        """
        try:
            return backend.missing() or backend.unfit(self._backend_config(backend))
        # A backend is plugin code; its failure must not keep the others from being chosen.
        except Exception as exc:
            log.exception("vision backend %s could not say what it lacks", backend.name)
            return f"its check failed ({type(exc).__name__})"

    def _backend_config(self, backend: type[VisionBackend]) -> BaseModel:
        return validate_table(
            backend.Config, self.settings.backends.get(backend.name, {}), table=f"backends.{backend.name}"
        )

    async def open_backend(self, name: str, session: Session) -> VisionBackend:
        """Open a backend for one session. Raises `BackendUnavailable` with what it lacks."""
        chosen = self.backends.get(name)
        if chosen is None:
            raise self._no_backend(name)
        if (lacks := self.lacks(chosen)) is not None:
            raise BackendUnavailable(lacks)
        config = self._backend_config(chosen)
        backend = chosen(config)
        try:
            context = OpenContext(self, config, session, await session.desktop())
            with anyio.move_on_after(backend.deadline) as opening:
                await backend.open(context)
            if opening.cancelled_caught:
                raise BackendUnavailable(f"it did not open within {backend.deadline:g} s")
        except BaseException as exc:
            with anyio.move_on_after(backend.deadline, shield=True):
                await close_safely(backend, f"vision backend {name}")
            if isinstance(exc, HandrailError) or not isinstance(exc, Exception):
                raise
            # A backend is plugin code; whatever goes wrong in it, the next of the chain may work.
            log.warning("vision backend %s did not open", name, exc_info=True)
            raise BackendUnavailable(f"it did not open ({type(exc).__name__})") from exc
        return backend

    # Desktops and services

    def desktop_missing(self, choice: str) -> str | None:
        """Return why a desktop cannot be used at all, or None if no reason is known."""
        found = self._registered.services.get("desktops")
        if choice != "current":
            return found[0].missing() if found else "no plugin here supplies desktops; handrail install handrail-gui"
        if self.platform == "linux" and not any(self.environment.get(name) for name in DISPLAY_VARIABLES):
            return 'there is no screen here (DISPLAY is not set); use --desktop private, or desktop = "private" in the configuration'
        return None

    async def desktop(self, choice: str, *, session: str) -> Desktop:
        """Return the user's own desktop, a new private one, or a running one by name."""
        if choice == "current" and "desktops" not in self._registered.services:
            return Desktop("current", self.environment.get("DISPLAY"))
        desktops: Desktops = await self.service("desktops", session=None, desktop=None)
        if choice == "current":
            return await desktops.current()
        if choice == "private":
            desktop = await desktops.start(f"private-{session}")
            # Somebody may have stopped another one that had its number before.
            self.stops.release(desktop.switch)
            return desktop
        return await desktops.attach(choice)

    def scope_of(self, capability: str) -> ServiceScope:
        """Return the scope of the service that supplies a capability. Raises `ToolUnavailable` if no service does."""
        return self._service(capability)[0].scope

    async def service(self, capability: str, *, session: Session | None, desktop: Desktop | None) -> Any:
        """Return the service object of a capability, opened on first use and shared within its scope."""
        service, plugin = self._service(capability)
        if service.scope == "desktop" and desktop is None and session is not None:
            desktop = await session.desktop()
        owner = {"process": "", "desktop": desktop.key if desktop else "", "session": session.id if session else ""}
        key = (capability, owner[service.scope])
        if key in self._open:
            return self._open[key]
        async with self.leases.hold(f"service:{capability}:{key[1]}"):
            if key not in self._open:
                given = desktop if service.scope != "process" else None
                self._open[key] = await service.open(OpenContext(self, self.plugin_config(plugin), session, given))
            return self._open[key]

    async def close_services(self, *, session: Session | None = None) -> Sequence[str]:
        """Close the services of one session, or all services and the sandbox; return what ended, in words.

        Closes the newest service first. A service that fails to close does not keep the others open.
        """
        ended: list[str] = []
        keys = [key for key in reversed(self._open) if session is None or key[1] == session.id]
        for key in keys:
            service = self._open.pop(key)
            await close_safely(service, f"service {key[0]}")
            if isinstance(service, CallEndingService):
                ended += service.ended
        if session is None and self._sandbox is not None and self._sandbox.sandbox is not None:
            await close_safely(self._sandbox.sandbox, f"sandbox {self._sandbox.sandbox.name}")
            self._sandbox = None
        return ended

    def _service(self, capability: str) -> tuple[Service, str]:
        found = self._registered.services.get(capability)
        if found is None:
            raise ToolUnavailable(
                f"nothing here supplies {capability!r}", hint="install the plugin that does; see `handrail plugins`"
            )
        return found

    # Sessions

    @asynccontextmanager
    async def session(
        self,
        *,
        confirm: Confirmer | None = None,
        desktop: str | Desktop | None = None,
        cwd: Path | None = None,
        workspace: Iterable[Path] | None = None,
        by_hand: bool = False,
    ) -> AsyncGenerator[Session, None]:
        """Open a session; on exit, close it and everything it started.

        Raises `ConfigError` if a workspace root is not a folder.

        `desktop`: the name of a choice, or an existing desktop of any process. `by_hand`: the user makes the calls
        themselves, which approves them; the mode configured for agents does not apply.
        """
        name = desktop.name if isinstance(desktop, Desktop) else desktop
        settings = self.settings if name is None else self.settings.model_copy(update={"desktop": name})
        if by_hand:
            settings, confirm = settings.model_copy(update={"mode": Mode.DEFAULT}), yes
        folder = (cwd or self.cwd).absolute()
        roots = workspace if workspace is not None else _resolve_workspace_roots(folder, settings.workspace)
        session = Session(
            self,
            settings=settings,
            confirmer=confirm,
            cwd=folder,
            workspace=[Path(root).resolve() for root in roots],
            by_hand=by_hand,
            desktop=desktop if isinstance(desktop, Desktop) else None,
        )
        self.sessions.append(session)
        self._tidy(settings)
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                self.sessions.remove(session)
                await session.close()

    async def settle(self) -> None:
        """Wait for background work that is not part of a session."""
        if self._tidying is not None:
            await asyncio.wait([self._tidying])

    def _tidy(self, settings: Settings) -> None:
        """Start to delete expired leftovers of past sessions, in the background."""
        if self._tidying is None or self._tidying.done():
            from handrail.artifacts.retention import prune_sessions

            self._tidying = asyncio.create_task(anyio.to_thread.run_sync(prune_sessions, self.places, settings))
            if self.undo.enabled and self.places.undo.is_dir():
                self.undo.submit(lambda keeper: keeper.prune())

    async def watch(self) -> None:
        """Follow the stop switch and the configuration files as long as it runs."""
        while True:
            await anyio.sleep(WATCH_INTERVAL_S)
            for session in tuple(self.sessions):
                await self._obeying.look(session)
                session.changes.look()
            self._following.look()

    def _services_of(self, session: StoppableSession) -> Iterator[tuple[str, ClosableService]]:
        """Return the open services of a session and its desktop, by name."""
        return ((name, service) for (name, owner), service in self._open.items() if owner in session.owners)


@asynccontextmanager
async def open_runtime(
    config: LoadedConfig,
    *,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    places: AppDirs | None = None,
    plugins: PluginSet | None = None,
    reload: Callable[[], LoadedConfig] | None = None,
) -> AsyncGenerator[Runtime, None]:
    """Open a runtime with its plugins loaded; on exit, close everything that was opened.

    `reload` reads the configuration again when one of its files has changed.
    """
    environment = os.environ if environment is None else environment
    runtime = Runtime(
        config,
        environment=environment,
        cwd=(cwd or Path.cwd()).absolute(),
        places=places or AppDirs.of(environment),
        plugins=plugins or load_plugins_from_environment(environment, disabled=config.settings.plugins.disabled),
        reload=reload,
    )
    runtime.plugins.warn()
    # A task of our own and no task group: what is raised in the body must come out as it is, not in an ExceptionGroup.
    watch = asyncio.create_task(runtime.watch())
    try:
        yield runtime
    finally:
        watch.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([watch])
            await runtime.close_services()
            await runtime.undo.close()
            await runtime.settle()


def _is_applicable(evaluator: Evaluator, tool: Tool) -> bool:
    """Return True if the evaluator wants to judge calls of the tool, or crashes when asked."""
    try:
        return evaluator.applies(tool)
    # An evaluator is plugin code, and one that crashes must not be left out.
    except Exception:
        log.exception("evaluator %s crashed on %s", evaluator.name, tool.name)
        return True


def _build_evaluation_context(runtime: Runtime) -> EvaluationContext:
    return EvaluationContext(
        cwd=runtime.cwd,
        home=find_home_folder(runtime.environment),
        user=runtime.environment.get("USER") or getpass.getuser(),
        environment=runtime.environment,
        workspace=(runtime.cwd,),
        platform=runtime.platform,
        mode=runtime.settings.mode,
        keys=(runtime.places.state,),
        protected=(*runtime.places.all, *runtime.config.files, *_iter_command_files(runtime)),
        undoable=runtime.undo.undoable,
        allow_private=runtime.settings.network.allow_private,
    )


def _iter_command_files(runtime: Runtime) -> Iterator[Path]:
    """Yield the files named in observer commands, and the files in writable folders named in server commands.

    The program of an observer command is included only if it is in a writable folder, too.
    """
    settings, folder = runtime.settings, runtime.cwd
    home = find_home_folder(runtime.environment)
    roots = resolve_named_folders(
        (".", *settings.workspace, *settings.sandbox.writable), workspace=(folder,), home=home
    )

    def is_written(file: Path) -> bool:
        # A program of the system, also behind a link in the workspace, stays what others run.
        return path_resolution.is_inside_roots(Path(os.path.realpath(file)), roots, platform=runtime.platform)

    for observer in settings.observers:
        program, *arguments = iter_named_files(observer.command, observer.cwd, folder)
        yield from (file for file in (program, *arguments) if file and is_written(file))
        yield from (file for file in arguments if file)
    for command, named in _iter_server_commands(settings):
        yield from (file for file in iter_named_files(command, named, folder) if file and is_written(file))


def _iter_server_commands(settings: Settings) -> Iterator[tuple[Sequence[str], str | None]]:
    """Yield the commands of servers and the working directory of each, or None."""
    for server in settings.mcp.servers.values():
        if server.command:
            yield server.command, server.cwd
    for table in settings.backends.values():
        command, named = table.get("command"), table.get("cwd")
        if is_sequence(command) and command and all(isinstance(word, str) for word in command):
            yield tuple(map(str, command)), named if isinstance(named, str) else None


def _resolve_workspace_roots(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        root = folder / Path(name).expanduser()
        if not root.is_dir():
            raise ConfigError(
                f"workspace holds {name!r}, and there is no folder {str(root)!r}",
                hint="make it, or name another with --workspace or `workspace`",
            )
        yield root
