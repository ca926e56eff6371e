"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def handrail_register_commands() -> Iterable[click.Command]:
    """Return `handrail console`."""
    from handrail_console.console_command import console_command

    return (console_command,)
