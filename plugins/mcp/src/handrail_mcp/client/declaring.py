"""A server's tool as one of Handrail's: what the server says of it is shown cleaned, and believed where it only tightens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from mcp import types

from handrail import Effect, McpConfirmation, Read, Remote, Run, Tool, ToolContext, Verdict
from handrail.rules import starred
from handrail.settings import ServerSettings
from handrail.untrusted import clean
from handrail_mcp.client.schemas import schema

DESCRIPTION = 4_000
TITLE = 100
SHOWN = 200
# A person who configures a server wants its tools, whatever else is declared.
PROFILES = frozenset({"files", "shell", "browser", "desktop"})

Handle = Callable[[types.Tool, Any, ToolContext], Coroutine[Any, Any, Any]]


def wanted(tool: str, settings: ServerSettings) -> bool:
    """Whether the configuration lets a tool of the server be offered, by the server's own name for it."""
    included = settings.include is None or any(starred(pattern, tool) for pattern in settings.include)
    return included and not any(starred(pattern, tool) for pattern in settings.exclude)


def fingerprint(tool: types.Tool) -> str:
    """A hash of all that the server says of the tool and that a person or a model goes by."""
    said = tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta", "icons"})
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def offered(
    tool: types.Tool, *, name: str, server: str, settings: ServerSettings, beside: frozenset[str], handle: Handle
) -> Tool:
    """The tool under its name here. Raises ValueError for a schema that arguments cannot be checked against."""
    given = schema(tool.input_schema)
    own = clean(tool.name).text
    annotated = tool.annotations.title if tool.annotations is not None else None
    title = " ".join(clean(tool.title or annotated or "").text.split())[:TITLE]

    async def handler(params: Any, context: ToolContext) -> Any:
        return await handle(tool, params.args, context)

    def describe(params: Any) -> str:
        args = ", ".join(f"{key}={_short(value)}" for key, value in params.args.items())
        return f"{own} of the server {server}{': ' if args else ''}{args}"

    def confirmation(params: Any, verdict: Verdict) -> McpConfirmation:
        return McpConfirmation(f"Call {own} of the server {server}", server, own, params.args)

    return Tool(
        name=name,
        title=title or own,
        description=clean(tool.description or "").text.strip()[:DESCRIPTION] or f"{own}, of the server {server}.",
        handler=handler,
        given=given,
        layer="mcp",
        effects=effects(tool, settings),
        # The call has its own, which stands still while a person is asked.
        timeout=None,
        profiles=PROFILES,
        on_collision="keep",
        server=server,
        remote=Remote(tool.name, fingerprint(tool), beside),
        describe=describe,
        confirmation=confirmation,
    )


def effects(tool: types.Tool, settings: ServerSettings) -> Sequence[Effect]:
    """It may do anything, unless the configuration says that it changes nothing, or that the server is believed when it says so.

    A server that itself says that the tool changes something is believed in any case.
    """
    hints = tool.annotations
    changes = hints is not None and (hints.read_only_hint is False or hints.destructive_hint is True)
    known = any(starred(pattern, tool.name) for pattern in settings.read_only)
    believed = settings.trust_hints and hints is not None and hints.read_only_hint is True
    return (Read("server"),) if (known or believed) and not changes else (Run("server"),)


def _short(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
