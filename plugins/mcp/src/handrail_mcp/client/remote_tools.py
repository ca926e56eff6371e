"""A server's tool as one of Handrail's: what the server says of it is shown cleaned, and believed where it only tightens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp import types

from handrail import Effect, McpConfirmation, Read, Remote, Run, Tool, ToolContext, Verdict
from handrail.config.settings import ServerSettings
from handrail.policy.rules import is_wildcard_match
from handrail.sanitize.envelope import clean_text
from handrail_mcp.client.json_schemas import BoundedSchema, UnusableSchema, parse_schema

MAX_DESCRIPTION = 4_000
MAX_TITLE = 100
# Letters of all that a server says of its tools; those that come after are left out.
MAX_LISTING_LETTERS = 1_000_000
MAX_SHOWN = 200
# A person who configures a server wants its tools, whatever else is declared.
PROFILES = frozenset({"files", "shell", "browser", "desktop"})


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """Tool as declared by its server, inspected once.

    `fingerprint` is a hash of everything that a user or a model relies on.
    """

    tool: types.Tool = field(compare=False)
    fingerprint: str
    given: BoundedSchema | UnusableSchema = field(compare=False)
    output: BoundedSchema | UnusableSchema | None = field(compare=False)


ToolHandler = Callable[[DeclaredTool, Any, ToolContext], Coroutine[Any, Any, Any]]


def inspect_tools(tools: Iterable[types.Tool]) -> Sequence[DeclaredTool]:
    """Inspect the tools that a server has listed; this takes seconds for a long list."""
    left = MAX_LISTING_LETTERS
    found: list[DeclaredTool] = []
    for tool in tools:
        dumped = tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta", "icons"})
        said = json.dumps(dumped, sort_keys=True)
        left -= len(said)
        fingerprint = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
        if left < 0:
            found.append(
                DeclaredTool(
                    tool,
                    fingerprint,
                    UnusableSchema(f"its server says more than {MAX_LISTING_LETTERS:,} letters"),
                    None,
                )
            )
            continue
        output = None if tool.output_schema is None else _try_parse_schema(tool.output_schema)
        found.append(DeclaredTool(tool, fingerprint, _try_parse_schema(tool.input_schema), output))
    return found


def _try_parse_schema(given: Mapping[str, Any]) -> BoundedSchema | UnusableSchema:
    try:
        return parse_schema(given)
    # A schema is data of another's; whatever it breaks, only its tool is left out.
    except Exception as exc:  # noqa: BLE001 # it becomes the warning
        return exc if isinstance(exc, UnusableSchema) else UnusableSchema(str(exc))


def is_tool_included(tool: str, settings: ServerSettings) -> bool:
    """Return True if the configuration allows a tool of the server, given by the server's own name for it."""
    included = settings.include is None or any(is_wildcard_match(pattern, tool) for pattern in settings.include)
    return included and not any(is_wildcard_match(pattern, tool) for pattern in settings.exclude)


def create_tool(
    declared: DeclaredTool,
    *,
    name: str,
    server: str,
    settings: ServerSettings,
    beside: frozenset[str],
    handle: ToolHandler,
) -> Tool:
    """Create the tool under its name in the session.

    Raises ValueError for a schema that arguments cannot be checked against.
    """
    if isinstance(declared.given, UnusableSchema):
        raise declared.given
    tool = declared.tool
    own = _clean_line(tool.name)
    annotated = tool.annotations.title if tool.annotations is not None else None

    async def handler(params: Any, context: ToolContext) -> Any:
        return await handle(declared, params.args, context)

    def describe(params: Any) -> str:
        args = ", ".join(f"{key}={_format_short(value)}" for key, value in params.args.items())
        return f"{own} of the server {server}{': ' if args else ''}{args}"

    def confirmation(params: Any, verdict: Verdict) -> McpConfirmation:
        return McpConfirmation(f"Call {own} of the server {server}", server, own, params.args)

    return Tool(
        name=name,
        title=_clean_line(tool.title or annotated or "") or own,
        description=_clean_and_truncate(tool.description or "", MAX_DESCRIPTION).strip()
        or f"{own}, of the server {server}.",
        handler=handler,
        given=declared.given,
        layer="mcp",
        effects=derive_effects(tool, settings),
        # The call has its own, which stands still while a person is asked.
        timeout=None,
        profiles=PROFILES,
        on_collision="keep",
        server=server,
        remote=Remote(tool.name, declared.fingerprint, beside),
        describe=describe,
        confirmation=confirmation,
    )


def derive_effects(tool: types.Tool, settings: ServerSettings) -> Sequence[Effect]:
    """Return the effects of a tool: it may do anything, unless it is known to be read-only.

    It is if the configuration lists it as read-only, or says to trust the server's hints and they say so. A server's
    hint that the tool changes something is always believed.
    """
    hints = tool.annotations
    changes = hints is not None and (hints.read_only_hint is False or hints.destructive_hint is True)
    known = any(is_wildcard_match(pattern, tool.name) for pattern in settings.read_only)
    believed = settings.trust_hints and hints is not None and hints.read_only_hint is True
    return (Read("server"),) if (known or believed) and not changes else (Run("server"),)


def _clean_and_truncate(text: str, letters: int) -> str:
    """Clean and truncate a text; only the beginning of a very long one is processed."""
    return clean_text(text[: 4 * letters]).text[:letters]


def _clean_line(text: str) -> str:
    return " ".join(_clean_and_truncate(text, MAX_TITLE).split())


def _format_short(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)).split())
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
