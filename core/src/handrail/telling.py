"""A result as a model is told it, by hosts that give a model text and media: what nobody vouches for stands in its envelope."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from handrail.results import PICTURES, Media, ToolResult
from handrail.untrusted import envelope

# How pictures begin, in base64.
BEGINNINGS = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "UklGR": "image/webp", "R0lGOD": "image/gif"}
# Larger media are told of in words.
MAX_INLINE = 10 * 2**20


@dataclass(frozen=True, slots=True)
class Shown:
    """Bytes that a model is shown beside the text."""

    mime_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Told:
    """The text of a result, which is JSON or an envelope with JSON in it, and the media that were in the result, in their order."""

    text: str
    media: tuple[Shown, ...] = ()


async def told(result: ToolResult) -> Told:
    """The result for a model. Each medium that can be read is in `media`, and its place in the text says its type and words."""
    media: list[Shown] = []
    plain = await _without_media(result, media)
    text = json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace").decode()
    return Told(text if result.source is None else envelope(text, source=result.source).text, tuple(media))


async def _without_media(value: Any, media: list[Shown]) -> Any:
    if isinstance(value, Media):
        return await _entry(value, media)
    if isinstance(value, Mapping):
        kept: dict[str, Any] = {}
        for key, item in cast("Mapping[Any, Any]", value).items():
            if key in PICTURES and isinstance(item, str):
                media.extend(_picture(item))
            else:
                kept[str(key)] = await _without_media(item, media)
        return kept
    if isinstance(value, list | tuple | set | frozenset):
        return [await _without_media(item, media) for item in cast("list[Any]", value)]
    return value if isinstance(value, str | int | float) or value is None else str(value)


async def _entry(item: Media, media: list[Shown]) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": item.type, "mime_type": item.mime_type}
    try:
        data = await item.read(MAX_INLINE)
    except OSError as exc:
        entry["note"] = f"it cannot be read ({type(exc).__name__})"
    else:
        if data is None:
            entry["note"] = f"it is larger than {MAX_INLINE} bytes"
        else:
            media.append(Shown(item.mime_type, data))
    return entry if item.words is None else {**entry, "text": item.words}


def _picture(text: str) -> list[Shown]:
    if not text:
        return []
    mime_type = next((mime for start, mime in BEGINNINGS.items() if text.startswith(start)), "image/png")
    return [Shown(mime_type, base64.b64decode(text))]
