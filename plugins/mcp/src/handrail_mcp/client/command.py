"""`handrail mcp`"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from handrail.commands import Choices, open_runtime_for, print_json, run, session_options
from handrail.commands._common import json_option, read_config, without_audit
from handrail_mcp.setup.command import clients, install, uninstall


@click.group("mcp")
def command() -> None:
    """Clients that have Handrail, and servers that it uses."""


for each in (clients, install, uninstall):
    command.add_command(each)


@command.command("servers")
@session_options
@json_option
def servers(choices: Choices, as_json: bool) -> None:
    """Start or reach each configured server, and say how it went.

    Example: handrail mcp servers
    """
    found = run(lambda: _found(choices))
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("no servers are configured; see [mcp.servers.NAME] in docs/mcp.md", err=True)
        return
    width = max(len(each["name"]) for each in found)
    for each in found:
        click.echo(f"{each['name']:<{width}}  {each['state']:<8}  {_said(each)}")
        for tool in each["offers"]:
            click.echo(f"{'':<{width}}  {tool}")


async def _found(choices: Choices) -> Sequence[dict[str, Any]]:
    from handrail_mcp.client.servers import Servers
    from handrail_mcp.client.toolset import CAPABILITY

    config = without_audit(read_config(choices))
    if not config.settings.mcp.servers:
        return ()
    async with open_runtime_for(choices, config=config, follow=False) as runtime, runtime.session() as session:
        opened: Servers = await session.service(CAPABILITY)
        await opened.tools(session)
        await opened.settled()
        tools = await opened.tools(session)
        return [
            {**each, "offers": [tool.name for tool in tools if tool.server == each["name"]]} for each in opened.states()
        ]


def _said(server: dict[str, Any]) -> str:
    if server["problem"]:
        return server["problem"]
    return f"{len(server['offers'])} tools, {server['resources']} resources, protocol {server['protocol']}"
