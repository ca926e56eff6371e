"""The settings, held against the plugins that are installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from handrail.config.settings import NO_SANDBOXES, Settings
from handrail.config.validation import validate_table
from handrail.errors import ConfigError
from handrail.plugins.known_plugins import format_install_hint
from handrail.policy.rule_lint import check_rules
from handrail.policy.rules import RuleSet, build_rule
from handrail.text import format_suggestion

if TYPE_CHECKING:
    from handrail.session.runtime import Runtime


def check_tables(runtime: Runtime, settings: Settings) -> None:
    """Raise `ConfigError` for a backend's table that does not fit it, and for a table of nothing that is installed."""
    for name, backend in runtime.backends.items():
        validate_table(backend.Config, settings.backends.get(name, {}), table=f"backends.{name}")
    for name, sandbox in runtime.sandboxes.items():
        validate_table(sandbox.Config, settings.sandboxes.get(name, {}), table=f"sandboxes.{name}")
    _check_known(
        settings.plugins.model_extra or {}, [plugin.name for plugin in runtime.plugins.listed], table="plugins"
    )
    # A plugin that is off or broken takes its backends with it, and their tables are nobody's mistake.
    if len(runtime.plugins.loaded) == len(runtime.plugins.listed):
        _check_known(settings.backends, runtime.backends, table="backends")
        _check_known(settings.sandboxes, runtime.sandboxes, table="sandboxes")
        for name in settings.sandbox.use:
            if name not in (*runtime.sandboxes, NO_SANDBOXES):
                raise ConfigError(
                    f"sandbox.use: there is no sandbox {name!r} here{format_suggestion(name, runtime.sandboxes)}",
                    key=("sandbox", "use"),
                )


def build_rules(runtime: Runtime, settings: Settings) -> RuleSet:
    """Build the rules of the configuration and of plugins; raises `ConfigError` for a rule that can match nothing."""
    check_rules(settings.policy.rules, runtime)
    return RuleSet((*map(build_rule, settings.policy.rules), *runtime.plugin_rules(settings)))


def build_installed_schema(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return a JSON Schema of the configuration file, with the tables of installed plugins, backends and sandboxes."""
    from handrail.api.vision import NoSettings
    from handrail.config.loader import build_config_schema
    from handrail.plugins.loader import load_plugins_from_environment
    from handrail.plugins.registration import register_plugins

    plugins = load_plugins_from_environment(environment, disabled=())
    registered = register_plugins(plugins, Settings())
    return build_config_schema(
        plugins={plugin.name: type(registered.configs.get(plugin.name, NoSettings())) for plugin in plugins.loaded},
        backends={name: backend.Config for name, backend in registered.backends.items()},
        sandboxes={name: sandbox.Config for name, sandbox in registered.sandboxes.items()},
    )


def _check_known(tables: Iterable[str], known: Iterable[str], *, table: str) -> None:
    known = list(known)
    for name in tables:
        if name not in known:
            raise ConfigError(
                f"[{table}.{name}]: there is no {name!r} here{format_suggestion(name, known)}",
                hint=format_install_hint(name) if table == "plugins" else "`handrail plugins` shows those here",
                key=(table, name),
            )
