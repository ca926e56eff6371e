"""Handrail's tools for an agent of Google ADK."""

from __future__ import annotations

import logging
import mimetypes
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset, ToolPredicate
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from handrail import Session, Tool, ToolCall, ToolResult, declare, family_of
from handrail.api.approval import Confirmer
from handrail.artifacts.store import Artifact
from handrail.errors import Downstream, HandrailError
from handrail.pipeline.finalize import refuse_duplicate_id
from handrail.pipeline.scheduler import add_wait_argument
from handrail.sanitize.model_output import BASE_INSTRUCTIONS
from handrail.session.open_session import open_configured_runtime
from handrail_adk import adk_confirmation
from handrail_adk.recent_pictures import keep_newest_pictures
from handrail_adk.session_pool import PooledSession, SessionPool
from handrail_adk.state_snapshot import asked_key
from handrail_adk.tool_responses import build_failure, build_response

if TYPE_CHECKING:
    from handrail.session.runtime import Runtime

log = logging.getLogger(__name__)

DEFAULT_PICTURES = 2
# A larger artifact stays where the session keeps it.
MAX_SAVED = 10 * 2**20
NO_PARAMETERS: dict[str, Any] = {"type": "OBJECT", "properties": {}}


class HandrailToolset(BaseToolset):
    """Toolset with the tools of a Handrail session, listed anew at each step: `Agent(…, tools=[HandrailToolset()])`.

    Each agent in each ADK session has its own Handrail session, with the configuration and plugins that the command
    `handrail` finds here; `settings` are the arguments of `handrail.open`. These sessions end with the toolset, which a
    runner closes. With `session` or `runtime`, the host's own are used, and the host closes them.

    A call that needs approval is passed to `confirm`, or to the confirmer of `session`; without one, to ADK's own tool
    confirmation. `additional_tools` are the host's own tools; those that are `loadable` stay hidden until a skill or
    `session.load_tools` names them. `pictures` is the number of newest results whose pictures are sent to a model. The
    outcome of a call is always data for the model: no exception is raised.
    """

    def __init__(
        self,
        session: Session | None = None,
        *,
        runtime: Runtime | None = None,
        confirm: Confirmer | None = None,
        additional_tools: Iterable[Tool] = (),
        pictures: int = DEFAULT_PICTURES,
        tool_filter: ToolPredicate | list[str] | None = None,
        tool_name_prefix: str | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        # ADK would otherwise show what it was given at the first step of a run in all its steps.
        self._use_invocation_cache = False
        if settings and (session is not None or runtime is not None):
            raise HandrailError(f"{', '.join(settings)}: a session or runtime that is given has its own settings")
        if session is not None and confirm is not None:
            raise HandrailError("a session that is given has its own confirmer", hint="set session.confirmer")
        if session is not None and runtime is not None:
            raise HandrailError("give a session or a runtime, not both")
        self._pictures = pictures
        self._holds = SessionPool(
            session=session,
            runtime=None if session is not None else _open_runtime(runtime, settings),
            confirm=confirm,
            tools=tuple(additional_tools),
        )

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """Begin a model step and return its tools."""
        hold = await self._holds.of(readonly_context)
        hold.begin(readonly_context.invocation_id if readonly_context else None)
        shown: list[BaseTool] = [HandrailTool(self, tool) for tool in await hold.session.tools()]
        return [tool for tool in shown if self._is_tool_selected(tool, readonly_context)]

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Add instructions for reading results, and remove old pictures."""
        llm_request.append_instructions([BASE_INSTRUCTIONS])
        family = family_of(llm_request.model)
        llm_request.contents = keep_newest_pictures(llm_request.contents, keep=self._pictures, family=family)

    async def close(self) -> None:
        """End the sessions, with all that runs in them."""
        await self._holds.close()

    async def session(self, context: ReadonlyContext | None = None) -> Session:
        """Return the Handrail session of this agent in this ADK session, for callbacks and other tools of the host."""
        return (await self._holds.of(context)).session

    async def call(self, name: str, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Make a call for the model, and return the response to it."""
        try:
            hold = await self._holds.of(context)
            result = await self._called(hold, name, args, context)
            await _save_artifacts(hold, context)
            await hold.keep(context)
            return await build_response(result, hold.session.artifacts)
        except HandrailError as exc:
            return build_failure(exc, name)
        # What is raised here would end the agent's run.
        except Exception as exc:
            log.exception("the call of %s failed", name)
            return build_failure(Downstream(f"{name} failed inside: {type(exc).__name__}"), name)

    async def _called(self, hold: PooledSession, name: str, args: dict[str, Any], context: ToolContext) -> ToolResult:
        call_id = context.function_call_id or f"adk{id(context)}"
        call = ToolCall(name, args, call_id)
        if hold.asking is None:
            return await hold.steps.call(call)
        if call_id in hold.asking.asks:
            # A person's answer to the first must not be taken for one to the second, nor the other way round.
            return refuse_duplicate_id(hold.session, call)
        key = asked_key(context.agent_name, call_id)
        ask = adk_confirmation.PendingConfirmation(given=context.tool_confirmation, shown=context.state.get(key))
        hold.asking.asks[call_id] = ask
        try:
            result = await hold.steps.call(call)
        finally:
            del hold.asking.asks[call_id]
        if ask.open is not None and result.error_code == "no_confirmer":
            context.state[key] = adk_confirmation.compute_question_hash(ask.open)
            context.request_confirmation(
                hint=adk_confirmation.build_hint(ask.open), payload=adk_confirmation.build_payload(ask.open)
            )
            # The model has nothing to go on before a person has answered.
            context.actions.skip_summarization = True
        elif context.state.get(key):
            context.state[key] = None
        return result


class HandrailTool(BaseTool):
    """One tool as it is in the step that begins. The session checks arguments itself, and says what is wrong in its result."""

    def __init__(self, toolset: HandrailToolset, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._toolset = toolset
        self._tool = tool
        self._family = family_of(None)

    def _get_declaration(self) -> types.FunctionDeclaration:
        said = declare(self._tool, dialect="gemini", family=self._family)
        said["parameters"] = add_wait_argument(said.get("parameters", NO_PARAMETERS))
        return types.FunctionDeclaration.model_validate(said)

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        """Declare the tool in the form for the model's family.

        Its advice is added unless another tool has added the same.
        """
        advice = self._tool.advice_on(sys.platform)
        if advice and advice not in str(llm_request.config.system_instruction):
            llm_request.append_instructions([advice])
        self._family = family_of(llm_request.model)
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Return the result of the call as data, also if it failed."""
        return await self._toolset.call(self._tool.name, args, tool_context)


def _open_runtime(runtime: Runtime | None, settings: dict[str, Any]) -> AbstractAsyncContextManager[Runtime]:
    if runtime is not None:
        return nullcontext(runtime)
    about = {name: settings.pop(name) for name in ("cwd", "config", "plugins", "environment") if name in settings}
    if (roots := settings.pop("workspace", None)) is not None:
        settings["workspace"] = tuple(map(str, roots))
    return open_configured_runtime(settings, **about)


async def _save_artifacts(hold: PooledSession, context: ToolContext) -> None:
    """Give what the session holds to ADK's artifact service, where there is one."""
    if context.get_invocation_context().artifact_service is None:
        return
    for artifact in _list_unsaved(hold):
        hold.saved.add(artifact.id)
        try:
            data = artifact.path.read_bytes()
            mime_type = mimetypes.guess_type(artifact.path.name)[0] or "application/octet-stream"
            await context.save_artifact(artifact.path.name, types.Part.from_bytes(data=data, mime_type=mime_type))
        # The service is the host's code; a result that was there is not lost with it.
        except Exception:
            log.exception("the artifact %s was not saved", artifact.id)


def _list_unsaved(hold: PooledSession) -> Sequence[Artifact]:
    return [
        artifact
        for artifact in hold.session.artifacts
        if artifact.id not in hold.saved and artifact.path.exists() and artifact.size <= MAX_SAVED
    ]
