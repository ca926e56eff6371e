"""A session's tools for an agent of Pydantic AI: `Agent(model, toolsets=[HandrailToolset(session)])`."""

from __future__ import annotations

from typing import Any

from pydantic_ai import AbstractToolset, BinaryContent, RunContext, ToolDefinition, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from handrail.api.model_families import family_of
from handrail.api.tool import Tool
from handrail.sanitize.model_output import build_model_output
from handrail.session.session import Session
from handrail.tools.declarations import declare

# The session checks arguments itself, and says what is wrong in its result.
ANY_VALIDATOR = SchemaValidator(core_schema.any_schema())


class HandrailToolset(AbstractToolset[Any]):
    """Toolset with the session's visible tools, refreshed at each step of the agent and declared for the step's model.

    Call failures are returned to the model as data: nothing is raised. A run of the agent is a turn of the session.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def id(self) -> str:
        return self._session.id

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        self._session.begin_turn()
        return self

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Begin a model step and return its tools."""
        family = family_of(ctx.model.model_name)
        return {tool.name: self._tool(tool, family) for tool in await self._session.tools()}

    def _tool(self, tool: Tool, family: str) -> ToolsetTool[Any]:
        said = declare(tool, dialect="mcp", family=family)
        definition = ToolDefinition(
            name=said["name"],
            description=said["description"],
            parameters_json_schema=said["inputSchema"],
            sequential=not tool.read_only,
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=0, args_validator=ANY_VALIDATOR)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call the tool and return its result as text, with pictures and other media next to it."""
        result = await self._session.call(name, tool_args, call_id=ctx.tool_call_id)
        said = await build_model_output(result, self._session.artifacts)
        media = [BinaryContent(shown.data, media_type=shown.mime_type) for shown in said.media]
        return [said.text, *media] if media else said.text
