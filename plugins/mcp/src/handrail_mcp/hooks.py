"""Hooks of this plugin."""

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
    """Return `handrail serve` and `handrail mcp`."""
    from handrail_mcp.client.mcp_command import mcp_group as mcp
    from handrail_mcp.serve_command import serve_command as serve

    return serve, mcp


@hookimpl
def handrail_register_tools() -> Iterable[Toolset]:
    """Return the toolset of other MCP servers."""
    from handrail_mcp.client.toolset import ServerTools

    return (ServerTools(),)


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """Return the service that holds the connections to other servers."""
    from handrail_mcp.client.toolset import SERVICE

    return (SERVICE,)


@hookimpl
def handrail_register_traces() -> Iterable[TraceProvider]:
    """Return the provider of the entries in clients' configuration files."""
    from handrail_mcp.setup.setup_commands import find_client_traces

    return (find_client_traces,)
