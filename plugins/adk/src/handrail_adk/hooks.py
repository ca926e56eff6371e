"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    import click

    from handrail_adk.config import RunConfig


@hookimpl
def handrail_register_commands() -> Iterable[click.Command]:
    """Return `handrail run` and `handrail sessions`."""
    from handrail_adk.run_command import run_command as run
    from handrail_adk.sessions_command import sessions_group as sessions

    return (run, sessions)


@hookimpl
def handrail_register_config() -> type[RunConfig]:
    """Return the model of `[plugins.adk]`."""
    from handrail_adk.config import RunConfig

    return RunConfig
