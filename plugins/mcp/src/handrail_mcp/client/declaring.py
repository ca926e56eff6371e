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
from handrail.judging.rules import starred
from handrail.untrusted.envelope import clean
from handrail_mcp.client.schemas import Schema, Unusable, schema

DESCRIPTION = 4_000
TITLE = 100
# Letters of all that a server says of its tools; those that come after are left out.
SAID = 1_000_000
SHOWN = 200
# A person who configures a server wants its tools, whatever else is declared.
PROFILES = frozenset({"files", "shell", "browser", "desktop"})


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool as its server declares it, looked through once. `fingerprint` is a hash of all that a person or a model goes by."""

    tool: types.Tool = field(compare=False)
    fingerprint: str
    given: Schema | Unusable = field(compare=False)
    output: Schema | Unusable | None = field(compare=False)


Handle = Callable[[Declared, Any, ToolContext], Coroutine[Any, Any, Any]]


def looked_through(tools: Iterable[types.Tool]) -> Sequence[Declared]:
    """What a server has listed; this takes seconds where it lists much."""
    left = SAID
    found: list[Declared] = []
    for tool in tools:
        dumped = tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta", "icons"})
        said = json.dumps(dumped, sort_keys=True)
        left -= len(said)
        fingerprint = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
        if left < 0:
            found.append(Declared(tool, fingerprint, Unusable(f"its server says more than {SAID:,} letters"), None))
            continue
        output = None if tool.output_schema is None else _schema(tool.output_schema)
        found.append(Declared(tool, fingerprint, _schema(tool.input_schema), output))
    return found


def _schema(given: Mapping[str, Any]) -> Schema | Unusable:
    try:
        return schema(given)
    # A schema is data of another's; whatever it breaks, only its tool is left out.
    except Exception as exc:  # noqa: BLE001 # it becomes the warning
        return exc if isinstance(exc, Unusable) else Unusable(str(exc))


def wanted(tool: str, settings: ServerSettings) -> bool:
    """Whether the configuration lets a tool of the server be offered, by the server's own name for it."""
    included = settings.include is None or any(starred(pattern, tool) for pattern in settings.include)
    return included and not any(starred(pattern, tool) for pattern in settings.exclude)


def offered(
    declared: Declared, *, name: str, server: str, settings: ServerSettings, beside: frozenset[str], handle: Handle
) -> Tool:
    """The tool under its name here. Raises ValueError for a schema that arguments cannot be checked against."""
    if isinstance(declared.given, Unusable):
        raise declared.given
    tool = declared.tool
    own = _line(tool.name)
    annotated = tool.annotations.title if tool.annotations is not None else None

    async def handler(params: Any, context: ToolContext) -> Any:
        return await handle(declared, params.args, context)

    def describe(params: Any) -> str:
        args = ", ".join(f"{key}={_short(value)}" for key, value in params.args.items())
        return f"{own} of the server {server}{': ' if args else ''}{args}"

    def confirmation(params: Any, verdict: Verdict) -> McpConfirmation:
        return McpConfirmation(f"Call {own} of the server {server}", server, own, params.args)

    return Tool(
        name=name,
        title=_line(tool.title or annotated or "") or own,
        description=_cut(tool.description or "", DESCRIPTION).strip() or f"{own}, of the server {server}.",
        handler=handler,
        given=declared.given,
        layer="mcp",
        effects=effects(tool, settings),
        # The call has its own, which stands still while a person is asked.
        timeout=None,
        profiles=PROFILES,
        on_collision="keep",
        server=server,
        remote=Remote(tool.name, declared.fingerprint, beside),
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


def _cut(text: str, letters: int) -> str:
    """The text cleaned and cut; of one that is very long, only the beginning is looked at."""
    return clean(text[: 4 * letters]).text[:letters]


def _line(text: str) -> str:
    return " ".join(_cut(text, TITLE).split())


def _short(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
