"""Protocol between the plugin and its reader process: a line of JSON, followed in a request by the pixels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # Height x width x 3, BGR.
    Picture = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class FoundItem:
    """One thing in a picture: `role` text, box or icon; `box` left, top, width, height in its pixels; `look` tells icons apart."""

    role: str
    text: str
    box: tuple[int, int, int, int]
    confidence: float | None = None
    look: str = ""


def format_request(height: int, width: int, *, place: list[int], controls: bool) -> bytes:
    """Format the line that precedes the pixels (height x width x 3 bytes, BGR)."""
    return format_message({"height": height, "width": width, "place": place, "controls": controls})


def format_answer(found: list[FoundItem]) -> bytes:
    """Format the found items as a line."""
    return format_message({"found": [asdict(one) for one in found]})


def parse_found(answered: Mapping[str, Any]) -> list[FoundItem]:
    """Parse the found items from an answer."""
    return [
        FoundItem(one["role"], one["text"], tuple(one["box"]), one["confidence"], one["look"])
        for one in answered["found"]
    ]


def format_message(message: Mapping[str, Any]) -> bytes:
    """Format a message as one line."""
    return json.dumps(message, ensure_ascii=True).encode() + b"\n"
