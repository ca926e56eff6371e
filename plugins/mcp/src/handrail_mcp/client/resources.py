"""`list_resources` and `read_resource`: there while a server has any."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from handrail import McpConfirmation, NotFound, Read, Remote, Tool, ToolContext, Verdict
from handrail.text import format_suggestion
from handrail_mcp.client import results
from handrail_mcp.client.connection import ServerConnection, ServerListing
from handrail_mcp.client.remote_tools import PROFILES

MAX_LISTED = 100


class ListResourcesParams(BaseModel):
    """Selection of resources to list."""

    server: str | None = Field(default=None, description="Only those of this server.")
    offset: int = Field(default=0, ge=0, description="How many to pass over.")


class ReadResourceParams(BaseModel):
    """Resource to read."""

    server: str = Field(description="The server that has it, as list_resources names it.")
    uri: str = Field(description="Its address there, or one made of a template.", max_length=4_096)


@dataclass(frozen=True, slots=True)
class ServerResources:
    """Resources of a session's servers, with the tools to list and read them.

    `server` finds a server by name, `servers` returns all of them.
    """

    server: Callable[[str], ServerConnection | None]
    servers: Callable[[], Sequence[ServerConnection]]

    def tools(self) -> list[Tool]:
        """Create `list_resources` and `read_resource`."""
        return [
            Tool(
                name="list_resources",
                description="List what other servers hold to be read: address, name and kind of each resource, and templates of addresses.",
                handler=self._list,
                params=ListResourcesParams,
                layer="mcp",
                effects=(Read("session"),),
                profiles=PROFILES,
                on_collision="keep",
            ),
            Tool(
                name="read_resource",
                description="Read a resource of another server: its text, or pictures and other media. list_resources says which there are.",
                handler=self._read,
                params=ReadResourceParams,
                layer="mcp",
                effects=(Read("server"),),
                timeout=None,
                profiles=PROFILES,
                on_collision="keep",
                confirmation=_build_confirmation,
                served_by=self._served_by,
            ),
        ]

    async def _list(self, params: ListResourcesParams, context: ToolContext) -> Mapping[str, Any]:
        if params.server is not None:
            chosen = [self._known(params.server)]
        else:
            chosen = [each for each in self.servers() if each.present]
        found = [
            {"server": each.name, **results.describe_resource(one)} for each in chosen for one in each.listing.resources
        ]
        templates = [
            {"server": each.name, "uri_template": one.uri_template, "name": one.title or one.name}
            for each in chosen
            for one in each.listing.templates
        ]
        shown = found[params.offset : params.offset + MAX_LISTED]
        return {
            "resources": shown,
            "templates": templates[:MAX_LISTED],
            "total": len(found),
            "truncated": params.offset + len(shown) < len(found),
        }

    async def _read(self, params: ReadResourceParams, context: ToolContext) -> Mapping[str, Any]:
        return results.build_resource_contents(await self._known(params.server).read_resource(params.uri, context))

    def _served_by(self, params: ReadResourceParams) -> tuple[str, Remote]:
        """Return the server that a resource is read from; with other tools or templates it is another one."""
        found = self.server(params.server)
        listing = found.listing if found is not None else ServerListing()
        tools = sorted(declared.fingerprint for declared in listing.tools)
        templates = sorted(template.uri_template for template in listing.templates)
        said = hashlib.sha256(json.dumps([tools, templates]).encode("utf-8", "surrogatepass")).hexdigest()
        return params.server, Remote("resources/read", said, frozenset((*tools, said)))

    def _known(self, name: str) -> ServerConnection:
        if (found := self.server(name)) is None:
            raise NotFound(
                f"there is no server {name!r}{format_suggestion(name, [each.name for each in self.servers()])}"
            )
        return found


def _build_confirmation(params: ReadResourceParams, verdict: Verdict) -> McpConfirmation:
    return McpConfirmation(
        f"Read a resource of the server {params.server}", params.server, "resources/read", {"uri": params.uri}
    )
