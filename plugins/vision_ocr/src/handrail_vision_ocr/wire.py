"""What the plugin and its reading process say to each other: a line of JSON, and with a request the pixels behind it."""

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
class Found:
    """One thing in a picture: `role` text, box or icon; `box` left, top, width, height in its pixels; `look` tells icons apart."""

    role: str
    text: str
    box: tuple[int, int, int, int]
    confidence: float | None = None
    look: str = ""


def request(height: int, width: int, *, place: list[int], controls: bool) -> bytes:
    """The line before the pixels (height x width x 3 bytes, BGR)."""
    return line({"height": height, "width": width, "place": place, "controls": controls})


def answer(found: list[Found]) -> bytes:
    """What was found, as a line."""
    return line({"found": [asdict(one) for one in found]})


def found_in(answered: Mapping[str, Any]) -> list[Found]:
    """The other way round."""
    return [
        Found(one["role"], one["text"], tuple(one["box"]), one["confidence"], one["look"]) for one in answered["found"]
    ]


def line(message: Mapping[str, Any]) -> bytes:
    """A message as one line."""
    return json.dumps(message, ensure_ascii=True).encode() + b"\n"
