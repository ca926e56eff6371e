"""Agents of Google ADK whose models are scripts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import Agent
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types
from pydantic import PrivateAttr

Call = tuple[str, dict[str, Any]]


class Scripted(BaseLlm):
    """A model that makes the calls of one step after another, says "done", and remembers what it was sent."""

    model: str = "scripted"
    _steps: list[list[Call]] = PrivateAttr(default_factory=list)
    _requests: list[LlmRequest] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, *steps: list[Call], model: str = "scripted") -> Scripted:
        scripted = cls(model=model)
        scripted._steps = list(steps)
        return scripted

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self._requests.append(llm_request.model_copy(update={"contents": list(llm_request.contents)}))
        calls = self._steps.pop(0) if self._steps else []
        parts = [types.Part.from_function_call(name=name, args=args) for name, args in calls]
        content = types.Content(role="model", parts=parts or [types.Part(text="done")])
        yield LlmResponse(content=content)

    @property
    def requests(self) -> list[LlmRequest]:
        return self._requests

    @property
    def shown(self) -> list[list[str]]:
        """The names of the tools that were declared, for each request."""
        return [[said.name or "" for said in declarations(request)] for request in self.requests]


def declarations(request: LlmRequest) -> list[types.FunctionDeclaration]:
    return [
        said
        for tool in request.config.tools or []
        if isinstance(tool, types.Tool)
        for said in tool.function_declarations or []
    ]


class Chat:
    """A conversation with one agent, in one ADK session."""

    def __init__(self, toolset: BaseToolset, model: Scripted, *, name: str = "hands", **services: Any) -> None:
        self.model = model
        self.agent = Agent(name=name, model=model, tools=[toolset])
        self.runner = Runner(
            app_name="app",
            agent=self.agent,
            **{"session_service": InMemorySessionService(), "auto_create_session": True, **services},
        )

    async def say(self, *parts: types.Part, session: str = "s") -> list[Event]:
        message = types.Content(role="user", parts=list(parts) or [types.Part(text="go")])
        run = self.runner.run_async(user_id="u", session_id=session, new_message=message)
        return [event async for event in run]

    async def state(self) -> dict[str, Any]:
        session = await self.runner.session_service.get_session(app_name="app", user_id="u", session_id="s")
        assert session is not None
        return dict(session.state)


def results(events: list[Event]) -> list[dict[str, Any]]:
    return [response.response or {} for event in events for response in event.get_function_responses()]


def questions(events: list[Event]) -> list[types.FunctionCall]:
    return [call for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation"]


def answered(question: types.FunctionCall, confirmed: bool, payload: Any = None) -> types.Part:
    response = types.FunctionResponse(
        id=question.id, name=question.name, response={"confirmed": confirmed, "payload": payload}
    )
    return types.Part(function_response=response)


def last_text(events: list[Event]) -> str | None:
    content = events[-1].content
    return content.parts[0].text if content and content.parts else None
