"""Sessions to measure, with separate state and none of the user's configuration."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import handrail
from benchmarks.measure import Absent
from handrail import Session
from handrail.config import loader as configuration
from handrail.fs.app_dirs import AppDirs
from handrail.plugins.loader import FoundPlugin, load_plugins
from handrail.session.runtime import Runtime, open_runtime

ROOT = Path(__file__).resolve().parent.parent
PERSONAL = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "AT_SPI_BUS_ADDRESS", "XAUTHORITY")
# PYTHONDONTWRITEBYTECODE and its like: what is installed is run from bytecode, and the first round that does not count writes it.
FOREIGN = ("HANDRAIL_", "PYTHON")


@dataclass(frozen=True, slots=True)
class Ready:
    """An entry point whose plugin is there already."""

    plugin: object

    def load(self) -> object:
        return self.plugin


@contextmanager
def environment(**variables: str) -> Iterator[dict[str, str]]:
    """Yield the variables for one measurement, with a HANDRAIL_HOME that is removed afterwards."""
    home = tempfile.mkdtemp(prefix="handrail-bench-")
    kept = {k: v for k, v in os.environ.items() if k not in PERSONAL and not k.startswith(FOREIGN)}
    try:
        yield {**kept, "HANDRAIL_HOME": home, **variables}
    finally:
        shutil.rmtree(home, ignore_errors=True)


@asynccontextmanager
async def trivial_session(
    *, audit: bool, beside: Mapping[str, object] | None = None, **variables: str
) -> AsyncGenerator[Session, None]:
    """Open a session with the tool `add` and core's own.

    No other plugins are loaded but those in `beside`, by name; `variables` are settings.
    """
    with environment(HANDRAIL_AUDIT_ENABLED=str(audit).lower(), **variables) as around:
        async with trivial_runtime(around, beside or {}) as runtime, runtime.session() as session:
            require(session, *(beside or {}))
            yield session


@asynccontextmanager
async def trivial_runtime(variables: Mapping[str, str], beside: Mapping[str, object]) -> AsyncGenerator[Runtime, None]:
    """Open a runtime for such sessions, in the directories that `variables` name."""
    add = FoundPlugin("trivial", EntryPoint("trivial", "benchmarks.trivial", "handrail"), "handrail-benchmarks", "0")
    found = [add, *(FoundPlugin(name, Ready(plugin), "handrail-benchmarks", "0") for name, plugin in beside.items())]
    places = AppDirs.of(variables)
    config = configuration.load_config(places=places, folder=Path(variables["HANDRAIL_HOME"]), environment=variables)
    async with open_runtime(config, environment=variables, places=places, plugins=load_plugins(found)) as runtime:
        yield runtime


@asynccontextmanager
async def session_with(*plugins: str, cwd: Path | None = None, **settings: Any) -> AsyncGenerator[Session, None]:
    """Open a session with only these of our plugins; raise `Absent` if one does not load."""
    with environment(HANDRAIL_PLUGINS=",".join(plugins)) as variables:
        folder = cwd or Path(variables["HANDRAIL_HOME"])
        async with handrail.open(environment=variables, cwd=folder, **settings) as session:
            require(session, *plugins)
            yield session


def require(session: Session, *plugins: str) -> None:
    """Raise `Absent` for the first of these plugins that is not loaded."""
    for name in plugins:
        plugin = session.runtime.plugins.get(name)
        if plugin is None or plugin.state != "loaded":
            raise Absent(f"the plugin {name!r} is not here: {plugin.reason if plugin else 'not installed'}")


async def succeed(session: Session, tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call a tool that has to succeed; raises `Absent` when it does not, because then nothing was measured."""
    result = await session.call(tool, args)
    if result.status != "success":
        raise Absent(
            f"{tool}: {result['error']['code'] if 'error' in result else result.status}: {result.get('error')}"
        )
    return result
