"""What this plugin registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    import click

    from handrail import Service, Toolset
    from handrail.workers.external_traces import TraceProvider


@hookimpl
def handrail_register_commands() -> Iterable[click.Command]:
    """`handrail serve` and `handrail mcp`"""
    from handrail_mcp.client.mcp_command import mcp_group as mcp
    from handrail_mcp.serve_command import serve_command as serve

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
def handrail_register_traces() -> Iterable[TraceProvider]:
    """The entries in the files of clients."""
    from handrail_mcp.setup.setup_commands import find_client_traces

    return (find_client_traces,)
