"""Storage of handler results that are too long to show, or declared to be artifacts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import anyio
from pydantic import BaseModel

from handrail.api.result import Media, ToolResult, convert_to_result
from handrail.api.tool import Tool
from handrail.artifacts.store import ARTIFACT_KINDS, Artifact, CallArtifacts
from handrail.json_types import MAPPING_TYPES

# More is written by a thread.
SPOOL_THRESHOLD = 2**20


def convert_to_plain(returned: Any) -> Any:
    """Convert a model to a mapping, and bytes to text; binary data and other values are unchanged."""
    if isinstance(returned, BaseModel):
        return returned.model_dump(mode="json", by_alias=True)
    if not isinstance(returned, bytes | bytearray | memoryview):
        return returned
    data = bytes(cast("bytes", returned))
    return data if _is_binary(data) else data.decode()


async def build_result(returned: Any, tool: Tool, artifacts: CallArtifacts, *, limit: int) -> ToolResult:
    """Build the result, and keep its text or bytes as an artifact if declared, or longer than `limit` bytes.

    It shows the text, or its head and tail, and the handle. If there is no space for an artifact, a note says so.
    """
    kind = _get_declared_kind(tool)
    if isinstance(returned, MAPPING_TYPES):
        return await _build_mapping_result(convert_to_result(returned), kind, artifacts, limit)
    if not isinstance(returned, str | bytes | bytearray | memoryview):
        return convert_to_result(returned)
    data = returned.encode("utf-8", "replace") if isinstance(returned, str) else bytes(cast("bytes", returned))
    binary = not isinstance(returned, str) and _is_binary(data)
    result = ToolResult(status="success")
    if not binary:
        _set_content(result, data, limit)
    if kind is not None or binary or len(data) > limit:
        await _store_artifact(result, data, kind or (Artifact if binary else None), artifacts)
    return result


def _get_declared_kind(tool: Tool) -> type[Artifact] | None:
    """Return the artifact class that a tool declares, or None. Raises TypeError if its function returns no class."""
    if tool.artifact is None or isinstance(tool.artifact, str):
        return ARTIFACT_KINDS[tool.artifact] if tool.artifact is not None else None
    named: Any = tool.artifact()
    if not (isinstance(named, type) and issubclass(named, Artifact)):
        raise TypeError(f"the artifact of {tool.name} is {named!r}, not a class of artifacts")
    return named


async def _build_mapping_result(
    result: ToolResult, kind: type[Artifact] | None, artifacts: CallArtifacts, limit: int
) -> ToolResult:
    if kind is None or "artifact" in result or result["status"] != "success":
        return result
    content: object = result.get("content")
    own = {key: value for key, value in result.items() if key != "status"}
    data = (content if isinstance(content, str) else _encode_json(own)).encode("utf-8", "replace")
    if isinstance(content, str):
        _set_content(result, data, limit)
    await _store_artifact(result, data, kind, artifacts)
    return result


def _encode_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, default=_encode_fallback)


def _encode_fallback(value: object) -> Any:
    if isinstance(value, Media):
        return {"type": value.type, "mime_type": value.mime_type}
    if isinstance(value, set | frozenset):
        return sorted(map(str, cast("set[Any]", value)))
    return str(value)


def _is_binary(data: bytes) -> bool:
    if b"\0" in data[:65_536]:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _set_content(result: ToolResult, data: bytes, limit: int) -> None:
    """Put the text into the result, or its head and tail."""
    if len(data) <= limit:
        result["content"] = data.decode("utf-8", "replace")
        return
    half = limit // 2
    head, tail = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
    result["content"] = f"{head}\n[… {len(data) - 2 * half} bytes left out …]\n{tail}"
    result["truncated"] = True


async def _store_artifact(
    result: ToolResult, data: bytes, kind: type[Artifact] | None, artifacts: CallArtifacts
) -> None:
    try:
        if len(data) <= SPOOL_THRESHOLD:
            result["artifact"] = artifacts.keep(data, kind)
            return
        spool = artifacts.create(kind)
        try:
            await anyio.to_thread.run_sync(spool.write, data)
        except BaseException:
            spool.discard()
            raise
        result["artifact"] = spool.wire()
    except OSError as exc:
        result.add_note(f"The whole could not be kept ({exc.strerror or exc}).")
