"""A session in one line, for people who write Python."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from handrail.api.approval import Confirmer
from handrail.config import loader as configuration
from handrail.errors import ConfigError
from handrail.fs.app_dirs import AppDirs
from handrail.plugins.loader import check_required_plugins
from handrail.session.runtime import Runtime, open_runtime
from handrail.session.session import Session

__all__ = ["open_configured_runtime"]

log = logging.getLogger(__name__)


@asynccontextmanager
async def open(
    *,
    confirm: Confirmer | None = None,
    desktop: str | None = None,
    backend: str | None = None,
    workspace: Iterable[Path | str] | None = None,
    cwd: Path | str | None = None,
    config: Path | str | None = None,
    plugins: Collection[str] | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> AsyncGenerator[Session, None]:
    """Open a session with the configuration and plugins that the `handrail` command finds here; close it on exit.

    Everything the session started is closed with it. `confirm` is asked when a call requires approval; without it such
    calls are denied. `desktop` is "current" (default), "private" (a new virtual one) or the name of a running one.
    `backend` is the vision backend. `workspace`: folders that may be written. `cwd`: base of relative paths and of the
    configuration lookup. `config` replaces the project's handrail.toml. `plugins`: load exactly these, by name.
    `settings` are other configuration keys (`mode="headless"`, `tools={"profile": "files"}`).

    Raises `ConfigError` for an error in the arguments or in a file, and `PluginError` if one of `plugins` does not
    load.
    """
    if confirm is not None and not callable(confirm):
        raise ConfigError(
            f"confirm is {confirm!r}, and should be an async function that is given the question",
            hint="handrail.api.approval has `yes`, `no` and `callback`",
        )
    roots = None if workspace is None else tuple(map(str, workspace))
    given = {**settings, "desktop": desktop, "backend": backend, "workspace": roots}
    async with (
        open_configured_runtime(given, cwd=cwd, config=config, plugins=plugins, environment=environment) as runtime,
        runtime.session(confirm=confirm) as session,
    ):
        yield session


@asynccontextmanager
async def open_configured_runtime(
    arguments: Mapping[str, Any],
    *,
    cwd: Path | str | None = None,
    config: Path | str | None = None,
    plugins: Collection[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> AsyncGenerator[Runtime, None]:
    """Open the runtime of `open`, for several sessions.

    `arguments` are configuration keys; those that are None are unset.
    """
    environment = dict(os.environ if environment is None else environment)
    if plugins is not None:
        environment["HANDRAIL_PLUGINS"] = ",".join(plugins)
    folder = Path(cwd or Path.cwd()).absolute()
    places = AppDirs.of(environment)

    def read() -> configuration.LoadedConfig:
        file = Path(config) if config else None
        return configuration.load_config(
            places=places, folder=folder, environment=environment, arguments=arguments, file=file
        )

    found = read()
    for sentence in found.ignored:
        log.warning("%s", sentence)
    async with open_runtime(found, environment=environment, cwd=folder, places=places, reload=read) as runtime:
        check_required_plugins(runtime.plugins, sorted(plugins or ()), by="`plugins`")
        yield runtime
