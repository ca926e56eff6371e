"""Marks in a picture hide nothing of what they mark."""

from __future__ import annotations

import random
from typing import Any

import cv2
import numpy as np
import pytest

from handrail import Element, Frame, Rect, Transform
from handrail_gui.observe import annotate, model_image

WHITE = 255
INK = (40, 40, 40)


def white(width: int = 400, height: int = 300) -> Frame:
    return Frame(Rect(0, 0, width, height), np.full((height, width, 3), WHITE, np.uint8), 0.0)


def button(id: str, x: int, y: int, width: int = 60, height: int = 30, **more: Any) -> Element:
    return Element("button", id, Rect(x, y, width, height), actions=("click",), id=id, **more)


def marked(elements: list[Element], frame: Frame | None = None) -> tuple[Any, list[annotate.ElementMark], Any]:
    """The picture before, the marks, the picture with them."""
    frame = frame or white()
    transform = Transform.fit(frame.screen)
    pixels = model_image.scale_frame(frame, transform)
    found = annotate.place_marks(pixels, elements, transform)
    return pixels, found, annotate.draw_marks(pixels, found)


def drawn(elements: list[Element], frame: Frame | None = None) -> Any:
    return marked(elements, frame)[2]


def assert_nothing_is_hidden(pixels: Any, found: list[annotate.ElementMark], after: Any) -> None:
    """Inside a thing that holds no other nothing is drawn but its own id, and that where nothing was to be seen but an edge."""
    changed = (pixels != after).any(axis=2)
    empty = annotate.find_blank_pixels(pixels)
    for mark in found:
        box = mark.box
        if any(other.box != box and box.intersect(other.box) == other.box for other in found):
            continue
        inside = np.zeros_like(changed)
        inside[box.y : box.bottom, box.x : box.right] = True
        if mark.tag is not None:
            inside[mark.tag.y : mark.tag.bottom, mark.tag.x : mark.tag.right] = False
            within = mark.tag.intersect(Rect(box.x + 3, box.y + 3, box.width - 6, box.height - 6))
            assert empty[within.y : within.bottom, within.x : within.right].all(), f"{mark.id} hides its own thing"
        assert not changed[inside].any(), f"something is drawn on {mark.id}"
    tags = [mark.tag for mark in found if mark.tag is not None]
    for index, tag in enumerate(tags):
        assert all(tag.intersect(other).empty for other in tags[:index]), "two ids lie on each other"


def scribbled(elements: list[Element], width: int, height: int) -> Frame:
    """Every element with a frame and a word in it."""
    frame = white(width, height)
    for element in elements:
        rect = element.rect
        assert rect is not None
        cv2.rectangle(frame.pixels, (rect.x, rect.y), (rect.right - 1, rect.bottom - 1), (150, 150, 150), 1)
        at = (rect.x + rect.width // 3, rect.center[1] + 4)
        cv2.putText(frame.pixels, element.text[:3], at, cv2.FONT_HERSHEY_SIMPLEX, 0.4, INK, 1, cv2.LINE_AA)
    return frame


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1, 1.5, 2])
def test_nothing_that_is_marked_is_hidden_however_things_lie(seed: int, scale: float):
    chance = random.Random(seed)
    crowd = [
        button(
            f"e{index}",
            round(chance.randint(0, 1200) * scale),
            round(chance.randint(0, 760) * scale),
            round(chance.randint(6, 160) * scale),
            round(chance.randint(6, 50) * scale),
        )
        for index in range(50)
    ]
    assert_nothing_is_hidden(*marked(crowd, scribbled(crowd, round(1280 * scale), round(800 * scale))))


@pytest.mark.parametrize("gap", [0, 1, 4])
def test_keys_of_a_pad_keep_their_letters_and_get_their_ids(gap: int):
    keys = [
        button(f"e{row * 6 + column}", 30 + column * (56 + gap), 40 + row * (32 + gap), 56, 32)
        for row in range(6)
        for column in range(6)
    ]
    pixels, found, after = marked(keys, scribbled(keys, 400, 300))
    assert_nothing_is_hidden(pixels, found, after)
    assert [mark.id for mark in found if mark.tag is None] == []


def test_an_id_lies_beside_its_thing_where_there_is_room():
    (mark,) = marked([button("e1", 100, 100)])[1]
    assert mark.tag is not None
    assert mark.tag.intersect(mark.box).empty
    assert mark.tag.bottom in range(mark.box.y - 3, mark.box.y + 1)


def test_a_thing_that_fills_the_picture_has_its_id_on_an_empty_part():
    frame = white()
    cv2.putText(frame.pixels, "text at the top", (5, 12), cv2.FONT_HERSHEY_SIMPLEX, 0.4, INK, 1)
    text = Element("text", "", Rect(0, 0, 400, 300), states=frozenset({"editable"}), id="e1")
    pixels, found, after = marked([text], frame)
    assert_nothing_is_hidden(pixels, found, after)
    assert found[0].tag is not None


def test_where_there_is_no_room_an_id_is_left_out_and_nothing_is_hidden():
    noise = Frame(Rect(0, 0, 60, 40), np.random.default_rng(1).integers(0, 255, (40, 60, 3), np.uint8), 0.0)
    pixels, found, after = marked([button("e1", 0, 0, 60, 40)], noise)
    assert found[0].tag is None
    assert (pixels == after).all()


def test_the_frame_itself_is_left_as_it_was():
    frame = white()
    drawn([button("e1", 100, 100)], frame)
    assert (frame.pixels == WHITE).all()


@pytest.mark.parametrize("source", ["ocr", "vision"])
def test_what_was_made_out_in_a_picture_is_marked_though_nobody_says_what_it_can_do(source: str):
    seen = Element("text", "Save", Rect(100, 100, 60, 20), source=source, id="e1")
    assert [mark.id for mark in marked([seen])[1]] == ["e1"]


def test_only_what_can_be_used_gets_a_box():
    label = Element("label", "only text", Rect(10, 10, 100, 20), id="e1")
    disabled = button("e2", 10, 50, states=frozenset({"disabled"}))
    assert (drawn([label, disabled]) == WHITE).all()
    assert (drawn([button("e3", 10, 100)]) != WHITE).any()


def test_what_only_holds_others_gets_no_box():
    page = Element("document", "page", Rect(0, 0, 400, 300), actions=("click",), id="e1")
    inside = button("e2", 100, 100)
    assert (drawn([page, inside]) == drawn([inside])).all()


def test_elements_at_the_edge_are_drawn_inside():
    drawn([button("e1", -20, -20), button("e2", 390, 290), button("e3", 380, 0, 20, 300)])


def test_of_hundreds_in_one_place_as_many_are_told_apart_as_there_is_room_for() -> None:
    frame = white(1280, 720)
    pixels, found, after = marked([button(f"e{at}", 500, 300) for at in range(500)], frame)
    assert len(found) == 500
    assert 10 < sum(mark.tag is not None for mark in found) < 100
    assert_nothing_is_hidden(pixels, found, after)
