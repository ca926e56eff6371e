"""The commands that plugins add, found without importing the machinery that sessions load plugins with.

`handrail --help` has to answer in a few times the start of Python, which `importlib.metadata` and the checks of `handrail.plugins.loading` would
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

SECTION = "[handrail]"
HOOK = "handrail_register_commands"


@dataclass(frozen=True, slots=True)
class Offer:
    """A command and the plugin it comes from."""

    command: click.Command
    plugin: str


def offers(environment: Mapping[str, str]) -> Mapping[str, Offer]:
    """The commands of the plugins that can be imported, by name; the first plugin to offer a name has it."""
    only = environment.get("HANDRAIL_PLUGINS")
    allowed = None if only is None else {name.strip() for name in only.split(",")}
    found: dict[str, Offer] = {}
    for plugin, target in sorted(_entry_points()):
        if allowed is None or plugin in allowed:
            for command in _commands_of(target):
                found.setdefault(command.name or "", Offer(command, plugin))
    return found


def refusal(plugin: str, disabled: Collection[str]) -> str | None:
    """Why the plugin is not loaded by the rules for all plugins and the `disabled` ones of the configuration; None when it is."""
    from handrail.plugins.loading import installed, load

    listed = load([found for found in installed() if found.name == plugin], disabled=disabled).get(plugin)
    return listed.reason if listed is not None and listed.state != "loaded" else None


def _commands_of(target: str) -> list[click.Command]:
    name = target.partition(":")[0]
    try:
        if not _mentions_hook(name):
            return []
        module = importlib.import_module(name)
        return list(getattr(module, HOOK, list)())
    # Plugin code: a broken one is shown by `handrail plugins` and must not keep the program from starting.
    except (Exception, SystemExit):  # noqa: BLE001 # said where it belongs, and logging costs a start too much
        return []


def _mentions_hook(module: str) -> bool:
    """Whether the module's source names the hook: only then is it worth the time that its import takes."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return True
    with open(spec.origin, "rb") as file:
        return HOOK.encode() in file.read()


def _entry_points() -> Iterator[tuple[str, str]]:
    """Name and module of each entry point in the group `handrail`, a name once: what comes first on the path counts."""
    seen: set[str] = set()
    for folder in sys.path:
        for text in _declared(folder or "."):
            for name, target in _section(text):
                if name not in seen:
                    seen.add(name)
                    yield name, target


def _declared(folder: str) -> Iterator[str]:
    """The entry_points.txt of every distribution in a folder of the path that has one for us."""
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
            if SECTION in text:
                yield text


def _section(text: str) -> Iterator[tuple[str, str]]:
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == SECTION
        elif inside and "=" in line and not line.startswith("#"):
            name, _, target = line.partition("=")
            yield name.strip(), target.strip()
