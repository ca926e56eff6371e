"""What the plugins of this project supply, also where they are not installed: an error can name the one that is lacking."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal

Kind = Literal["tools", "commands", "backends"]
# Made from the plugins by `make docs`.
DATA = Path(__file__).with_name("supplied.json")


def supplier(kind: Kind, name: str) -> str | None:
    """The plugin that supplies the tool, command or vision backend of that name; None when none of this project's does."""
    return next((plugin for plugin, supplies in _supplied().items() if name in supplies[kind]), None)


def taken(plugin: str) -> bool:
    """Whether a package of this project has the name: another one under it would take its place."""
    return plugin == "core" or plugin in _supplied()


def install(plugin: str) -> str:
    """The cure where a plugin of this project is not installed; what else there is to do where it is not one of them."""
    known = plugin in _supplied()
    return f"handrail install handrail-{plugin.replace('_', '-')}" if known else "`handrail plugins` shows those here"


@cache
def _supplied() -> dict[str, dict[Kind, list[str]]]:
    return json.loads(DATA.read_text(encoding="utf-8"))
