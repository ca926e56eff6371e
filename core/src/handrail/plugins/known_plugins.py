"""Known plugins of this project and what they supply, installed or not; lets an error name the missing plugin."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal

SuppliedKind = Literal["tools", "commands", "backends"]
# Made from the plugins by `make docs`.
DATA_FILE = Path(__file__).with_name("supplied.json")


def find_supplier(kind: SuppliedKind, name: str) -> str | None:
    """Return the plugin that supplies the tool, command or vision backend of that name.

    None if no plugin of this project does.
    """
    return next((plugin for plugin, supplies in _read_known_plugins().items() if name in supplies[kind]), None)


def is_reserved_name(plugin: str) -> bool:
    """Return True if a package of this project has the name; another plugin with that name would replace it."""
    return plugin == "core" or plugin in _read_known_plugins()


def format_install_hint(plugin: str) -> str:
    """Return how to install a plugin of this project; for other plugins, return another hint."""
    known = plugin in _read_known_plugins()
    return f"handrail install handrail-{plugin.replace('_', '-')}" if known else "`handrail plugins` shows those here"


@cache
def _read_known_plugins() -> dict[str, dict[SuppliedKind, list[str]]]:
    return json.loads(DATA_FILE.read_text(encoding="utf-8"))
