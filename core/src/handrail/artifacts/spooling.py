"""What a handler returned, when it is more than a result can show, or is declared to be an artifact."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import anyio
from pydantic import BaseModel

from handrail.artifacts.store import KINDS, Artifact, CallArtifacts
from handrail.plain import MAPPINGS
from handrail.results.values import Media, ToolResult, as_result
from handrail.tools.contract import Tool

# More is written by a thread.
MUCH = 2**20


def plain(returned: Any) -> Any:
    """A model as a mapping, and bytes as the text that they are; what is no text stays as it is."""
    if isinstance(returned, BaseModel):
        return returned.model_dump(mode="json", by_alias=True)
    if not isinstance(returned, bytes | bytearray | memoryview):
        return returned
    data = bytes(cast("bytes", returned))
    return data if _is_binary(data) else data.decode()


async def spooled(returned: Any, tool: Tool, artifacts: CallArtifacts, *, limit: int) -> ToolResult:
    """The result with its text or bytes kept as an artifact, where the tool declares one or they are more than `limit` bytes.

    Shown are the text, or its head and tail, and the handle. When there is no room for an artifact, a note says so.
    """
    kind = _declared(tool)
    if isinstance(returned, MAPPINGS):
        return await _of_mapping(as_result(returned), kind, artifacts, limit)
    if not isinstance(returned, str | bytes | bytearray | memoryview):
        return as_result(returned)
    data = returned.encode("utf-8", "replace") if isinstance(returned, str) else bytes(cast("bytes", returned))
    binary = not isinstance(returned, str) and _is_binary(data)
    result = ToolResult(status="success")
    if not binary:
        _show(result, data, limit)
    if kind is not None or binary or len(data) > limit:
        await _keep(result, data, kind or (Artifact if binary else None), artifacts)
    return result


def _declared(tool: Tool) -> type[Artifact] | None:
    """The class of artifacts that a tool declares. Raises TypeError when its function names none."""
    if tool.artifact is None or isinstance(tool.artifact, str):
        return KINDS[tool.artifact] if tool.artifact is not None else None
    named: Any = tool.artifact()
    if not (isinstance(named, type) and issubclass(named, Artifact)):
        raise TypeError(f"the artifact of {tool.name} is {named!r}, not a class of artifacts")
    return named


async def _of_mapping(
    result: ToolResult, kind: type[Artifact] | None, artifacts: CallArtifacts, limit: int
) -> ToolResult:
    if kind is None or "artifact" in result or result["status"] != "success":
        return result
    content: object = result.get("content")
    own = {key: value for key, value in result.items() if key != "status"}
    data = (content if isinstance(content, str) else _json(own)).encode("utf-8", "replace")
    if isinstance(content, str):
        _show(result, data, limit)
    await _keep(result, data, kind, artifacts)
    return result


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> Any:
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


def _show(result: ToolResult, data: bytes, limit: int) -> None:
    """Put the text into the result, or its head and tail."""
    if len(data) <= limit:
        result["content"] = data.decode("utf-8", "replace")
        return
    half = limit // 2
    head, tail = data[:half].decode("utf-8", "ignore"), data[-half:].decode("utf-8", "ignore")
    result["content"] = f"{head}\n[… {len(data) - 2 * half} bytes left out …]\n{tail}"
    result["truncated"] = True


async def _keep(result: ToolResult, data: bytes, kind: type[Artifact] | None, artifacts: CallArtifacts) -> None:
    try:
        if len(data) <= MUCH:
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
