"""The commands that plugins add, found without importing the machinery that sessions load plugins with.

`handrail --help` has to answer in a few times the start of Python, which `importlib.metadata` and the checks of `handrail.plugins.loader` would
take up alone. So entry points are read as files here, and a plugin is checked in full only when one of its commands is run.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import click

ENTRY_POINT_SECTION = "[handrail]"
COMMANDS_HOOK = "handrail_register_commands"


@dataclass(frozen=True, slots=True)
class PluginCommand:
    """A command and the plugin it comes from."""

    command: click.Command
    plugin: str


def find_plugin_commands(environment: Mapping[str, str]) -> Mapping[str, PluginCommand]:
    """Return the commands of plugins that can be imported, by name; the first plugin to offer a name provides it."""
    only = environment.get("HANDRAIL_PLUGINS")
    allowed = None if only is None else {name.strip() for name in only.split(",")}
    found: dict[str, PluginCommand] = {}
    for plugin, target in sorted(_iter_entry_points()):
        if allowed is None or plugin in allowed:
            for command in _load_commands(target):
                found.setdefault(command.name or "", PluginCommand(command, plugin))
    return found


def find_refusal_reason(plugin: str, disabled: Collection[str]) -> str | None:
    """Return why a plugin is not loaded, or None if it is.

    The general rules for plugins apply, and the `disabled` plugins of the configuration.
    """
    from handrail.plugins.loader import find_installed_plugins, load_plugins

    listed = load_plugins([found for found in find_installed_plugins() if found.name == plugin], disabled=disabled).get(
        plugin
    )
    return listed.reason if listed is not None and listed.state != "loaded" else None


def _load_commands(target: str) -> list[click.Command]:
    name = target.partition(":")[0]
    try:
        if not _is_hook_mentioned(name):
            return []
        module = importlib.import_module(name)
        return list(getattr(module, COMMANDS_HOOK, list)())
    # Plugin code: a broken one is shown by `handrail plugins` and must not keep the program from starting.
    except (Exception, SystemExit):  # noqa: BLE001 # said where it belongs, and logging costs a start too much
        return []


def _is_hook_mentioned(module: str) -> bool:
    """Return True if the module's source mentions the hook; only then is it worth the time to import it."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return True
    with open(spec.origin, "rb") as file:
        return COMMANDS_HOOK.encode() in file.read()


def _iter_entry_points() -> Iterator[tuple[str, str]]:
    """Name and module of each entry point in the group `handrail`, a name once: what comes first on the path counts."""
    seen: set[str] = set()
    for folder in sys.path:
        for text in _iter_entry_point_files(folder or "."):
            for name, target in _parse_entry_points(text):
                if name not in seen:
                    seen.add(name)
                    yield name, target


def _iter_entry_point_files(folder: str) -> Iterator[str]:
    """Yield the entry_points.txt of every distribution in a path directory that has an entry point for us."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name.endswith((".dist-info", ".egg-info")):
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                    text = file.read()
            except (OSError, UnicodeDecodeError):
                continue
            if ENTRY_POINT_SECTION in text:
                yield text


def _parse_entry_points(text: str) -> Iterator[tuple[str, str]]:
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == ENTRY_POINT_SECTION
        elif inside and "=" in line and not line.startswith("#"):
            name, _, target = line.partition("=")
            yield name.strip(), target.strip()
