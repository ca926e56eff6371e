"""Schemas said in what a vendor understands: nothing is lost on the way, and what cannot be said is refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from handrail import PluginError, Tool, declare, tool, without_nulls
from handrail.tools.declarations import DialectName


class Foreign:
    """A schema as another server gives it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.json = schema

    def problems(self, args: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
        return []


def given(schema: Mapping[str, Any], name: str = "foreign") -> Tool:
    async def handler(params: Any, context: Any) -> None: ...

    return Tool(name=name, description="Do it.", handler=handler, given=Foreign({"type": "object", **schema}))


def gemini(prop: Any, **root: Any) -> dict[str, Any]:
    """What one property becomes."""
    declared = declare(given({"properties": {"it": prop}, **root}), dialect="gemini")
    return declared["parameters"]["properties"]["it"]


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "value": {"type": "string"}}}


@pytest.mark.parametrize(
    ("prop", "said"),
    [
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "STRING", "nullable": True}, id="or-null"
        ),
        pytest.param({"type": ["integer", "null"]}, {"type": "INTEGER", "nullable": True}, id="list-with-null"),
        pytest.param(
            {"type": ["integer", "string"], "description": "An id."},
            {"anyOf": [{"type": "INTEGER", "description": "An id."}, {"type": "STRING"}]},
            id="list-of-types",
        ),
        pytest.param({"const": "a"}, {"type": "STRING", "enum": ["a"]}, id="const"),
        pytest.param({"enum": ["a", "b", None]}, {"type": "STRING", "enum": ["a", "b"], "nullable": True}, id="enum"),
        pytest.param(
            {"type": "integer", "enum": [1, 2], "description": "Which."},
            {"type": "INTEGER", "description": "Which. One of 1, 2."},
            id="enum-of-numbers",
        ),
        pytest.param({"type": "integer", "exclusiveMinimum": 0}, {"type": "INTEGER", "minimum": 1}, id="above"),
        pytest.param(
            {"type": "number", "exclusiveMaximum": 1.5}, {"type": "NUMBER", "description": "Less than 1.5."}, id="below"
        ),
        pytest.param(
            {"type": "string", "default": "x", "description": "A word"},
            {"type": "STRING", "description": 'A word. Default: "x".'},
            id="default",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "OBJECT", "description": "Any keys, with values of type string."},
            id="map",
        ),
        pytest.param(
            {"type": "string", "format": "uri"}, {"type": "STRING", "description": 'Format: "uri".'}, id="format"
        ),
        pytest.param({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}, id="time"),
        pytest.param(
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}]},
            {"type": "ARRAY", "items": {"type": "NUMBER"}},
            id="tuple",
        ),
        pytest.param(
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {"type": "ARRAY", "items": {"type": "STRING"}, "description": "uniqueItems: true."},
            id="unknown-keyword",
        ),
        pytest.param(
            {"allOf": [{"type": "string", "minLength": 2}, {"maxLength": 3}], "description": "Short."},
            {"type": "STRING", "minLength": 2, "maxLength": 3, "description": "Short."},
            id="all-of",
        ),
    ],
)
def test_gemini_is_told_in_its_own_words(prop: dict[str, Any], said: dict[str, Any]) -> None:
    assert gemini(prop) == said


def test_references_are_written_out_and_a_shape_in_itself_is_named() -> None:
    found = gemini({"$ref": "#/$defs/Node", "description": "A list."}, **{"$defs": {"Node": NODE}})
    assert found["description"] == "A list."
    assert found["properties"]["value"] == {"type": "STRING"}
    assert found["properties"]["next"] == {"type": "OBJECT", "description": "It is a Node. Any keys may be given."}


@pytest.mark.parametrize("prop", [True, {}, {"description": "Whatever."}])
def test_a_value_of_any_kind_is_one_of_all_kinds(prop: Any) -> None:
    assert [choice["type"] for choice in gemini(prop)["anyOf"]] == ["STRING", "NUMBER", "BOOLEAN", "OBJECT", "ARRAY"]


