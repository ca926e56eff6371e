"""What the plugins of this project supply, also where they are not installed: an error can name the one that is lacking."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal

SuppliedKind = Literal["tools", "commands", "backends"]
# Made from the plugins by `make docs`.
DATA_FILE = Path(__file__).with_name("supplied.json")


def find_supplier(kind: SuppliedKind, name: str) -> str | None:
    """The plugin that supplies the tool, command or vision backend of that name; None when none of this project's does."""
    return next((plugin for plugin, supplies in _read_known_plugins().items() if name in supplies[kind]), None)


def is_reserved_name(plugin: str) -> bool:
    """Whether a package of this project has the name: another one under it would take its place."""
    return plugin == "core" or plugin in _read_known_plugins()


def format_install_hint(plugin: str) -> str:
    """The cure where a plugin of this project is not installed; what else there is to do where it is not one of them."""
    known = plugin in _read_known_plugins()
    return f"handrail install handrail-{plugin.replace('_', '-')}" if known else "`handrail plugins` shows those here"


@cache
def _read_known_plugins() -> dict[str, dict[SuppliedKind, list[str]]]:
    return json.loads(DATA_FILE.read_text(encoding="utf-8"))
