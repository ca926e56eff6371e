"""Families of models, by the names that vendors and gateways give them, and what a tool tells one family otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from handrail.errors import PluginError
from handrail.text import format_suggestion

if TYPE_CHECKING:
    from handrail.api.tool import Tool

DEFAULT_FAMILY = "default"


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """Family of models that receive the same declarations.

    Where a tool has no variation for the family, that of the family `within` applies.
    """

    name: str
    pattern: str
    within: str | None = None


# The first that fits counts. A name may follow a provider's: openai/gpt-5, models/gemini-3-pro, us.anthropic.claude-sonnet-4-5-v1:0.
MODEL_FAMILIES = (
    ModelFamily("gemini-3", r"gemini-3(?!\d)", within="gemini"),
    ModelFamily("gemini", r"gemini-"),
    ModelFamily("claude", r"claude(?![a-z0-9])"),
    ModelFamily("gpt", r"(?:chatgpt|codex|gpt)-|computer-use-preview|o\d+(?![a-z0-9])"),
)
FAMILIES_BY_NAME: Mapping[str, ModelFamily] = {family.name: family for family in MODEL_FAMILIES}


@dataclass(frozen=True, kw_only=True)
class Variation:
    """Variation of a tool's declaration for one model family.

    It consists of data only, since the tool's behavior and the arguments it accepts stay the same.

    `parameters`, by name: keywords merged into the parameter's schema, or None to omit an optional parameter.
    """

    description: str | None = None
    parameters: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict[str, Mapping[str, Any] | None])


def family_of(model: str | None) -> str:
    """Return the family of a model, given its name or the family's own; "default" for an unknown model."""
    name = (model or "").strip().lower()
    found = (family.name for family in MODEL_FAMILIES if family.name == name or _is_family_name(family, name))
    return next(found, DEFAULT_FAMILY)


def _is_family_name(family: ModelFamily, name: str) -> bool:
    return re.search(rf"(?:^|[/:.@])(?:{family.pattern})", name) is not None


def find_variation(tool: Tool, family: str) -> Variation:
    """Return the tool's variation for the family; an empty one if there is none."""
    return next((tool.families[name] for name in _iter_lineage(family) if name in tool.families), Variation())


def _iter_lineage(family: str) -> Iterator[str]:
    known = FAMILIES_BY_NAME.get(family)
    while known is not None:
        yield known.name
        known = FAMILIES_BY_NAME.get(known.within or "")


def description_for(tool: Tool, family: str = DEFAULT_FAMILY) -> str:
    """Return the tool's description for the family."""
    return find_variation(tool, family).description or tool.description


def schema_for(tool: Tool, family: str = DEFAULT_FAMILY) -> dict[str, Any]:
    """Return the JSON Schema of the tool's arguments for the family."""
    varied = find_variation(tool, family).parameters
    if not varied:
        return tool.input_schema
    properties: dict[str, Any] = {}
    for name, told in tool.input_schema["properties"].items():
        changed = varied.get(name, {})
        if changed is not None:
            properties[name] = {**told, **changed}
    return {**tool.input_schema, "properties": properties}


def check_families(tool: Tool) -> None:
    """Raise `PluginError` for a variation of an unknown family or parameter, or one that omits a required parameter."""
    for family, varied in tool.families.items():
        if family not in FAMILIES_BY_NAME:
            raise PluginError(
                f"tool {tool.name!r}: there is no model family {family!r}{format_suggestion(family, FAMILIES_BY_NAME)}",
                hint=f"the families are {', '.join(FAMILIES_BY_NAME)}",
            )
        for name, changed in varied.parameters.items():
            if name not in tool.fields:
                raise PluginError(
                    f"tool {tool.name!r}: the family {family!r} is told of a parameter {name!r}, which it does not have"
                )
            if changed is None and tool.params.model_fields[tool.fields[name]].is_required():
                raise PluginError(
                    f"tool {tool.name!r}: the family {family!r} is not told of {name!r}, which is required"
                )
