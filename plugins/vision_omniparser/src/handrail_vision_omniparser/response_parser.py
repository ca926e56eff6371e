"""Conversion of an OmniParser server's answer to elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handrail import UNIT, BackendUnavailable, Element, Rect, Size
from handrail.json_types import is_list, is_mapping

# How far beyond an edge a box may lie and still be meant to end there: the server rounds.
RATIO_TOLERANCE = 0.01
LONGEST_TEXT = 1_000
# Of a list, the part that is looked at: no screen shows as much.
MAX_ELEMENTS = 5_000


def parse_elements(answered: Mapping[str, Any], sent: Size, shown: Rect) -> list[Element]:
    """Return the elements in the shown part of the screen, which is the upper left of the picture that was sent.

    Boxes are ratios of that picture. Elements without a box or outside the shown part are left out; the others keep
    their numbers.
    """
    listed = answered.get("parsed_content_list")
    if not is_list(listed):
        raise BackendUnavailable("what answers is no OmniParser: it gave no parsed_content_list")
    found: list[Element] = []
    for number, item in enumerate(listed[:MAX_ELEMENTS]):
        if is_mapping(item):
            rect = _parse_rect(item.get("bbox"), sent)
            rect = Rect(shown.x + rect.x, shown.y + rect.y, rect.width, rect.height).intersect(shown)
            if not rect.empty:
                found.append(_create_element(number, item, rect))
    return found


def _create_element(number: int, item: Mapping[str, Any], rect: Rect) -> Element:
    text = item.get("content")
    text = text.strip()[:LONGEST_TEXT] if isinstance(text, str) else ""
    role = "text" if item.get("type") == "text" else "icon"
    return Element(
        role,
        text,
        rect,
        source="ocr" if role == "text" else "vision",
        actions=("click",) if item.get("interactivity") is True else (),
        ref=number,
        fingerprint=f"{role}:{text}" if text else "",
    )


def _parse_rect(box: object, sent: Size) -> Rect:
    """Convert a box of ratios to pixels; an empty rectangle if it is invalid."""
    nothing = Rect(0, 0, 0, 0)
    if not is_list(box) or len(box) != 4:
        return nothing
    sides = [_parse_ratio(side) for side in box]
    if any(side is None for side in sides):
        return nothing
    x1, y1, x2, y2 = (side for side in sides if side is not None)
    return UNIT.box(x1, y1, x2, y2, sent)


def _parse_ratio(side: object) -> float | None:
    if isinstance(side, bool) or not isinstance(side, int | float):
        return None
    return min(max(float(side), 0.0), 1.0) if -RATIO_TOLERANCE <= side <= 1 + RATIO_TOLERANCE else None
