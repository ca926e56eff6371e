"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def handrail_register_commands() -> Iterable[click.Command]:
    """`handrail serve`"""
    from handrail_mcp.command import command

    return (command,)
