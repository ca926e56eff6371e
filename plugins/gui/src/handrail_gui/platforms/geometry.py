"""Platform-independent geometry on one or several monitors, in screen pixels."""

from __future__ import annotations

from collections.abc import Sequence

from handrail import Rect

# Steps of a drag, so that programs see the way and not only its end.
DRAG_STEPS = 12


def bounding_rect(monitors: Sequence[Rect]) -> Rect:
    """Return the smallest rectangle around all monitors; its corner may be negative."""
    x, y = min(m.x for m in monitors), min(m.y for m in monitors)
    return Rect(x, y, max(m.right for m in monitors) - x, max(m.bottom for m in monitors) - y)


def corner_pixels(screen: Rect) -> set[tuple[int, int]]:
    """Return the pixels at the corners of a rectangle."""
    return {(x, y) for x in (screen.x, screen.right - 1) for y in (screen.y, screen.bottom - 1)}


def find_monitor_index(rect: Rect, monitors: Sequence[Rect]) -> int:
    """Return the index of the monitor that shows most of the rectangle."""
    shown = [rect.intersect(monitor) for monitor in monitors]
    return max(range(len(monitors)), key=lambda index: shown[index].width * shown[index].height, default=0)


def layout_half(room: Rect, layout: str) -> Rect:
    """Return the left_half, right_half, top_half or bottom_half of a rectangle."""
    width, height = room.width // 2, room.height // 2
    return {
        "left_half": Rect(room.x, room.y, width, room.height),
        "right_half": Rect(room.x + width, room.y, room.width - width, room.height),
        "top_half": Rect(room.x, room.y, room.width, height),
        "bottom_half": Rect(room.x, room.y + height, room.width, room.height - height),
    }[layout]


def drag_points(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the points of a drag, including the end."""
    return [
        (
            start[0] + round((end[0] - start[0]) * step / DRAG_STEPS),
            start[1] + round((end[1] - start[1]) * step / DRAG_STEPS),
        )
        for step in range(1, DRAG_STEPS + 1)
    ]
