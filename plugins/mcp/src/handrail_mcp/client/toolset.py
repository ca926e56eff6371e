"""The toolset and the service that this plugin registers. Light: the SDK is imported when a session has servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakSet

from handrail import Finding, Service, ServiceContext, Session, Tool
from handrail_mcp.client.naming import PREFIX

if TYPE_CHECKING:
    from handrail_mcp.client.servers import Servers

CAPABILITY = "mcp_servers"


class ServerTools:
    """The tools of the servers in `[mcp.servers]`."""

    names = (f"{PREFIX}*",)

    def __init__(self) -> None:
        # Of these, servers that the configuration no longer names are to be ended.
        self._using: WeakSet[Session] = WeakSet()

    async def tools(self, session: Session) -> Sequence[Tool]:
        """What they offer now; a session without servers costs nothing."""
        if not session.settings.mcp.servers and session not in self._using:
            return ()
        self._using.add(session)
        servers: Servers = await session.service(CAPABILITY)
        return await servers.tools(session)


async def _open(context: ServiceContext) -> Servers:
    from handrail_mcp.client.servers import Servers

    return Servers(context.environment)


async def examine(session: Session) -> Sequence[Finding]:
    """How it stands with each server of the configuration, once it has answered or failed to."""
    if not session.settings.mcp.servers:
        return ()
    from handrail_mcp.client.connection import State

    servers: Servers = await session.service(CAPABILITY)
    await servers.tools(session)
    await servers.settled()
    off = [name for name, settings in session.settings.mcp.servers.items() if not settings.enabled]
    found = [Finding(f"server {name}", True, "it is not enabled") for name in off]
    for each in servers.connections:
        ready = each.state is State.READY
        offers = f"{len(each.listing.tools)} tools, {len(each.listing.resources)} resources, protocol {each.protocol}"
        cure = "" if ready else f"see [mcp.servers.{each.name}] in the configuration"
        found.append(Finding(f"server {each.name}", ready, offers if ready else each.problem, cure))
    return found


SERVICE = Service(CAPABILITY, _open, scope="session", examine=examine)
