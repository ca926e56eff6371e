"""Points of pictures land where they belong, on monitors as Windows, macOS and RANDR lay them out.

On Windows all places are real pixels, of a thread that is aware of each monitor's scale. On macOS they are points, of which a Retina monitor
makes four dots. The main monitor's corner is 0, 0 on both, so that others may lie at negative places.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from handrail import Rect, Transform
from handrail_gui.platforms.geometry import bounding_rect, corner_pixels, drag_points, find_monitor_index, layout_half
from handrail_gui.platforms.win32.inputs import normalize_point

LAYOUTS = {
    "windows: 4K at 150 % with a plain one to its left": [Rect(0, 0, 3840, 2160), Rect(-1920, 540, 1920, 1080)],
    "windows: laptop at 125 % under an upright one": [Rect(0, 0, 1920, 1200), Rect(310, -2560, 1440, 2560)],
    "windows: three, corner above and to the left": [
        Rect(0, 0, 2560, 1440),
        Rect(-2560, -1440, 2560, 1440),
        Rect(2560, 200, 1280, 1024),
    ],
    "macos: Retina laptop under a larger one": [Rect(0, 0, 1512, 982), Rect(-524, -1440, 2560, 1440)],
    "macos: Retina main with two beside": [
        Rect(0, 0, 1728, 1117),
        Rect(1728, 37, 1920, 1080),
        Rect(-1080, -803, 1080, 1920),
    ],
    "x11: one": [Rect(0, 0, 1280, 800)],
}
layouts = pytest.mark.parametrize("monitors", LAYOUTS.values(), ids=LAYOUTS)


@layouts
def test_the_middle_of_what_is_pointed_at_in_the_picture_is_in_it_on_the_screen(monitors: list[Rect]) -> None:
    for shown in (bounding_rect(monitors), *monitors):
        transform = Transform.fit(shown)
        for monitor in monitors:
            # A button of 40 pixels in each corner and in the middle of the monitor.
            for x in (monitor.x, monitor.center[0], monitor.right - 40):
                for y in (monitor.y, monitor.center[1], monitor.bottom - 40):
                    button = Rect(x, y, 40, 40)
                    pictured = transform.to_image(button)
                    if pictured.empty:
                        assert button.intersect(shown).empty
                        continue
                    assert button.contains(*transform.to_screen(*pictured.center))


@layouts
def test_every_corner_of_the_picture_is_a_pixel_of_the_desktop(monitors: list[Rect]) -> None:
    screen = bounding_rect(monitors)
    transform = Transform.fit(screen)
    for x in (0, transform.width - 1):
        for y in (0, transform.height - 1):
            assert screen.contains(*transform.to_screen(x, y))


@layouts
def test_a_window_belongs_to_the_monitor_that_shows_most_of_it(monitors: list[Rect]) -> None:
    for index, monitor in enumerate(monitors):
        across = Rect(monitor.x - 100, monitor.center[1] - 50, 400, 100)
        assert find_monitor_index(across, monitors) == index
        # As Windows has a maximized one: its invisible border reaches onto the neighbours.
        assert (
            find_monitor_index(Rect(monitor.x - 8, monitor.y - 8, monitor.width + 16, monitor.height + 16), monitors)
            == index
        )


@layouts
def test_halves_fill_their_monitor(monitors: list[Rect]) -> None:
    for monitor in monitors:
        left, right = layout_half(monitor, "left_half"), layout_half(monitor, "right_half")
        assert (left.x, left.right, right.right) == (monitor.x, right.x, monitor.right)
        top, bottom = layout_half(monitor, "top_half"), layout_half(monitor, "bottom_half")
        assert (top.y, top.bottom, bottom.bottom) == (monitor.y, bottom.y, monitor.bottom)


@layouts
def test_the_corners_that_stop_an_agent_are_those_of_the_whole_desktop(monitors: list[Rect]) -> None:
    screen = bounding_rect(monitors)
    assert (screen.right - 1, screen.y) in corner_pixels(screen)
    assert len(corner_pixels(screen)) == 4


@layouts
def test_a_drag_ends_where_it_is_told_to(monitors: list[Rect]) -> None:
    points = drag_points(monitors[0].center, monitors[-1].center)
    assert points[-1] == monitors[-1].center
    assert all(abs(a[0] - b[0]) <= abs(points[-1][0]) + 2000 for a, b in pairwise(points))


@given(
    st.tuples(st.integers(-20000, 20000), st.integers(-20000, 20000), st.integers(1, 32767), st.integers(1, 32767)),
    st.data(),
)
def test_windows_gets_back_the_pixel_that_was_meant(box: tuple[int, int, int, int], data: st.DataObject) -> None:
    screen = Rect(*box)
    x = data.draw(st.integers(screen.x, screen.right - 1))
    y = data.draw(st.integers(screen.y, screen.bottom - 1))
    nx, ny = normalize_point(x, y, screen)
    assert 0 <= nx < 65536
    assert 0 <= ny < 65536
    # What Windows makes of a place in 65,536 steps.
    assert (screen.x + nx * screen.width // 65536, screen.y + ny * screen.height // 65536) == (x, y)
