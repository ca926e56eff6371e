"""A session in one line, for people who write Python."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from handrail import config as configuration
from handrail.confirm import Confirmer
from handrail.places import Places
from handrail.runtime import open_runtime
from handrail.session import Session


@asynccontextmanager
async def open_session(
    *,
    confirm: Confirmer | None = None,
    desktop: str | None = None,
    cwd: Path | str | None = None,
    workspace: Iterable[Path] | None = None,
    config: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
    **settings: Any,
) -> AsyncGenerator[Session, None]:
    """A session with the plugins and the configuration that are here, closed at the end with everything it started.

    `confirm` is asked when a call needs a yes; without it such calls are denied. `desktop` is "current" (default), "private" (a new virtual
    one) or the name of a started one. `settings` are keys of the configuration (`backend="ocr"`, `mode="headless"`).
    """
    environment = os.environ if environment is None else environment
    folder = Path(cwd or Path.cwd()).absolute()
    flags = {**settings, **({"desktop": desktop} if desktop else {})}
    places = Places.of(environment)

    def read() -> configuration.Config:
        file = Path(config) if config else None
        return configuration.load(places=places, folder=folder, environment=environment, flags=flags, file=file)

    async with (
        open_runtime(read(), environment=environment, cwd=folder, places=places, reload=read) as runtime,
        runtime.session(confirm=confirm, workspace=workspace) as session,
    ):
        yield session
