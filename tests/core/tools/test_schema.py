"""From a typed function to the schema that a model sees, and what its handler is given."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable
from time import process_time
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from handrail import NotFound, PluginError, Tool, ToolContext, Write, tool
from handrail.api.call import Invocation
from handrail.testing import open_test_session


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    x: int = Field(ge=0, description="From the left.")
    y: int = 0


class Taker(BaseModel):
    """What a tool with one model takes."""

    path: str = Field(description="Which file.")
    depth: int = 1


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    return tool()(function).input_schema


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    return schema_of(function)["properties"]


async def called(made: Tool, args: Any) -> Any:
    async with open_test_session(tools=[made]) as session:
        return await session.call(made.name, args)


async def plain(path: str, n: int = 3) -> None:
    """Do it."""


async def constrained(n: Annotated[int, Field(ge=1, le=9, description="limit")] = 5) -> None:
    """Do it."""


async def optional(x: int | None = None, y: str | int | None = None, z: int | None = 4) -> None:
    """Do it."""


async def chosen(action: Literal["click", "type"], colour: Colour = Colour.RED) -> dict[str, Any]:
    """Do it."""
    return {"action": action, "colour": colour.name}


async def nested(at: Point, maybe: Point | None = None) -> dict[str, Any]:
    """Do it."""
    return {"kind": type(at).__name__, "x": at.x}


async def example(name: Annotated[str, Field(examples=["Ada"], description="Who.")]) -> None:
    """Do it."""


async def titled(title: str, options: Annotated[dict[str, str], Field(default={"title": "kept"})]) -> None:
    """Do it."""


async def in_the_middle(a: int, context: ToolContext, b: int = 2) -> dict[str, Any]:
    """Do it."""
    return {"sum": a + b, "id": context.call_id}


async def nothing_at_all() -> str:
    """Say so."""
    return "nothing"


async def google(path: str, lines: int = 3) -> None:
    """Read a file.

    Reads it from the start.

    Args:
        path: Which file
            to read.
        lines: How many lines.
    """


async def numpy(path: str, lines: int = 3) -> None:
    """Read a file.

    Reads it from the start.

    Parameters
    ----------
    path : str
        Which file
        to read.
    lines : int
        How many lines.
    """


async def sphinx(path: str, lines: int = 3) -> None:
    """Read a file.

    Reads it from the start.

    :param path: Which file
        to read.
    :param lines: How many lines.
    """


async def both(path: Annotated[str, Field(description="The annotation.")]) -> None:
    """Read.

    Args:
        path: The docstring.
    """


async def one_model(taken: Taker) -> dict[str, Any]:
    """Take it."""
    return {"path": taken.path, "depth": taken.depth}


async def one_model_and_context(taken: Taker, context: ToolContext) -> dict[str, Any]:
    """Take it."""
    return {"path": taken.path, "id": context.call_id}


def test_a_default_makes_a_parameter_optional() -> None:
    assert schema_of(plain) == {
        "type": "object",
        "properties": {"path": {"type": "string"}, "n": {"type": "integer", "default": 3}},
        "required": ["path"],
        "additionalProperties": False,
    }


def test_constraints_description_and_default_of_an_annotation_are_kept() -> None:
    assert properties(constrained)["n"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "description": "limit",
        "default": 5,
    }


def test_an_optional_parameter_is_shown_without_its_null() -> None:
    shown = properties(optional)
    assert shown["x"] == {"type": "integer"}
    assert {"type": "null"} in shown["y"]["anyOf"]
    assert shown["z"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 4}


async def test_null_may_still_be_sent_for_an_optional_parameter() -> None:
    assert (await called(tool()(optional), {"x": None, "y": None, "z": None})).ok


async def test_literals_and_enums_are_shown_by_value_and_given_as_members() -> None:
    schema = schema_of(chosen)
    assert schema["properties"]["action"]["enum"] == ["click", "type"]
    assert schema["properties"]["colour"]["default"] == "red"
    assert schema["$defs"]["Colour"]["enum"] == ["red", "blue"]
    result = await called(tool()(chosen), {"action": "type", "colour": "blue"})
    assert (result["action"], result["colour"]) == ("type", "BLUE")


async def test_a_nested_model_keeps_its_constraints_and_arrives_as_an_instance() -> None:
    schema = schema_of(nested)
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert schema["$defs"]["Point"]["properties"]["x"]["minimum"] == 0
    assert schema["required"] == ["at"]
    assert (await called(tool()(nested), {"at": {"x": 3}}))["kind"] == "Point"


def test_examples_are_kept() -> None:
    assert properties(example)["name"]["examples"] == ["Ada"]


def test_titles_are_dropped_but_not_parameters_or_data_of_that_name() -> None:
    shown = properties(titled)
    assert shown["title"] == {"type": "string"}
    assert shown["options"]["default"] == {"title": "kept"}
    assert "title" not in schema_of(titled)


async def test_the_context_is_given_wherever_it_stands_and_never_shown() -> None:
    assert set(properties(in_the_middle)) == {"a", "b"}
    result = await called(tool()(in_the_middle), {"a": 1})
    assert (result["sum"], result["id"]) == (3, "c1")


async def test_a_model_cannot_send_the_context() -> None:
    result = await called(tool()(in_the_middle), {"a": 1, "context": {}})
    assert result.error_code == "invalid_arguments"


def test_a_tool_without_arguments_has_an_empty_object() -> None:
    assert schema_of(nothing_at_all) == {"type": "object", "properties": {}}


async def test_a_tool_without_arguments_refuses_any() -> None:
    assert (await called(tool()(nothing_at_all), {}))["content"] == "nothing"
    assert (await called(tool()(nothing_at_all), {"a": 1})).error_code == "invalid_arguments"


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_docstrings_describe_parameters(function: Callable[..., Any]) -> None:
    made = tool()(function)
    assert made.input_schema["properties"]["path"]["description"] == "Which file to read."
    assert made.input_schema["properties"]["lines"]["description"] == "How many lines."
    assert made.description == "Read a file.\n\nReads it from the start."


def test_an_annotation_describes_better_than_a_docstring() -> None:
    assert properties(both)["path"]["description"] == "The annotation."


async def context_by_keyword(taken: Taker, *, context: ToolContext) -> dict[str, Any]:
    """Take it."""
    return {"path": taken.path, "id": context.call_id}


async def context_first(context: ToolContext, taken: Taker) -> dict[str, Any]:
    """Take it."""
    return {"path": taken.path, "id": context.call_id}


@pytest.mark.parametrize("function", [one_model, one_model_and_context, context_by_keyword, context_first])
async def test_a_single_model_is_the_tools_own_parameters(function: Callable[..., Any]) -> None:
    made = tool()(function)
    assert made.input_schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Which file."},
            "depth": {"type": "integer", "default": 1},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    assert (await called(made, {"path": "a.txt"}))["path"] == "a.txt"


async def named_like_a_model(
    schema: str, copy: int, json: str = "j", model_name: str = "m", model_dump_path: str = "d", _x: int = 1
) -> dict[str, Any]:
    """Do it."""
    return {"all": [schema, copy, json, model_name, model_dump_path, _x]}


async def test_parameters_may_be_named_like_attributes_of_a_model() -> None:
    made = tool()(named_like_a_model)
    assert list(made.input_schema["properties"]) == ["schema", "copy", "json", "model_name", "model_dump_path", "_x"]
    result = await called(made, {"schema": "s", "copy": 2, "model_name": "n", "_x": 7})
    assert result["all"] == ["s", 2, "j", "n", "d", 7]


async def twins(_x: int, x_argument: int, _x_: int = 3) -> dict[str, Any]:
    """Do it."""
    return {"all": [_x, x_argument, _x_]}


async def test_renamed_parameters_never_meet_others() -> None:
    assert (await called(tool()(twins), {"_x": 1, "x_argument": 2}))["all"] == [1, 2, 3]


class Aliased(BaseModel):
    """Its argument has another name than its field."""

    file_path: str = Field(alias="filePath")


async def aliased(given: Aliased) -> None:
    """Write."""


async def hidden_path(_path: str, copy: str = "") -> None:
    """Write."""


@pytest.mark.parametrize(
    ("function", "argument"), [(aliased, "filePath"), (hidden_path, "_path"), (hidden_path, "copy")]
)
def test_an_effect_sees_the_value_of_the_argument_it_names(function: Callable[..., Any], argument: str) -> None:
    effect = Write("file", arg=argument)
    made = tool(effects=[effect])(function)
    args = dict.fromkeys(made.input_schema.get("required", ()), "kept") | {argument: "/etc/passwd"}
    assert Invocation(made, args, made.validate(args), "1").argument(effect) == "/etc/passwd"


async def starred(*numbers: int) -> None:
    """Do it."""


async def keyworded(**words: str) -> None:
    """Do it."""


async def positional(a: int, /) -> None:
    """Do it."""


async def untyped(a) -> None:
    """Do it."""


def blocking(a: int) -> None:
    """Do it."""


async def wordless(a: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (starred, "variadic positional"),
        (keyworded, "variadic keyword"),
        (positional, "positional-only"),
        (untyped, "has no type"),
        (blocking, "not an async function"),
        (wordless, "description"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_its_name(function: Callable[..., Any], told: str) -> None:
    with pytest.raises(PluginError, match=told) as refused:
        tool()(function)
    assert function.__name__ in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize("name", ["", "Click", "9lives", "with space", "a-b", "_x", "x" * 64])
def test_a_name_that_models_cannot_call_is_refused(name: str) -> None:
    with pytest.raises(PluginError, match="name"):
        tool(name=name)(plain)


async def handler(params: Any, context: ToolContext) -> None: ...


class Numbers(RootModel[list[int]]):
    """Not an object."""


class Generous(BaseModel):
    """Takes anything."""

    model_config = ConfigDict(extra="allow")


def test_a_schema_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(PluginError, match="RootModel"):
        Tool(name="sums", description="Sum.", handler=handler, params=Numbers)


def test_a_model_that_takes_unknown_keys_is_refused() -> None:
    with pytest.raises(PluginError, match="extra='allow'"):
        Tool(name="takes", description="Take.", handler=handler, params=Generous)


def test_an_effect_of_a_parameter_that_is_not_there_is_refused() -> None:
    with pytest.raises(PluginError, match="'file'"):
        tool(effects=[Write("file", arg="file")])(plain)


async def test_text_is_taken_as_a_number_where_it_is_one() -> None:
    assert (await called(tool()(plain), {"path": "a", "n": "5"})).ok


async def test_a_misfit_names_its_field_and_nothing_runs() -> None:
    ran: list[int] = []

    @tool()
    async def count(n: int, at: Point) -> None:
        """Count."""
        ran.append(n)

    result = await called(count, {"n": "zz", "at": {"x": -1}})
    assert result.error_code == "invalid_arguments"
    assert {problem["field"] for problem in result["error"]["details"]["problems"]} == {"n", "at.x"}
    assert not ran
    misspelt = await called(count, {"nn": 1, "at": {"x": 1}})
    assert misspelt["error"]["message"].startswith(
        "count: n: it is missing; nn: there is no such argument; did you mean"
    )


@pytest.mark.parametrize("args", [[], "x", 3, None, {"path": "a", 1: 2}])
async def test_arguments_that_are_no_object_are_refused(args: Any) -> None:
    assert (await called(tool()(plain), args)).error_code == "invalid_arguments"


Cell = bool | int | str | Point | None


class Table(BaseModel):
    """A part with cells of its own."""

    rows: list[list[Cell]] = []


@tool()
async def fill(cells: list[list[Cell]], tables: list[Table] = []) -> dict[str, int]:  # noqa: B006
    """Fill a table."""
    return {"rows": len(cells)}


@pytest.mark.parametrize(
    "args",
    [
        pytest.param({"cells": [[[]] * 300_000]}, id="in-one-row"),
        pytest.param({"cells": [[[]] for _ in range(150_000)]}, id="in-many-rows"),
        pytest.param({"cells": [], "tables": [{"rows": [[[]] * 300_000]}]}, id="in-a-model"),
        pytest.param({"cells": [], **{f"k{number}": 0 for number in range(50_000)}}, id="names"),
        pytest.param({"cells": [[{"x" * 1_000_000: 0}]]}, id="a-long-name"),
    ],
)
async def test_a_misfit_in_large_arguments_is_a_small_error(args: dict[str, Any]) -> None:
    began = process_time()
    result = await called(fill, args)
    assert result.error_code == "invalid_arguments"
    assert len(json.dumps(result)) < 50_000
    assert len(result["error"]["details"]["problems"]) <= 20
    assert process_time() - began < 10


async def test_large_arguments_that_fit_are_taken_and_too_large_ones_are_not() -> None:
    rows = [[1, None, {"x": 1}]] * 5_000
    assert (await called(fill, {"cells": rows, "tables": [{"rows": rows}]}))["rows"] == 5_000
    result = await called(fill, {"cells": [[None] * 500_000]})
    assert "more than 500000 values" in result["error"]["message"]


async def test_an_error_of_a_tool_is_of_a_bounded_size() -> None:
    @tool()
    async def fail() -> None:
        """Fail."""
        raise NotFound("x" * 1_000_000, details={"many": [0] * 100_000, "long": "y" * 1_000_000, "name": "z"})

    result = await called(fail, {})
    assert result["error"]["details"] == {"name": "z", "left_out": ["many", "long"]}
    assert len(json.dumps(result)) < 100_000
