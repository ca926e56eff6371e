"""Registration of plugins: everything that a plugin offers, or nothing if it breaks a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from handrail.api.observer import Observer
from handrail.api.service import Service
from handrail.api.tool import Tool, Toolset
from handrail.api.verdict import Evaluator
from handrail.api.vision import VisionBackend
from handrail.artifacts.toolset import ArtifactTools
from handrail.config.settings import NO_SANDBOXES, Settings
from handrail.config.validation import validate_table
from handrail.errors import ConfigError, PluginError
from handrail.plugins.loader import PluginRecord, PluginSet
from handrail.policy.effect_rules import EffectsEvaluator
from handrail.policy.rules import Rule
from handrail.policy.secret_rules import SecretsEvaluator
from handrail.sandbox.interface import Sandbox
from handrail.tools import builtin
from handrail.tools.registry import OwnedTool, ToolRegistry
from handrail.workers.external_traces import TraceProvider

__all__ = ["register_plugins"]

# Who owns what core itself registers.
CORE_PLUGIN = "core"


@dataclass(slots=True)
class PluginRegistrations:
    """Registrations of all plugins; each plugin contributes everything that it offers, or nothing."""

    registry: ToolRegistry = field(default_factory=ToolRegistry)
    toolsets: list[tuple[Toolset, str]] = field(default_factory=list[tuple[Toolset, str]])
    evaluators: list[tuple[Evaluator, str]] = field(default_factory=list[tuple[Evaluator, str]])
    backends: dict[str, type[VisionBackend]] = field(default_factory=dict[str, type[VisionBackend]])
    sandboxes: dict[str, type[Sandbox]] = field(default_factory=dict[str, type[Sandbox]])
    services: dict[str, tuple[Service, str]] = field(default_factory=dict[str, tuple[Service, str]])
    configs: dict[str, BaseModel] = field(default_factory=dict[str, BaseModel])
    observers: dict[str, Observer] = field(default_factory=dict[str, Observer])
    rules: list[tuple[Rule, str]] = field(default_factory=list[tuple[Rule, str]])
    skills: list[tuple[Path, str]] = field(default_factory=list[tuple[Path, str]])
    traces: list[tuple[TraceProvider, str]] = field(default_factory=list[tuple[TraceProvider, str]])


# What may be registered by each hook; anything else would fail at some later call, far from who gave it.
TYPE_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "tools": lambda given: (
        isinstance(given, Tool) or (not isinstance(given, type) and callable(getattr(given, "tools", None)))
    ),
    "evaluators": lambda given: isinstance(given, Evaluator),
    "vision_backends": lambda given: (
        isinstance(given, type) and issubclass(given, VisionBackend) and isinstance(getattr(given, "name", None), str)
    ),
    "sandboxes": lambda given: (
        isinstance(given, type) and issubclass(given, Sandbox) and isinstance(getattr(given, "name", None), str)
    ),
    "services": lambda given: isinstance(given, Service),
    "rules": lambda given: isinstance(given, Rule),
    "skills": lambda given: isinstance(given, Path) and given.is_absolute(),
    "traces": callable,
    "observers": lambda given: isinstance(given, Observer) and isinstance(getattr(given, "name", None), str),
}


def register_plugins(plugins: PluginSet, settings: Settings) -> PluginRegistrations:
    """Register what core and every loaded plugin offer.

    A plugin that breaks a rule is removed completely, with the reason.
    """
    done = PluginRegistrations(
        registry=ToolRegistry(OwnedTool(tool, CORE_PLUGIN) for tool in builtin.BUILTIN_TOOLS),
        toolsets=[(ArtifactTools(), CORE_PLUGIN)],
        evaluators=[(EffectsEvaluator(), CORE_PLUGIN), (SecretsEvaluator(), CORE_PLUGIN)],
    )
    for plugin in plugins.loaded:
        try:
            done = _register_one(done, plugin, plugins, settings)
        except PluginError as exc:
            plugins.fail(plugin.name, f"{exc}; {exc.hint}" if exc.hint else str(exc))
    return done


def _register_one(
    before: PluginRegistrations, plugin: PluginRecord, plugins: PluginSet, settings: Settings
) -> PluginRegistrations:
    """Return the earlier registrations with everything of this plugin added; nothing is changed if it fails."""
    name = plugin.name

    def answers(kind: str) -> list[Any]:
        hook = f"handrail_register_{kind}"
        return plugins.answers(name, hook, fits=TYPE_CHECKS[kind]) if hook in plugin.hooks else []

    offered = answers("tools")
    own = ToolRegistry(OwnedTool(tool, name) for tool in offered if isinstance(tool, Tool))
    after = PluginRegistrations(
        before.registry.merged(own),
        [*before.toolsets, *((toolset, name) for toolset in offered if not isinstance(toolset, Tool))],
        [*before.evaluators, *((evaluator, name) for evaluator in answers("evaluators"))],
        dict(before.backends),
        dict(before.sandboxes),
        dict(before.services),
        dict(before.configs),
        dict(before.observers),
        [*before.rules, *((rule, name) for rule in answers("rules"))],
        [*before.skills, *((folder, name) for folder in answers("skills"))],
        [*before.traces, *((traces, name) for traces in answers("traces"))],
    )
    for backend in answers("vision_backends"):
        _claim_name(after.backends, backend.name, backend, what="vision backend", plugin=name)
    for sandbox in answers("sandboxes"):
        if sandbox.name == NO_SANDBOXES:
            raise PluginError(f"a sandbox cannot be called {sandbox.name!r}, which stands for no sandbox at all")
        _claim_name(after.sandboxes, sandbox.name, sandbox, what="sandbox", plugin=name)
    for observer in answers("observers"):
        _claim_name(after.observers, observer.name, observer, what="observer", plugin=name)
    for service in answers("services"):
        _claim_name(after.services, service.capability, (service, name), what="service", plugin=name)
    if (own_settings := _validate_plugin_table(plugin, plugins, settings)) is not None:
        after.configs[name] = own_settings
    plugin.tools = [entry.tool.name for entry in own]
    plugin.backends = [backend for backend in after.backends if backend not in before.backends]
    plugin.sandboxes = [sandbox for sandbox in after.sandboxes if sandbox not in before.sandboxes]
    return after


def _validate_plugin_table(plugin: PluginRecord, plugins: PluginSet, settings: Settings) -> BaseModel | None:
    """Return the plugin's own table as an instance of its model, or None for a plugin without settings.

    Raises `ConfigError` if a plugin without settings has a table.
    """
    name, table = plugin.name, settings.plugins.table(plugin.name)
    if "handrail_register_config" in plugin.hooks and (model := plugins.call(name, "handrail_register_config")):
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise PluginError("handrail_register_config gave something that is not a pydantic model")
        return validate_table(model, table, table=f"plugins.{name}")
    if table:
        given = next(iter(table))
        raise ConfigError(
            f"[plugins.{name}]: the plugin has no settings, and {given!r} is given", key=("plugins", name, given)
        )
    return None


def _claim_name(taken: dict[str, Any], key: str, value: Any, *, what: str, plugin: str) -> None:
    if key in taken:
        raise PluginError(f"plugin {plugin!r} registers the {what} {key!r}, which another plugin has registered")
    taken[key] = value
