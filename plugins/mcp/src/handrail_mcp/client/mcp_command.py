"""`handrail mcp`"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from handrail.cli import (
    SessionOptions,
    disable_audit,
    json_option,
    open_runtime_for,
    print_json,
    read_config,
    run_async,
    session_options,
)
from handrail_mcp.setup.setup_commands import clients_command, install_command, uninstall_command


@click.group("mcp")
def mcp_group() -> None:
    """Manage the clients of Handrail and the servers it uses."""


for each in (clients_command, install_command, uninstall_command):
    mcp_group.add_command(each)


@mcp_group.command("servers")
@session_options
@json_option
def servers_command(choices: SessionOptions, as_json: bool) -> None:
    """Start or reach each configured server, and say how it went.

    Example: handrail mcp servers
    """
    found = run_async(lambda: _collect_server_states(choices))
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("no servers are configured; see [mcp.servers.NAME] in docs/mcp.md", err=True)
        return
    width = max(len(each["name"]) for each in found)
    for each in found:
        click.echo(f"{each['name']:<{width}}  {each['state']:<8}  {_describe_server(each)}")
        for tool in each["offers"]:
            click.echo(f"{'':<{width}}  {tool}")


async def _collect_server_states(choices: SessionOptions) -> Sequence[dict[str, Any]]:
    from handrail_mcp.client.servers import SessionServers
    from handrail_mcp.client.toolset import CAPABILITY

    config = disable_audit(read_config(choices))
    if not config.settings.mcp.servers:
        return ()
    async with open_runtime_for(choices, config=config, follow=False) as runtime, runtime.session() as session:
        opened: SessionServers = await session.service(CAPABILITY)
        await opened.tools(session)
        await opened.settled()
        tools = await opened.tools(session)
        return [
            {**each, "offers": [tool.name for tool in tools if tool.server == each["name"]]} for each in opened.states()
        ]


def _describe_server(server: dict[str, Any]) -> str:
    if server["problem"]:
        return server["problem"]
    return f"{len(server['offers'])} tools, {server['resources']} resources, protocol {server['protocol']}"
