"""An agent of Pydantic AI with a session's tools, and their own models for tests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from handrail import Session
from handrail.adapters.pydantic_ai import HandrailToolset
from handrail.testing import open_test_session

from .offered import PIXEL, TOOLS


class Scripted:
    """A model that makes the calls it is given, one step each, and remembers what it was shown."""

    def __init__(self, *calls: ToolCallPart) -> None:
        self._calls = list(calls)
        self.shown: list[list[str]] = []
        self.returned: list[Any] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.shown.append([tool.name for tool in info.function_tools])
        self.returned += [part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        return ModelResponse(parts=[self._calls.pop(0) if self._calls else TextPart("done")])


async def run(session: Session, *calls: ToolCallPart) -> Scripted:
    model = Scripted(*calls)
    agent = Agent(FunctionModel(model), toolsets=[HandrailToolset(session)])
    assert (await agent.run("go")).output == "done"
    return model


async def test_their_test_model_calls_every_tool_and_no_failure_ends_the_run() -> None:
    async with open_test_session(tools=TOOLS) as session:
        called = TestModel(call_tools=["add", "look", "change", "fetch"])
        result = await Agent(called, toolsets=[HandrailToolset(session)]).run("go")
        assert set(json.loads(result.output)) == {"add", "look", "change", "fetch"}
        assert [record.call.name for record in session.history.last(4)] == ["add", "look", "change", "fetch"]


async def test_a_tool_that_is_loaded_is_there_at_the_next_step() -> None:
    async with open_test_session(tools=TOOLS) as session:
        model = await run(session, ToolCallPart("fetch", {}), ToolCallPart("spare", {}))
    assert ["spare" in names for names in model.shown] == [False, True, True]
    assert model.shown[1] == [*model.shown[0], "spare"]
    assert json.loads(model.returned[1])["content"] == "spare"


@pytest.mark.parametrize(
    ("call", "code"),
    [(ToolCallPart("add", {"a": "x"}), "invalid_arguments"), (ToolCallPart("change", {}), "no_confirmer")],
)
async def test_errors_are_data(call: ToolCallPart, code: str) -> None:
    async with open_test_session(tools=TOOLS) as session:
        model = await run(session, call)
    assert code in model.returned[0]


async def test_what_nobody_vouches_for_is_in_its_envelope_and_pictures_stand_beside_it() -> None:
    async with open_test_session(tools=TOOLS) as session:
        model = await run(session, ToolCallPart("look", {}, tool_call_id="mine"), ToolCallPart("add", {"a": 1, "b": 2}))
        assert session.history.last(2)[0].call.call_id == "mine"
    (text, picture), plain = model.returned
    assert text.startswith("<untrusted ")
    assert 'tool="look" call="mine"' in text
    assert isinstance(picture, BinaryContent)
    assert (picture.data, picture.media_type) == (PIXEL, "image/png")
    assert json.loads(plain)["sum"] == 3


async def test_the_model_is_told_what_its_family_is_and_the_run_is_a_turn() -> None:
    told: list[str | None] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.extend(tool.description for tool in info.function_tools if tool.name == "add")
        return ModelResponse(parts=[TextPart("done")])

    async with open_test_session(tools=TOOLS) as session:
        session.turn_stash.set("word", 1)
        for name in ("openai/gpt-5", "nobody"):
            await Agent(FunctionModel(model, model_name=name), toolsets=[HandrailToolset(session)]).run("go")
        assert session.turn_stash.all() == {}
    assert told == ["Add, GPT.", "Add two numbers. Returns sum."]
