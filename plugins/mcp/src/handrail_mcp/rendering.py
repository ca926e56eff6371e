"""A result as MCP clients are given it: text, structure, and pictures beside them."""

from __future__ import annotations

import base64
from typing import Any

from mcp import types

from handrail import ToolResult
from handrail.artifacts.store import Artifacts
from handrail.results.telling import Shown, told

# The key in `_meta` that says where a result comes from, and what marks it in the text.
PROVENANCE = "handrail/untrusted"


async def rendered(result: ToolResult, artifacts: Artifacts) -> types.CallToolResult:
    """The result for a client. Each picture and sound is one block of its own and in neither the text nor the structure.

    What nobody vouches for is in an envelope in the text, with its provenance in `_meta`; the structure is the plain result.
    """
    said = await told(result, artifacts, inline=("image", "audio"))
    meta: dict[str, Any] | None = {PROVENANCE: said.envelope.wire()} if said.envelope is not None else None
    return types.CallToolResult(
        _meta=meta,
        content=[types.TextContent(type="text", text=said.text), *map(_block, said.media)],
        structured_content=said.structure,
        is_error=not result.ok,
    )


def _block(shown: Shown) -> types.ImageContent | types.AudioContent:
    data = base64.b64encode(shown.data).decode("ascii")
    if shown.type == "image":
        return types.ImageContent(type="image", data=data, mime_type=shown.mime_type)
    return types.AudioContent(type="audio", data=data, mime_type=shown.mime_type)
