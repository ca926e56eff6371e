"""A session's tools for models of LangChain: `model.bind_tools(await tools(session))`, anew before each step."""

from __future__ import annotations

import base64
from typing import Any, Literal

from langchain_core.tools import BaseTool, ToolException

from handrail.api.model_families import family_of
from handrail.sanitize.model_output import ShownMedia, build_model_output
from handrail.session.session import Session
from handrail.tools.declarations import declare


async def tools(session: Session, *, model: str | None = None) -> list[BaseTool]:
    """Begin a model step and return the session's visible tools, as declared for the named model."""
    declared = [declare(tool, dialect="mcp", family=family_of(model)) for tool in await session.tools()]
    return [
        SessionTool(
            session=session, name=said["name"], description=said["description"], args_schema=said["inputSchema"]
        )
        for said in declared
    ]


class SessionTool(BaseTool):
    """One tool. What goes wrong is a message with status "error"; the message's artifact is the result itself."""

    session: Any
    handle_tool_error: Any = True
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def _run(self, **arguments: Any) -> Any:
        raise NotImplementedError("Handrail is asynchronous; use ainvoke")

    async def _arun(self, **arguments: Any) -> tuple[list[dict[str, Any]], Any]:
        result = await self.session.call(self.name, arguments)
        said = await build_model_output(result, self.session.artifacts)
        if not result.ok:
            raise ToolException(said.text)
        return [{"type": "text", "text": said.text}, *map(_build_content_block, said.media)], result


def _build_content_block(shown: ShownMedia) -> dict[str, Any]:
    return {
        "type": "file" if shown.type == "document" else shown.type,
        "base64": base64.b64encode(shown.data).decode("ascii"),
        "mime_type": shown.mime_type,
    }
