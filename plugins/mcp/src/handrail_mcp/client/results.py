"""Conversion of server responses to call results, labelled as external data."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import anyio
import anyio.to_thread
from mcp import types

from handrail import Downstream, Media, ToolResult
from handrail.json_types import is_object
from handrail.sanitize.envelope import clean_text
from handrail_mcp.client.json_schemas import STEPS_BESIDE, BoundedSchema, UnusableSchema
from handrail_mcp.client.remote_tools import DeclaredTool

MIME = re.compile(r"[a-z]+/[a-z0-9.+-]{1,60}")
# Letters of a failed tool's words that stand in the error itself.
MAX_FAILURE_TEXT = 1_000

# What a check may take before it is made beside everything else.
STEPS_AT_ONCE = 500

MediaKind = Literal["image", "audio", "video", "document"]


async def build_result(given: types.CallToolResult, declared: DeclaredTool, *, server: str) -> Mapping[str, Any]:
    """Build the result of a tool call; `Downstream` if structured output does not fit the server's declared schema."""
    if not given.is_error and declared.output is not None:
        await _check_output(given.structured_content, declared.output, tool=declared.tool.name, server=server)
    found = _convert_blocks(given.content)
    # A text that is wrapped only to be structured is shown once, and as text.
    if given.structured_content is not None and [*given.structured_content.values()] != [found.get("content")]:
        found["structured"] = given.structured_content
        if _is_same_content(found.get("content"), given.structured_content):
            del found["content"]
    return _build_failure(found, declared.tool, server=server) if given.is_error else found


def build_resource_contents(given: types.ReadResourceResult) -> Mapping[str, Any]:
    """Convert the contents of a resource."""
    return _group_parts(_convert_resource(each) for each in given.contents)


def _build_failure(found: dict[str, Any], declared: types.Tool, *, server: str) -> Mapping[str, Any]:
    said = clean_text(str(found.get("content", ""))).text.strip()[:MAX_FAILURE_TEXT] or "it did not say why"
    error = Downstream(f"{declared.name} of the server {server!r} failed: {said}")
    return {**found, **ToolResult.failure(error, title=f"{declared.name} of the server {server}")}


async def _check_output(structured: object, schema: BoundedSchema | UnusableSchema, *, tool: str, server: str) -> None:
    if isinstance(schema, UnusableSchema):
        raise Downstream(f"the output schema of {tool!r} cannot be used: {schema}")
    if not is_object(structured):
        raise Downstream(f"the server {server!r} gave no structured output, which it declares for {tool!r}")
    # Most are checked at once; where that takes long, nothing else waits for it.
    problems = schema.problems(structured, steps=STEPS_AT_ONCE) and await anyio.to_thread.run_sync(
        partial(schema.problems, structured, steps=STEPS_BESIDE), abandon_on_cancel=True
    )
    if problems:
        told = "; ".join(f"{each['field']}: {each['problem']}" for each in problems[:3])
        raise Downstream(f"the output of {tool!r} is not what the server {server!r} declares: {told}")


def _is_same_content(text: object, structured: object) -> bool:
    """Return True if a text only repeats the structured output, as the protocol recommends to servers."""
    if not isinstance(text, str):
        return False
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return told == structured or structured == {"result": told}


def _convert_blocks(blocks: Sequence[types.ContentBlock]) -> dict[str, Any]:
    return _group_parts(_convert_block(block) for block in blocks)


def _group_parts(parts: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """Group the parts by the key of the result that they belong to; texts are joined under `content`."""
    texts: list[str] = []
    found: dict[str, Any] = {}
    for key, value in parts:
        if key == "content":
            texts.append(value)
        else:
            found.setdefault(key, []).append(value)
    return {"content": "\n".join(texts), **found} if texts or not found else found


def _convert_block(block: types.ContentBlock) -> tuple[str, Any]:
    match block:
        case types.TextContent():
            return "content", block.text
        case types.ImageContent():
            return _decode_media("image", block.mime_type, block.data)
        case types.AudioContent():
            return _decode_media("audio", block.mime_type, block.data)
        case types.EmbeddedResource():
            return _convert_resource(block.resource)
        case types.ResourceLink():
            return "links", describe_resource(block)


def describe_resource(resource: types.Resource) -> dict[str, Any]:
    """Describe a resource without its contents."""
    told = {
        "uri": str(resource.uri),
        "name": resource.title or resource.name,
        "mime_type": resource.mime_type,
        "description": resource.description,
        "size": resource.size,
    }
    return {key: value for key, value in told.items() if value is not None}


def _convert_resource(resource: types.TextResourceContents | types.BlobResourceContents) -> tuple[str, Any]:
    if isinstance(resource, types.TextResourceContents):
        told = {"uri": str(resource.uri), "mime_type": resource.mime_type, "text": resource.text}
        return "resources", {key: value for key, value in told.items() if value is not None}
    mime = resource.mime_type or "application/octet-stream"
    return _decode_media(
        MEDIA_KINDS.get(mime.partition("/")[0], "document"), mime, resource.blob, uri=str(resource.uri)
    )


MEDIA_KINDS: Mapping[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}


def _decode_media(kind: MediaKind, mime: str, data: str, *, uri: str | None = None) -> tuple[str, Any]:
    mime = mime.lower().partition(";")[0].strip()
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return "content", f"[{kind} that cannot be decoded]"
    if not MIME.fullmatch(mime) or (kind != "document" and not mime.startswith(f"{kind}/")):
        kind, mime = "document", "application/octet-stream"
    return "media", Media(kind, mime, decoded, text=uri)
