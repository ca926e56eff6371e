"""A result as MCP clients are given it: text, structure, and pictures beside them."""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mcp import types

from handrail import Media, ToolResult
from handrail.artifacts import Artifacts
from handrail.untrusted import envelope

# The key in `_meta` that says where a result comes from, and what marks it in the text.
PROVENANCE = "handrail/untrusted"
# Keys of tools' results whose values are pictures.
PICTURES = frozenset({"image_b64", "raw_image_b64"})
# How the formats begin, in base64.
BEGINNINGS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "UklGR": "image/webp",
    "R0lGOD": "image/gif",
    "Qk": "image/bmp",
}
# A larger file is named, not sent.
MAX_INLINE = 10 * 2**20

Block = types.TextContent | types.ImageContent | types.AudioContent


async def rendered(result: ToolResult, artifacts: Artifacts) -> types.CallToolResult:
    """The result for a client. Each picture and sound is one block of its own and in neither the text nor the structure.

    What nobody vouches for is in an envelope in the text, with its provenance in `_meta`; the structure is the plain result.
    """
    shown: list[types.ImageContent | Shown] = []
    plain = _without(result, shown)
    blocks = [each if isinstance(each, types.ImageContent) else await each.block(artifacts) for each in shown]
    structure, text = _json(plain)
    meta: dict[str, Any] | None = None
    if result.source is not None:
        wrapped = envelope(text, source=result.source)
        text, meta = wrapped.text, {PROVENANCE: wrapped.wire()}
    return types.CallToolResult(
        _meta=meta,
        content=[types.TextContent(type="text", text=text), *(block for block in blocks if block is not None)],
        structured_content=structure,
        is_error=not result.ok,
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """Media that was taken out of a result, and the entry that stands for it there."""

    media: Media
    entry: dict[str, Any]

    async def block(self, artifacts: Artifacts) -> Block | None:
        """What the client shows; None for what is left in a file, whose path the entry then names."""
        media = self.media
        if media.type in ("image", "audio") and (data := await self._data()) is not None:
            inline = base64.b64encode(data).decode("ascii")
            if media.type == "image":
                return types.ImageContent(type="image", data=inline, mime_type=media.mime_type)
            return types.AudioContent(type="audio", data=inline, mime_type=media.mime_type)
        self.entry["path"] = str(media.path or await _kept(media, artifacts))
        return None

    async def _data(self) -> bytes | None:
        """The bytes, None when they are too many to send or no file can be read."""
        if self.media.data is not None:
            return self.media.data
        try:
            return await self.media.read(MAX_INLINE)
        except OSError:
            return None


def _without(value: Any, shown: list[types.ImageContent | Shown]) -> Any:
    """The value in plain JSON types, its pictures and sounds moved to `shown`."""
    if isinstance(value, str | int | float) or value is None:
        return value
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {str(key): _without(item, shown) for key, item in items if not _is_picture(key, item, shown)}
    if isinstance(value, list | tuple):
        return [_without(item, shown) for item in cast("list[Any]", value)]
    if isinstance(value, set | frozenset):
        return sorted(_without(item, shown) for item in cast("set[Any]", value))
    if isinstance(value, Media):
        entry = _entry(value)
        shown.append(Shown(value, entry))
        return entry
    return str(value)


def _entry(media: Media) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": media.type, "mime_type": media.mime_type}
    return entry if media.words is None else {**entry, "text": media.words}


def _is_picture(key: Any, value: Any, shown: list[types.ImageContent | Shown]) -> bool:
    """Whether it is a picture in base64, as observe_screen gives it; then it is moved to `shown`."""
    if key not in PICTURES or not isinstance(value, str):
        return False
    if value:
        mime_type = next((mime for start, mime in BEGINNINGS.items() if value.startswith(start)), "image/png")
        shown.append(types.ImageContent(type="image", data=value, mime_type=mime_type))
    return True


def _json(value: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The value and its text. What JSON in UTF-8 cannot say is replaced in both: lone surrogates by `?`, numbers that are none by null."""
    try:
        text = _ENCODER.encode(value)
        text.encode()
    except ValueError:
        sound = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        value = json.loads(sound, parse_constant=lambda _: None)
        text = _ENCODER.encode(value)
    return value, text


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


async def _kept(media: Media, artifacts: Artifacts) -> Path:
    return artifacts.store(await media.read() or b"", mimetypes.guess_extension(media.mime_type) or ".bin")
