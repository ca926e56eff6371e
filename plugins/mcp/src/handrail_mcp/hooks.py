"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail.hookspecs import hookimpl

if TYPE_CHECKING:
    import click

    from handrail import Service, Toolset
    from handrail.running.traces import Traces


@hookimpl
def handrail_register_commands() -> Iterable[click.Command]:
    """`handrail serve` and `handrail mcp`"""
    from handrail_mcp.client.command import command as mcp
    from handrail_mcp.command import command as serve

    return serve, mcp


@hookimpl
def handrail_register_tools() -> Iterable[Toolset]:
    """The tools of other servers."""
    from handrail_mcp.client.toolset import ServerTools

    return (ServerTools(),)


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """The connections to other servers."""
    from handrail_mcp.client.toolset import SERVICE

    return (SERVICE,)


@hookimpl
def handrail_register_traces() -> Iterable[Traces]:
    """The entries in the files of clients."""
    from handrail_mcp.setup.command import traces

    return (traces,)
