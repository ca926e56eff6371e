"""Every real tool, declared to every vendor: their own types take it, and the pages that show it are up to date."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from anthropic.types import ToolParam
from google.genai import types as gemini
from mcp import types as mcp
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionTool
from pydantic import TypeAdapter
from scripts import make_docs

import handrail
from handrail import PluginError, Tool, declare
from handrail.api.model_families import DEFAULT_FAMILY, MODEL_FAMILIES
from handrail.config.settings import ToolSettings
from handrail.testing import open_test_session
from handrail.tools.declarations import DIALECTS, DialectName
from handrail_accessibility.backend import AccessibilityBackend
from handrail_skills.skill_tools import SKILL_TOOLS as SKILLS

NAMES = [DEFAULT_FAMILY, *(family.name for family in MODEL_FAMILIES)]
TOOLS = [owned.tool for owned in asyncio.run(make_docs.owned_tools())]
VALIDATORS: dict[str, Any] = {
    "openai": TypeAdapter(ChatCompletionFunctionToolParam).validate_python,
    "openai_responses": lambda declared: FunctionTool.model_validate(declared, strict=True, extra="forbid"),
    "anthropic": TypeAdapter(ToolParam).validate_python,
    "gemini": gemini.FunctionDeclaration.model_validate,
    "mcp": lambda declared: mcp.Tool.model_validate(declared, extra="forbid"),
}


def schema_of(declared: dict[str, Any]) -> dict[str, Any]:
    told = declared.get("function", declared)
    return next((told[key] for key in ("parameters", "input_schema", "inputSchema") if key in told), {})


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all the schemas in it."""
    yield schema
    below = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("$defs", {}).values()]
    for node in [*below, *([schema["items"]] if "items" in schema else [])]:
        yield from nodes(node)


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_vendors_own_types_take_every_tool(dialect: DialectName, family: str) -> None:
    for tool in TOOLS:
        declared = declare(tool, dialect=dialect, family=family)
        VALIDATORS[dialect](declared)
        assert json.loads(json.dumps(declared)) == declared
        if dialect != "gemini":
            jsonschema.Draft202012Validator.check_schema(schema_of(declared))
            assert schema_of(declared)["type"] == "object"


@pytest.mark.parametrize("family", NAMES)
def test_gemini_is_told_nothing_that_its_schema_lacks(family: str) -> None:
    known = {field.alias or name for name, field in gemini.Schema.model_fields.items()}
    lacking = {"additionalProperties", "defs", "ref", "default", "title", "example"}
    for tool in TOOLS:
        for node in nodes(schema_of(declare(tool, dialect="gemini", family=family))):
            assert node.keys() <= known - lacking
            assert "anyOf" not in node or node.keys() == {"anyOf"}
            assert "enum" not in node or node["type"] == "STRING"
            assert node.get("type") != "ARRAY" or "items" in node


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_can_be_declared_strictly_whose_arguments_all_have_names(tool: Tool) -> None:
    if any(node.get("type") == "object" and "properties" not in node for node in nodes(tool.input_schema)):
        with pytest.raises(PluginError, match="keys that are not named"):
            declare(tool, dialect="openai", strict=True)
        return
    declared = declare(tool, dialect="openai", strict=True)
    VALIDATORS["openai"](declared)
    for node in nodes(schema_of(declared)):
        if node.get("type") == "object":
            assert node["required"] == list(node["properties"])
            assert node["additionalProperties"] is False
        assert not node.keys() & {"$ref", "oneOf", "allOf", "default"}


def test_what_the_default_profile_declares_fits_into_eight_thousand_tokens() -> None:
    able = AccessibilityBackend.capabilities
    seen = [tool for tool in (*TOOLS, *SKILLS) if not tool.by_hand and (not tool.requires or tool.requires & able)]
    shown = [tool for tool in seen if ToolSettings().profile in tool.profiles and not tool.loadable]
    listed = [{"name": t.name, "description": t.description, "input_schema": t.input_schema} for t in shown]
    for declared in (listed, *([declare(tool, dialect="mcp", family=family) for tool in shown] for family in NAMES)):
        assert sum(len(json.dumps(each, ensure_ascii=False)) for each in declared) / 4 <= 8_000


async def test_tools_that_look_into_artifacts_are_declared_like_all_others() -> None:
    @handrail.tool(artifact="json")
    async def report() -> str:
        """Give a report."""
        return '{"a": 1}'

    async with open_test_session(tools=[report]) as session:
        await session.call("report")
        shown = [each for each in await session.tools() if each.layer == "artifact"]
        assert shown
        for each in shown:
            for dialect in DIALECTS:
                VALIDATORS[dialect](declare(each, dialect=dialect))
            VALIDATORS["openai"](declare(each, dialect="openai", strict=True))
