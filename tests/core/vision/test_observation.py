"""What was seen: pixels that map to the screen and back, and ids that never lie."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from handrail import Element, Observations, OutOfRange, Rect, StaleElement, StaleObservation, Transform, element_wire
from handrail.api.observation import MAX_IMAGE_WIDTH, MAX_OBSERVATIONS

screens = st.builds(
    Rect,
    x=st.integers(-10_000, 10_000),
    y=st.integers(-10_000, 10_000),
    width=st.integers(1, 10_000),
    height=st.integers(1, 10_000),
)
rects = st.builds(
    Rect, x=st.integers(-99, 99), y=st.integers(-99, 99), width=st.integers(-9, 99), height=st.integers(-9, 99)
)


def element(text: str, fingerprint: str = "", rect: Rect | None = None) -> Element:
    return Element("button", text, rect or Rect(0, 0, 10, 10), fingerprint=fingerprint)


@given(screen=screens, data=st.data())
def test_every_point_of_an_image_is_a_point_of_its_screen(screen: Rect, data: st.DataObject) -> None:
    transform = Transform.fit(screen)
    x = data.draw(st.integers(0, transform.width - 1))
    y = data.draw(st.integers(0, transform.height - 1))
    assert screen.contains(*transform.to_screen(x, y))


@given(screen=screens, data=st.data())
def test_a_point_comes_back_where_it_was(screen: Rect, data: st.DataObject) -> None:
    transform = Transform.fit(screen)
    x = data.draw(st.integers(0, transform.width - 1))
    y = data.draw(st.integers(0, transform.height - 1))
    there = transform.to_screen(x, y)
    back = transform.to_image(Rect(*there, 1, 1))
    assert abs(back.x - x) <= 1
    assert abs(back.y - y) <= 1


@given(screen=screens)
def test_an_image_is_at_most_so_wide_and_never_enlarged(screen: Rect) -> None:
    transform = Transform.fit(screen)
    assert 1 <= transform.width <= min(MAX_IMAGE_WIDTH, screen.width)
    assert 1 <= transform.height <= screen.height
    assert transform.scale >= 1


@given(screen=screens, x=st.floats(allow_nan=True), y=st.floats(allow_nan=True))
def test_a_point_outside_is_refused_and_none_lands_outside(screen: Rect, x: float, y: float) -> None:
    transform = Transform.fit(screen)
    if 0 <= x < transform.width and 0 <= y < transform.height:
        assert screen.contains(*transform.to_screen(x, y))
    else:
        with pytest.raises(OutOfRange, match="outside the image"):
            transform.to_screen(x, y)


@given(screen=screens, rect=rects)
def test_what_is_drawn_lies_in_the_image(screen: Rect, rect: Rect) -> None:
    transform = Transform.fit(screen)
    drawn = transform.to_image(Rect(screen.x + rect.x, screen.y + rect.y, rect.width, rect.height))
    assert drawn.empty or Rect(0, 0, transform.width, transform.height).intersect(drawn) == drawn


@given(one=rects, other=rects)
def test_what_two_rectangles_share_lies_in_both(one: Rect, other: Rect) -> None:
    shared = one.intersect(other)
    assert shared.width >= 0
    assert shared.height >= 0
    assert shared == other.intersect(one)
    if not shared.empty:
        assert one.contains(shared.x, shared.y)
        assert other.contains(shared.right - 1, shared.bottom - 1)


def test_a_screen_to_the_left_has_negative_pixels() -> None:
    transform = Transform.fit(Rect(-2560, -100, 2560, 1440))
    assert transform.to_screen(0, 0) == (-2559, -99)
    assert transform.to_screen(1279, 719) == (-1, 1339)
    assert transform.to_image(Rect(-2560, -100, 256, 144)) == Rect(0, 0, 128, 72)


def test_ids_rise_and_are_never_used_again() -> None:
    seen = Observations()
    first = seen.add([element("a"), element("b")])
    second = seen.add([element("a"), element("b")])
    assert [e.id for e in first.elements] == ["e1", "e2"]
    assert [e.id for e in second.elements] == ["e3", "e4"]
    assert (first.id, second.id) == ("o1", "o2")


def test_what_is_recognised_keeps_its_id() -> None:
    seen = Observations()
    first = seen.add([element("Save", "f1"), element("Open", "f2")])
    second = seen.add([element("Open", "f2"), element("New", "f3"), element("Save…", "f1")])
    assert [e.id for e in second.elements] == [first.elements[1].id, "e3", first.elements[0].id]
    assert seen.element("e1").text == "Save…"


def test_twins_are_told_apart_by_their_order() -> None:
    seen = Observations()
    first = seen.add([element("x", "twin"), element("x", "twin")])
    second = seen.add([element("x", "twin"), element("x", "twin"), element("x", "twin")])
    assert [e.id for e in first.elements] == ["e1", "e2"]
    assert [e.id for e in second.elements] == ["e1", "e2", "e3"]


def test_the_same_print_from_another_source_is_another_thing() -> None:
    seen = Observations()
    seen.add([Element("text", "Save", None, source="ocr", fingerprint="f")])
    assert seen.add([Element("button", "Save", None, source="accessibility", fingerprint="f")]).elements[0].id == "e2"


def test_an_id_that_was_never_given_is_stale() -> None:
    with pytest.raises(StaleElement, match="e9"):
        Observations().element("e9")


def test_points_belong_to_the_latest_picture() -> None:
    seen = Observations()
    with pytest.raises(StaleObservation, match="none was taken"):
        seen.get()
    pictured = seen.add([], transform=Transform.fit(Rect(0, 0, 100, 100)))
    seen.add([element("a")])
    assert seen.get() is pictured
    assert seen.get(pictured.id) is pictured
    with pytest.raises(StaleObservation, match="o77"):
        seen.get("o77")


def test_memory_is_bounded() -> None:
    seen = Observations()
    for number in range(MAX_OBSERVATIONS + 10):
        seen.add([element(str(n), f"{number}-{n}") for n in range(500)])
    with pytest.raises(StaleObservation):
        seen.get("o1")
    with pytest.raises(StaleElement):
        seen.element("e1")
    assert seen.element(f"e{(MAX_OBSERVATIONS + 10) * 500}")


@given(st.lists(st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=6), max_size=8))
def test_one_id_never_stands_for_two_things(looks: list[list[str]]) -> None:
    seen = Observations()
    meaning: dict[str, tuple[str, int]] = {}
    anonymous = 0
    for prints in looks:
        ids = [e.id for e in seen.add([element("x", p) for p in prints]).elements]
        assert len(set(ids)) == len(ids)
        for at, (print_, id) in enumerate(zip(prints, ids, strict=True)):
            anonymous += not print_
            thing = (print_, prints[:at].count(print_)) if print_ else ("", anonymous)
            assert meaning.setdefault(id, thing) == thing


def test_models_see_pixels_of_the_image() -> None:
    seen = Observations()
    transform = Transform.fit(Rect(-2560, 0, 2560, 1440))
    there = Element("button", "Save", Rect(-2560, 0, 200, 100), frozenset({"focused", "enabled"}), confidence=0.98765)
    shown = element_wire(seen.number([there])[0], transform)
    assert shown == {
        "id": "e1",
        "role": "button",
        "text": "Save",
        "bbox": [0, 0, 100, 50],
        "states": ["enabled", "focused"],
        "source": "accessibility",
        "confidence": 0.988,
    }
    hidden = element_wire(Element("button", "x", None, value="3"), None)
    assert (hidden["bbox"], hidden["value"]) == (None, "3")
