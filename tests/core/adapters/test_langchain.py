"""A chat model of LangChain with a session's tools, step by step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from handrail import Session, ToolResult
from handrail.adapters import langchain
from handrail.testing import open_test_session

from .offered import TOOLS


class Scripted(GenericFakeChatModel):
    """Their fake model, which remembers the tools that were bound to it."""

    bound: list[list[str]] = Field(default_factory=list)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Scripted:
        self.bound.append([convert_to_openai_tool(tool)["function"]["name"] for tool in tools])
        return self


def calling(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"id-{name}", "type": "tool_call"}])


async def run(session: Session, *steps: AIMessage) -> tuple[Scripted, list[ToolMessage]]:
    """The loop that an agent is: bind what is there, ask the model, make its calls, until it makes none."""
    model = Scripted(messages=iter([*steps, AIMessage("done")]), bound=[])
    messages: list[BaseMessage] = [HumanMessage("go")]
    while True:
        tools = {tool.name: tool for tool in await langchain.tools(session)}
        answer = await model.bind_tools(list(tools.values())).ainvoke(messages)
        messages.append(answer)
        if not answer.tool_calls:
            return model, [message for message in messages if isinstance(message, ToolMessage)]
        messages += [await tools[call["name"]].ainvoke(call) for call in answer.tool_calls]


async def test_a_tool_that_is_loaded_is_there_at_the_next_step() -> None:
    async with open_test_session(tools=TOOLS) as session:
        model, messages = await run(session, calling("fetch"), calling("spare"))
    assert ["spare" in names for names in model.bound] == [False, True, True]
    assert model.bound[1] == [*model.bound[0], "spare"]
    assert [message.status for message in messages] == ["success", "success"]
    assert messages[0].tool_call_id == "id-fetch"


async def test_a_result_is_text_and_the_artifact_of_its_message() -> None:
    async with open_test_session(tools=TOOLS) as session:
        _, (message,) = await run(session, calling("add", a=2))
    assert json.loads(message.text)["sum"] == 3
    assert isinstance(message.artifact, ToolResult)


async def test_what_nobody_vouches_for_is_in_its_envelope_and_pictures_stand_beside_it() -> None:
    async with open_test_session(tools=TOOLS) as session:
        _, (message,) = await run(session, calling("look"))
    assert message.text.startswith("<untrusted ")
    text, picture = message.content_blocks
    assert (text["type"], picture["type"]) == ("text", "image")


@pytest.mark.parametrize(
    ("call", "code"), [(calling("add", a="x"), "invalid_arguments"), (calling("change"), "no_confirmer")]
)
async def test_errors_are_data(call: AIMessage, code: str) -> None:
    async with open_test_session(tools=TOOLS) as session:
        _, (message,) = await run(session, call)
    assert message.status == "error"
    assert json.loads(message.text)["error"]["code"] == code


async def test_a_model_is_told_what_its_family_is_and_the_schema_as_it_stands() -> None:
    async with open_test_session(tools=TOOLS) as session:
        found: list[BaseTool] = await langchain.tools(session, model="gpt-5")
        told = convert_to_openai_tool(next(each for each in found if each.name == "add"))["function"]
    assert told["description"] == "Add, GPT."
    assert told["parameters"]["required"] == ["a"]
    assert told["parameters"]["properties"]["b"] == {"default": 1, "type": "integer"}
