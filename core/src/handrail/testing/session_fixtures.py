"""Sessions for tests: the real runtime and the real path, with exactly the plugins that a test gives, in folders of their own."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from handrail.api.approval import Confirmer
from handrail.api.observer import Observer
from handrail.api.service import Service
from handrail.api.tool import Tool, Toolset
from handrail.api.verdict import Evaluator
from handrail.api.vision import VisionBackend
from handrail.config.loader import LoadedConfig
from handrail.config.settings import Settings
from handrail.fs.app_dirs import AppDirs
from handrail.json_types import is_list, is_mapping, is_sequence
from handrail.plugins.hookspecs import hookimpl
from handrail.plugins.loader import FoundPlugin, load_plugins
from handrail.sandbox.interface import Sandbox
from handrail.session.runtime import Runtime, open_runtime
from handrail.session.session import Session
from handrail.testing.fakes import FakeDesktops, fake_service

TEST_PLUGIN_NAME = "test"
FAKE_DESKTOPS_PLUGIN = "fake_desktops"


class OpenSession(Protocol):
    """Type of the fixture `handrail_session`: `open_test_session` with the test's directory filled in."""

    def __call__(
        self,
        *,
        tools: Iterable[Tool | Toolset] = (),
        evaluators: Iterable[Evaluator] = (),
        backends: Iterable[type[VisionBackend]] = (),
        sandboxes: Iterable[type[Sandbox]] = (),
        services: Iterable[Service] = (),
        observers: Iterable[Observer] = (),
        plugins: Mapping[str, object] | None = None,
        trusted: bool = False,
        confirm: Confirmer | None = None,
        settings: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[Session]: ...


@asynccontextmanager
async def open_test_session(
    *,
    tools: Iterable[Tool | Toolset] = (),
    evaluators: Iterable[Evaluator] = (),
    backends: Iterable[type[VisionBackend]] = (),
    sandboxes: Iterable[type[Sandbox]] = (),
    services: Iterable[Service] = (),
    observers: Iterable[Observer] = (),
    plugins: Mapping[str, object] | None = None,
    trusted: bool = False,
    confirm: Confirmer | None = None,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> AsyncGenerator[Session, None]:
    """Open a session of `open_test_runtime`, which documents the arguments.

    `confirm` is called when a call needs approval.
    """
    async with (
        open_test_runtime(
            tools=tools,
            evaluators=evaluators,
            backends=backends,
            sandboxes=sandboxes,
            services=services,
            observers=observers,
            plugins=plugins,
            trusted=trusted,
            settings=settings,
            environment=environment,
            folder=folder,
        ) as runtime,
        runtime.session(confirm=confirm) as session,
    ):
        yield session


@asynccontextmanager
async def open_test_runtime(
    *,
    tools: Iterable[Tool | Toolset] = (),
    evaluators: Iterable[Evaluator] = (),
    backends: Iterable[type[VisionBackend]] = (),
    sandboxes: Iterable[type[Sandbox]] = (),
    services: Iterable[Service] = (),
    observers: Iterable[Observer] = (),
    plugins: Mapping[str, object] | None = None,
    trusted: bool = False,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> AsyncGenerator[Runtime, None]:
    """Open a runtime with core's own tools and evaluator, what is passed here, and no installed plugins.

    `tools`, `evaluators`, `backends`, `sandboxes`, `services` and `observers` are registered by a plugin named "test";
    `trusted` lets its evaluators suggest to allow. `plugins` are complete plugins by name: their hooks module, or any
    object with hooks. Raises `PluginError` with the reason if a plugin does not load.

    `settings` override these defaults: every tool is declared (`tools.profile = "all"`), undo is off, which means that
    file changes need approval, and the desktop is private, and fake unless a service `desktops` is passed.
    `environment` is everything besides HOME and PATH. `folder` (default: a temporary one) receives `work`, which is the
    working directory and the workspace, `home`, and `state` with the audit.
    """
    given = _TestPlugin(
        tuple(tools), tuple(evaluators), tuple(backends), tuple(sandboxes), tuple(services), tuple(observers)
    )
    objects: dict[str, object] = {TEST_PLUGIN_NAME: given, **(plugins or {})}
    wanted = {
        "desktop": "private",
        "tools": {"profile": "all"},
        "plugins": {"require": list(objects)},
        "security": {"trust": [TEST_PLUGIN_NAME] if trusted else []},
        "undo": {"enabled": False},
    }
    with _use_folder(folder) as root:
        for name in ("home", "work"):
            (root / name).mkdir(exist_ok=True)
        around = {"HOME": str(root / "home"), "PATH": os.environ.get("PATH", os.defpath), **(environment or {})}
        around["HANDRAIL_HOME"] = str(root / "state")
        config = LoadedConfig(
            Settings.model_validate(_merge_settings(wanted, settings or {})), sources={}, ignored=(), files=()
        )
        # The fake desktops come last and are not required: where a plugin supplies its own, they are what is left out.
        objects[FAKE_DESKTOPS_PLUGIN] = _TestPlugin(services=(fake_service("desktops", FakeDesktops()),))
        found = [FoundPlugin(name, _ReadyEntryPoint(plugin), name, "0") for name, plugin in objects.items()]
        async with open_runtime(
            config,
            environment=around,
            cwd=root / "work",
            places=AppDirs.of(around),
            plugins=load_plugins(found),
        ) as runtime:
            yield runtime


@dataclass(frozen=True, slots=True)
class _ReadyEntryPoint:
    """An entry point whose plugin is there already."""

    plugin: object

    def load(self) -> object:
        return self.plugin


@dataclass(frozen=True, eq=False)
class _TestPlugin:
    """A plugin that registers what a test gives."""

    tools: tuple[Tool | Toolset, ...] = ()
    evaluators: tuple[Evaluator, ...] = ()
    backends: tuple[type[VisionBackend], ...] = ()
    sandboxes: tuple[type[Sandbox], ...] = ()
    services: tuple[Service, ...] = ()
    observers: tuple[Observer, ...] = ()

    @hookimpl
    def handrail_register_tools(self) -> tuple[Tool | Toolset, ...]:
        return self.tools

    @hookimpl
    def handrail_register_evaluators(self) -> tuple[Evaluator, ...]:
        return self.evaluators

    @hookimpl
    def handrail_register_vision_backends(self) -> tuple[type[VisionBackend], ...]:
        return self.backends

    @hookimpl
    def handrail_register_sandboxes(self) -> tuple[type[Sandbox], ...]:
        return self.sandboxes

    @hookimpl
    def handrail_register_services(self) -> tuple[Service, ...]:
        return self.services

    @hookimpl
    def handrail_register_observers(self) -> tuple[Observer, ...]:
        return self.observers


def _merge_settings(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both, table by table; `over` wins, and lists of the two are joined."""
    merged = dict(under)
    for key, value in over.items():
        before = merged.get(key)
        if is_mapping(before) and is_mapping(value):
            value = _merge_settings(before, value)
        elif is_list(before) and is_sequence(value):
            value = [*before, *value]
        merged[key] = value
    return merged


@contextmanager
def _use_folder(given: Path | None) -> Generator[Path, None, None]:
    if given is not None:
        yield given
        return
    with TemporaryDirectory(prefix="handrail-test-") as made:
        yield Path(made).resolve()