def test_a_tool_without_parameters_has_no_schema_for_gemini_and_an_empty_one_elsewhere() -> None:
    @tool()
    async def look() -> None:
        """Look."""

    assert declare(look, dialect="gemini") == {"name": "look", "description": "Look."}
    assert declare(look, dialect="mcp")["inputSchema"] == {"type": "object", "properties": {}}
    assert declare(look, dialect="openai", strict=True)["function"]["parameters"]["required"] == []


@pytest.mark.parametrize("dialect", ["openai", "openai_responses", "anthropic"])
def test_arguments_of_several_shapes_are_one_with_a_sentence_on_them(dialect: DialectName) -> None:
    choices = [
        {"properties": {"id": {"type": "string"}}, "required": ["id"]},
        {"properties": {"name": {"type": "string"}}, "required": ["name"]},
    ]
    found = given({"properties": {"all": {"type": "boolean"}}, "oneOf": choices})
    told = declare(found, dialect=dialect)
    told = told.get("function", told)
    assert told["description"] == "Do it. One of these is needed: id; or name."
    schema = told.get("parameters") or told["input_schema"]
    assert schema.keys() == {"type", "properties", "required"}
    assert list(schema["properties"]) == ["all", "id", "name"]
    assert declare(found, dialect="mcp")["inputSchema"]["oneOf"] == choices


def test_what_is_declared_leaves_the_tool_as_it_was() -> None:
    schema = {"properties": {"it": {"anyOf": [{"enum": ["a", None]}, {"type": "integer", "exclusiveMinimum": 1}]}}}
    found = given(schema)
    before = repr(found.input_schema)
    for dialect in ("openai", "anthropic", "gemini", "mcp"):
        declare(found, dialect=dialect)
    assert repr(found.input_schema) == before


# Strict


def strictly(prop: Any, **root: Any) -> dict[str, Any]:
    found = given({"properties": {"it": prop}, **root})
    return declare(found, dialect="openai_responses", strict=True)["parameters"]


def test_strictly_every_parameter_is_required_and_an_optional_one_may_be_null() -> None:
    schema = strictly({"type": "integer", "default": 3})
    assert schema["required"] == ["it"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["it"] == {
        "description": "Default: 3.",
        "anyOf": [{"type": "integer"}, {"type": "null"}],
    }


@pytest.mark.parametrize("prop", [{}, {"type": "object"}, {"type": "object", "additionalProperties": True}])
def test_what_cannot_be_strict_is_refused_by_name(prop: Any) -> None:
    with pytest.raises(PluginError, match=r"'foreign' cannot be declared strictly"):
        strictly(prop)


def test_nulls_for_what_was_left_out_are_taken_out_and_others_stay() -> None:
    item = {
        "type": "object",
        "properties": {"value": {"type": ["string", "null"]}, "note": {"type": "string"}},
        "required": ["value"],
    }
    schema = {"$defs": {"Item": item}, "properties": {"items": {"items": {"$ref": "#/$defs/Item"}}, "n": {}, "m": {}}}
    args = {"items": [{"value": None, "note": None}, {"value": "x", "note": "y"}], "n": None, "m": 1}
    assert without_nulls(given(schema), args) == {"items": [{"value": None}, {"value": "x", "note": "y"}], "m": 1}


# Names


@pytest.mark.parametrize("dialect", ["gemini", "anthropic", "mcp"])
def test_strict_is_said_to_be_openais(dialect: DialectName) -> None:
    with pytest.raises(PluginError, match="strictly"):
        declare(given({}), dialect=dialect, strict=True)


def test_an_unknown_dialect_is_an_error_naming_those_there_are() -> None:
    with pytest.raises(PluginError) as caught:
        declare(given({}), dialect=cast("DialectName", "cohere"))
    assert "anthropic" in (caught.value.hint or "")


def test_a_parameter_that_anthropic_would_refuse_is_refused_naming_the_tool() -> None:
    with pytest.raises(PluginError, match=re.escape("'foreign': the parameter 'größe in cm'")):
        declare(given({"properties": {"größe in cm": {"type": "number"}}}), dialect="anthropic")
