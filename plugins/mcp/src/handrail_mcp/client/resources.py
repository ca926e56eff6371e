"""`list_resources` and `read_resource`: there while a server has any."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from handrail import McpConfirmation, NotFound, Read, Remote, Tool, ToolContext, Verdict
from handrail.words import nearest
from handrail_mcp.client import results
from handrail_mcp.client.connection import Connection, Listing
from handrail_mcp.client.declaring import PROFILES

MOST = 100


class ListParams(BaseModel):
    """Which resources to list."""

    server: str | None = Field(default=None, description="Only those of this server.")
    offset: int = Field(default=0, ge=0, description="How many to pass over.")


class ReadParams(BaseModel):
    """Which resource to read."""

    server: str = Field(description="The server that has it, as list_resources names it.")
    uri: str = Field(description="Its address there, or one made of a template.", max_length=4_096)


@dataclass(frozen=True, slots=True)
class Resources:
    """What the servers of a session hold to be read. `server` finds one by its name, `servers` gives them all."""

    server: Callable[[str], Connection | None]
    servers: Callable[[], Sequence[Connection]]

    def tools(self) -> list[Tool]:
        """`list_resources` and `read_resource`."""
        return [
            Tool(
                name="list_resources",
                description="List what other servers hold to be read: address, name and kind of each resource, and templates of addresses.",
                handler=self._list,
                params=ListParams,
                layer="mcp",
                effects=(Read("session"),),
                profiles=PROFILES,
                on_collision="keep",
            ),
            Tool(
                name="read_resource",
                description="Read a resource of another server: its text, or pictures and other media. list_resources says which there are.",
                handler=self._read,
                params=ReadParams,
                layer="mcp",
                effects=(Read("server"),),
                timeout=None,
                profiles=PROFILES,
                on_collision="keep",
                confirmation=_confirmation,
                served_by=self._served_by,
            ),
        ]

    async def _list(self, params: ListParams, context: ToolContext) -> Mapping[str, Any]:
        if params.server is not None:
            chosen = [self._known(params.server)]
        else:
            chosen = [each for each in self.servers() if each.present]
        found = [{"server": each.name, **results.link(one)} for each in chosen for one in each.listing.resources]
        templates = [
            {"server": each.name, "uri_template": one.uri_template, "name": one.title or one.name}
            for each in chosen
            for one in each.listing.templates
        ]
        shown = found[params.offset : params.offset + MOST]
        return {
            "resources": shown,
            "templates": templates[:MOST],
            "total": len(found),
            "truncated": params.offset + len(shown) < len(found),
        }

    async def _read(self, params: ReadParams, context: ToolContext) -> Mapping[str, Any]:
        return results.contents(await self._known(params.server).read_resource(params.uri, context))

    def _served_by(self, params: ReadParams) -> tuple[str, Remote]:
        """Return the server that a resource is read from; with other tools or templates it is another one."""
        found = self.server(params.server)
        listing = found.listing if found is not None else Listing()
        tools = sorted(declared.fingerprint for declared in listing.tools)
        templates = sorted(template.uri_template for template in listing.templates)
        said = hashlib.sha256(json.dumps([tools, templates]).encode("utf-8", "surrogatepass")).hexdigest()
        return params.server, Remote("resources/read", said, frozenset((*tools, said)))

    def _known(self, name: str) -> Connection:
        if (found := self.server(name)) is None:
            raise NotFound(f"there is no server {name!r}{nearest(name, [each.name for each in self.servers()])}")
        return found


def _confirmation(params: ReadParams, verdict: Verdict) -> McpConfirmation:
    return McpConfirmation(
        f"Read a resource of the server {params.server}", params.server, "resources/read", {"uri": params.uri}
    )
