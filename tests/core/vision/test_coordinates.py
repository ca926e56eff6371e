"""Places in a picture, in the numbers that models use."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from handrail import PIXELS, TO_999, TO_1000, UNIT, Dialect, OutOfRange, Rect, Size, Transform
from handrail.api.coordinates import build_smart_dialect, compute_smart_size, fit_size

ALL = [PIXELS, UNIT, TO_999, TO_1000, build_smart_dialect()]
SIZES = st.builds(Size, st.integers(1, 4000), st.integers(1, 4000))
SANE = SIZES.filter(lambda size: max(size.width, size.height) / min(size.width, size.height) <= 200)


@pytest.mark.parametrize(
    ("dialect", "said", "pixel"),
    [
        pytest.param(PIXELS, (0, 0), (0, 0), id="pixels-first"),
        pytest.param(PIXELS, (1280, 800), (1279, 799), id="pixels-far-edge"),
        pytest.param(UNIT, (0.5, 0.5), (640, 400), id="unit-middle"),
        pytest.param(UNIT, (1.0, 1.0), (1279, 799), id="unit-far-edge"),
        pytest.param(TO_999, (999, 999), (1278, 799), id="999-last"),
        pytest.param(TO_999, (500, 500), (640, 400), id="999-middle"),
        pytest.param(TO_1000, (1000, 1000), (1279, 799), id="1000-far-edge"),
        pytest.param(build_smart_dialect(), (1288, 812), (1279, 799), id="resized-far-edge"),
        pytest.param(build_smart_dialect(), (644, 406), (640, 400), id="resized-middle"),
    ],
)
def test_a_point_is_a_pixel_of_the_picture_that_was_sent(
    dialect: Dialect, said: tuple[float, float], pixel: tuple[int, int]
) -> None:
    assert dialect.point(*said, Size(1280, 800)) == pixel


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("wrong", [-1, -0.001, 5000, math.nan, math.inf, 10**400, True])
def test_what_is_no_place_in_the_picture_is_refused(dialect: Dialect, wrong: Any) -> None:
    with pytest.raises(OutOfRange, match="coordinates go from 0"):
        dialect.point(wrong, 0, Size(1280, 800))
    with pytest.raises(OutOfRange):
        dialect.box(0, 0, 0, wrong, Size(1280, 800))


def test_a_thousand_is_beyond_the_last_of_999() -> None:
    with pytest.raises(OutOfRange, match="0 to 999"):
        TO_999.point(1000, 0, Size(1280, 800))


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@given(size=SANE, data=st.data())
def test_every_pixel_can_be_said_and_is_understood(dialect: Dialect, size: Size, data: st.DataObject) -> None:
    x, y = data.draw(st.integers(0, size.width - 1)), data.draw(st.integers(0, size.height - 1))
    wide, high = dialect.extent(size)
    said = [min(value, dialect.top or value) for value in dialect.say(x, y, size)]
    got_x, got_y = dialect.point(said[0], said[1], size)
    # The last of 999 steps is the one place where a step of the model is missing.
    assert abs(got_x - x) <= (size.width / wide if dialect.top else 0)
    assert abs(got_y - y) <= (size.height / high if dialect.top else 0)


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.name)
@given(size=SANE, parts=st.tuples(*[st.floats(0, 0.999)] * 4))
def test_a_box_lies_in_the_picture_and_is_never_empty(
    dialect: Dialect, size: Size, parts: tuple[float, float, float, float]
) -> None:
    wide, high = dialect.extent(size)
    x1, y1, x2, y2 = parts
    box = dialect.box(x1 * wide, y1 * high, x2 * wide, y2 * high, size)
    assert not box.empty
    assert box.intersect(Rect(0, 0, size.width, size.height)) == box


def test_corners_in_any_order_make_the_same_box() -> None:
    sent = Size(100, 100)
    assert TO_1000.box(100, 100, 300, 500, sent) == TO_1000.box(300, 500, 100, 100, sent) == Rect(10, 10, 20, 40)


@given(size=SANE)
def test_a_resized_picture_has_whole_patches_and_a_bounded_area(size: Size) -> None:
    seen = compute_smart_size(size, max_pixels=1280 * 28 * 28)
    assert seen.width % 28 == seen.height % 28 == 0
    assert seen.width * seen.height >= 28 * 28


def test_a_picture_like_a_thread_is_refused() -> None:
    with pytest.raises(OutOfRange, match="too long"):
        compute_smart_size(Size(10_000, 10))


@given(size=SIZES, longest=st.integers(1, 3000), pixels=st.integers(1, 2_000_000))
def test_a_fitted_picture_is_within_its_limits_and_never_larger(size: Size, longest: int, pixels: int) -> None:
    fit = fit_size(size, longest=longest, pixels=pixels)
    assert max(fit.width, fit.height) <= max(longest, 1)
    assert fit.width <= size.width
    assert fit.height <= size.height


def test_a_box_goes_back_to_the_screen_where_it_was() -> None:
    transform = Transform(Rect(-1920, 100, 1920, 1200), 1280, 800)
    assert transform.rect_to_screen(Rect(0, 0, 1280, 800)) == transform.screen
    assert transform.rect_to_screen(Rect(640, 400, 64, 80)) == Rect(-960, 700, 96, 120)
    assert transform.to_image(transform.rect_to_screen(Rect(640, 400, 64, 80))) == Rect(640, 400, 64, 80)
