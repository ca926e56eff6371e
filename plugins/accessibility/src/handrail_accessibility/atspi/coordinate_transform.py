"""Conversion to screen pixels for programs that report positions in their own coordinates.

A program scaled to twice its size reports positions before scaling (`GDK_SCALE=2`, `QT_SCALE_FACTOR`). GTK 4 reports
them relative to its window's corner. LibreOffice reports those in its document's frame as if the frame began higher,
until the pointer has been there, except for GTK's own widgets in it. A scaled Chromium reports those on a page in
screen pixels, but not those around the page. The difference follows from what the X server reports for the window and
what the program reports for the window or the frame itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from handrail import Rect, Window

# Programs are scaled in quarters; less than half of one is decoration that one side counts and the other does not.
SCALE_STEPS = 4
# Pixels by which a scaled box may differ from a whole number of them.
SIZE_TOLERANCE = 4


@dataclass(frozen=True, slots=True)
class CoordinateTransform:
    """Conversion of a position reported by a program to screen pixels: scaled, then moved."""

    scale: float = 1.0
    dx: int = 0
    dy: int = 0

    @property
    def plain(self) -> bool:
        """True if no conversion is needed."""
        return self == IDENTITY_TRANSFORM

    def to_screen(self, told: Rect) -> Rect:
        """Convert a rectangle to screen pixels."""
        if self.plain:
            return told
        x, y = round(told.x * self.scale) + self.dx, round(told.y * self.scale) + self.dy
        return Rect(x, y, round(told.width * self.scale), round(told.height * self.scale))

    def inside(self, inner: Rect, outer: Rect) -> CoordinateTransform:
        """Return the transform for the content of a pane.

        `inner` is the rectangle that the pane reports, `outer` the one reported by its container.
        """
        if rect_size(inner) == rect_size(outer):
            dx, dy = outer.x - inner.x, outer.y - inner.y
            return replace(self, dx=self.dx + round(dx * self.scale), dy=self.dy + round(dy * self.scale))
        near = all(
            abs(a - b) <= SIZE_TOLERANCE
            for a, b in zip(rect_size(self.to_screen(outer)), rect_size(inner), strict=True)
        )
        # The pane tells its place in screen pixels already, and what is around it does not.
        return IDENTITY_TRANSFORM if near else self


IDENTITY_TRANSFORM = CoordinateTransform()


def rect_size(rect: Rect) -> tuple[int, int]:
    """Width and height."""
    return rect.width, rect.height


def compute_transform(real: Rect | None, told: Rect | None, *, relative: bool) -> CoordinateTransform:
    """Return the transform for a window whose rectangle is `real` on the screen and `told` according to the program.

    Without either, positions are used as reported. `relative`: the program reports all positions relative to its
    window's corner.
    """
    if real is None or told is None or real.empty:
        return IDENTITY_TRANSFORM
    scale = compute_scale(real, told)
    if not relative:
        return CoordinateTransform(scale)
    # What it draws around itself is as wide on all sides.
    left = real.x + (real.width - told.width * scale) / 2 - told.x * scale
    top = real.y + (real.height - told.height * scale) / 2 - told.y * scale
    return CoordinateTransform(scale, round(left), round(top))


def find_process_windows(windows: Sequence[Window], *, pid: int | None, title: str, active: bool) -> list[Window]:
    """Return the process's windows with that title, else its active one, else all that are not minimized."""
    own = [window for window in windows if window.pid == pid]
    fitting = [window for window in own if window.title == title]
    # What GTK calls "Question" has another title on the screen.
    fitting = fitting or [window for window in own if active and window.active]
    return fitting or [window for window in own if window.state != "minimized"]


def disambiguate_window(windows: Sequence[Window], *, place: Rect | None, active: bool) -> Window | None:
    """Return the one window centered at its reported position or, failing that, matching the reported active state.

    Returns None if there may be several.
    """
    fitting = [window for window in windows if _is_centered_at(window, place)] or windows
    if len(fitting) > 1:
        fitting = [window for window in fitting if window.active == active]
    return fitting[0] if len(fitting) == 1 else None


def compute_scale(real: Rect, told: Rect) -> float:
    """Return how many screen pixels one of the program's pixels takes, in quarters."""
    return max(1.0, round(real.width / told.width * SCALE_STEPS) / SCALE_STEPS)


def _is_centered_at(window: Window, told: Rect | None) -> bool:
    """Return True if the window's center is at the reported position.

    Decorations that a program draws around itself are equally wide on all sides.
    """
    if told is None or told.empty or window.rect.empty:
        return False
    (x, y), scale = told.center, compute_scale(window.rect, told)
    middle = window.rect.center
    return abs(middle[0] - x * scale) <= SIZE_TOLERANCE * scale and abs(middle[1] - y * scale) <= SIZE_TOLERANCE * scale
