"""Declarations of a tool for each vendor's API and each model family, from a single definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from handrail.api.model_families import DEFAULT_FAMILY, description_for, schema_for
from handrail.errors import PluginError
from handrail.json_types import is_list, is_mapping
from handrail.tools import schema_dialects
from handrail.tools.schema_dialects import SchemaDialect, fit_schema

if TYPE_CHECKING:
    from handrail.api.tool import Tool

DialectName = Literal["openai", "openai_responses", "anthropic", "gemini", "mcp"]
DIALECTS: Mapping[DialectName, SchemaDialect] = {
    "openai": schema_dialects.OPENAI,
    "openai_responses": schema_dialects.OPENAI,
    "anthropic": schema_dialects.ANTHROPIC,
    "gemini": schema_dialects.GEMINI,
    "mcp": schema_dialects.MCP,
}
STRICT_DIALECTS: Mapping[DialectName, SchemaDialect] = {
    "openai": schema_dialects.OPENAI_STRICT,
    "openai_responses": schema_dialects.OPENAI_STRICT,
}


def declare(tool: Tool, *, dialect: DialectName, family: str = DEFAULT_FAMILY, strict: bool = False) -> dict[str, Any]:
    """Return the tool's declaration as JSON for the vendor's API, in the variant for the model family (`family_of`).

    What a dialect cannot express in its schema is added to descriptions. `strict`: OpenAI guarantees valid arguments;
    omitted optional ones are then null, and `without_nulls` removes them again. Raises `PluginError`, which names the
    tool, if it cannot be declared.
    """
    known = (STRICT_DIALECTS if strict else DIALECTS).get(dialect)
    if known is None:
        only = (
            f"only {', '.join(STRICT_DIALECTS)} can be strict"
            if strict
            else f"there are {', '.join(get_args(DialectName))}"
        )
        raise PluginError(f"a tool cannot be declared for {dialect!r}{' strictly' if strict else ''}", hint=only)
    if not known.name.fullmatch(tool.name):
        raise PluginError(f"tool {tool.name!r} cannot be declared for {dialect}: names fit {known.name.pattern!r}")
    schema = fit_schema(schema_for(tool, family), known, tool=tool.name)
    # What is said of the arguments as a whole is said of the tool.
    said = " ".join(part for part in (description_for(tool, family), schema.pop("description", "")) if part)
    return _format_declaration(
        dialect, {"name": tool.name, "description": said}, schema, title=tool.title, strict=strict
    )


def _format_declaration(
    dialect: DialectName, told: dict[str, Any], schema: dict[str, Any], *, title: str, strict: bool
) -> dict[str, Any]:
    guarantee = {"strict": True} if strict else {}
    match dialect:
        case "openai":
            return {"type": "function", "function": {**told, "parameters": schema, **guarantee}}
        case "openai_responses":
            return {"type": "function", **told, "parameters": schema, "strict": strict}
        case "anthropic":
            return {**told, "input_schema": schema}
        case "gemini":
            # An object without properties is refused there.
            return {**told, "parameters": schema} if schema.get("properties") else told
        case "mcp":
            return {"name": told["name"], "title": title, "description": told["description"], "inputSchema": schema}


def without_nulls(tool: Tool, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a strictly declared call without the nulls that represent omitted ones."""
    return cast("dict[str, Any]", _drop_nulls(tool.input_schema, args, tool.input_schema))


def _drop_nulls(schema: Mapping[str, Any], value: Any, root: Mapping[str, Any]) -> Any:
    shapes = _list_shapes(schema, root)
    if is_list(value):
        items: Mapping[str, Any] = {"anyOf": [shape["items"] for shape in shapes if "items" in shape]}
        return [_drop_nulls(items, item, root) for item in value]
    if not is_mapping(value):
        return value
    kept: dict[str, Any] = {}
    for key, item in value.items():
        owners = [shape for shape in shapes if key in shape.get("properties", {})]
        if item is None and owners and not any(key in shape.get("required", ()) for shape in owners):
            continue
        below = {"anyOf": [shape["properties"][key] for shape in owners]}
        kept[key] = _drop_nulls(below, item, root)
    return kept


def _list_shapes(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schema and all it refers to or offers as alternatives, except in its properties and items."""
    found: list[Mapping[str, Any]] = []
    waiting, seen = [schema], set[str]()
    while waiting:
        shape = waiting.pop()
        found.append(shape)
        for keyword in ("anyOf", "oneOf", "allOf"):
            waiting.extend(shape.get(keyword, ()))
        ref = shape.get("$ref")
        if isinstance(ref, str) and ref not in seen:
            seen.add(ref)
            waiting.append(schema_dialects.resolve_ref(ref, root) or {})
    return found
