"""A result as an ADK agent is given it: a mapping, with its pictures and other media as parts."""

from __future__ import annotations

from typing import Any

from google.genai import types

from handrail.api.result import ToolResult
from handrail.artifacts.store import ArtifactStore
from handrail.errors import HandrailError
from handrail.sanitize.model_output import build_model_output


async def build_response(result: ToolResult, artifacts: ArtifactStore) -> dict[str, Any]:
    """Return the function's response. Untrusted content is one text in its envelope.

    ADK makes inline parts of the value of `media_parts`.
    """
    said = await build_model_output(result, artifacts)
    foreign = said.envelope is not None
    plain: dict[str, Any] = {"status": result.status, "output": said.text} if foreign else dict(said.structure)
    if said.media:
        plain["media_parts"] = [
            types.Part.from_bytes(data=shown.data, mime_type=shown.mime_type) for shown in said.media
        ]
    return plain


def build_failure(error: HandrailError, name: str) -> dict[str, Any]:
    """Return the response for a call that could not be made."""
    return dict(ToolResult.failure(error, title=name))
