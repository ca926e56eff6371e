"""Tool results as MCP clients receive them: everything is in `content`, text first."""

from __future__ import annotations

import base64

from mcp import types

from handrail import ToolResult
from handrail.artifacts.store import ArtifactStore
from handrail.sanitize.model_output import ShownMedia, build_model_output


async def render_result(result: ToolResult, artifacts: ArtifactStore) -> types.CallToolResult:
    """Convert a result for a client: one text block with the whole result as JSON, then one block per image and sound.

    The text of an untrusted result is in its envelope. Nothing is sent beside `content`. Codex 0.169 and Claude Code
    2.1 pass `structuredContent` to their model in place of the text, which loses the envelope and, in Codex, the
    pictures. Gemini CLI 0.61 passes on `_meta` of a failed call, outside of any envelope.
    """
    said = await build_model_output(result, artifacts, inline=("image", "audio"))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=said.text), *map(_render_block, said.media)],
        is_error=not result.ok,
    )


def _render_block(shown: ShownMedia) -> types.ImageContent | types.AudioContent:
    data = base64.b64encode(shown.data).decode("ascii")
    if shown.type == "image":
        return types.ImageContent(type="image", data=data, mime_type=shown.mime_type)
    return types.AudioContent(type="audio", data=data, mime_type=shown.mime_type)
