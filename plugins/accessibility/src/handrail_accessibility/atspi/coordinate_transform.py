"""Where things are on the screen, for programs that say it in pixels of their own.

A program that is shown at twice its size tells places before that (`GDK_SCALE=2`, `QT_SCALE_FACTOR`), GTK 4 tells them from its window's corner,
LibreOffice tells those in its document's frame as if the frame began higher, until the pointer has been there, but not those of GTK's own
widgets in it, and a Chromium shown larger tells those on a page in screen pixels and those around the page not. What the X server says of the
window, and what the program says of the window or of the frame itself, gives the difference.
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
    """How a place that a program tells becomes one in screen pixels: scaled, then moved."""

    scale: float = 1.0
    dx: int = 0
    dy: int = 0

    @property
    def plain(self) -> bool:
        """Whether there is nothing to put right."""
        return self == IDENTITY_TRANSFORM

    def to_screen(self, told: Rect) -> Rect:
        """The place in screen pixels."""
        if self.plain:
            return told
        x, y = round(told.x * self.scale) + self.dx, round(told.y * self.scale) + self.dy
        return Rect(x, y, round(told.width * self.scale), round(told.height * self.scale))

    def inside(self, inner: Rect, outer: Rect) -> CoordinateTransform:
        """The same for what lies in a pane that says `inner` of its place, where what it fills says `outer`."""
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
    """What is to be put right in a window that is really at `real` and says of itself `told`; as told where either is not known.

    `relative`: it tells all places from its own corner.
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
    """The windows of that process with that title, else its active one, else all that it shows."""
    own = [window for window in windows if window.pid == pid]
    fitting = [window for window in own if window.title == title]
    # What GTK calls "Question" has another title on the screen.
    fitting = fitting or [window for window in own if active and window.active]
    return fitting or [window for window in own if window.state != "minimized"]


def disambiguate_window(windows: Sequence[Window], *, place: Rect | None, active: bool) -> Window | None:
    """The one of some windows that is where it says that it is, or else is active as it says; None where that may be several."""
    fitting = [window for window in windows if _is_centered_at(window, place)] or windows
    if len(fitting) > 1:
        fitting = [window for window in fitting if window.active == active]
    return fitting[0] if len(fitting) == 1 else None


def compute_scale(real: Rect, told: Rect) -> float:
    """How many screen pixels the program's own are, in quarters."""
    return max(1.0, round(real.width / told.width * SCALE_STEPS) / SCALE_STEPS)


def _is_centered_at(window: Window, told: Rect | None) -> bool:
    """Whether it has its middle where it says: what a program draws around itself is as wide on all sides."""
    if told is None or told.empty or window.rect.empty:
        return False
    (x, y), scale = told.center, compute_scale(window.rect, told)
    middle = window.rect.center
    return abs(middle[0] - x * scale) <= SIZE_TOLERANCE * scale and abs(middle[1] - y * scale) <= SIZE_TOLERANCE * scale
