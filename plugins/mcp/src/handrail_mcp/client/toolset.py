"""The toolset and the service that this plugin registers. Light: the SDK is imported when a session has servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakSet

from handrail import Finding, Service, ServiceContext, Session, Tool
from handrail_mcp.client.tool_names import NAME_PREFIX

if TYPE_CHECKING:
    from handrail_mcp.client.servers import SessionServers

CAPABILITY = "mcp_servers"


class ServerTools:
    """The tools of the servers in `[mcp.servers]`."""

    names = (f"{NAME_PREFIX}*",)

    def __init__(self) -> None:
        # Of these, servers that the configuration no longer names are to be ended.
        self._using: WeakSet[Session] = WeakSet()

    async def tools(self, session: Session) -> Sequence[Tool]:
        """Return the tools that the servers offer now; a session without servers incurs no cost."""
        if not session.settings.mcp.servers and session not in self._using:
            return ()
        self._using.add(session)
        servers: SessionServers = await session.service(CAPABILITY)
        return await servers.tools(session)


async def _open_servers(context: ServiceContext) -> SessionServers:
    from handrail_mcp.client.servers import SessionServers

    return SessionServers(context.environment)


async def examine_servers(session: Session) -> Sequence[Finding]:
    """Report the state of each server in the configuration, once its first connection attempt is over."""
    if not session.settings.mcp.servers:
        return ()
    from handrail_mcp.client.connection import ConnectionState

    servers: SessionServers = await session.service(CAPABILITY)
    await servers.tools(session)
    await servers.settled()
    off = [name for name, settings in session.settings.mcp.servers.items() if not settings.enabled]
    found = [Finding(f"server {name}", True, "it is not enabled") for name in off]
    for each in servers.connections:
        ready = each.state is ConnectionState.READY
        offers = f"{len(each.listing.tools)} tools, {len(each.listing.resources)} resources, protocol {each.protocol}"
        cure = "" if ready else f"see [mcp.servers.{each.name}] in the configuration"
        found.append(Finding(f"server {each.name}", ready, offers if ready else each.problem, cure))
    return found


SERVICE = Service(CAPABILITY, _open_servers, scope="session", examine=examine_servers)
