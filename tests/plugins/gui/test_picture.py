"""What is drawn into a picture for a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from handrail import Element, Frame, Rect, Transform
from handrail_gui import picture

WHITE = 255


def white(width: int = 400, height: int = 300) -> Frame:
    return Frame(Rect(0, 0, width, height), np.full((height, width, 3), WHITE, np.uint8), 0.0)


def drawn(elements: list[Element], frame: Frame | None = None) -> Any:
    frame = frame or white()
    transform = Transform.fit(frame.screen)
    return picture.marked(picture.scaled(frame, transform), elements, transform)


def button(id: str, x: int, y: int, width: int = 60, height: int = 30, **more: Any) -> Element:
    return Element("button", id, Rect(x, y, width, height), actions=("click",), id=id, **more)


def test_a_password_is_covered_and_nothing_else_is():
    transform = Transform.fit(white().screen)
    secret = Element("password text", "", Rect(100, 100, 80, 20), states=frozenset({"password"}))
    pixels = picture.without_passwords(white().pixels, [secret, button("e1", 10, 10)], transform)
    assert (pixels[100:120, 100:180] != WHITE).all()
    assert (pixels[:99] == WHITE).all()


def test_the_frame_itself_is_left_as_it_was():
    frame = white()
    drawn([button("e1", 100, 100)], frame)
    assert (frame.pixels == WHITE).all()


def test_only_what_can_be_used_gets_a_box():
    label = Element("label", "only text", Rect(10, 10, 100, 20), id="e1")
    disabled = button("e2", 10, 50, states=frozenset({"disabled"}))
    assert (drawn([label, disabled]) == WHITE).all()
    assert (drawn([button("e3", 10, 100)]) != WHITE).any()


def test_what_only_holds_others_gets_no_box():
    page = Element("document", "page", Rect(0, 0, 400, 300), actions=("click",), id="e1")
    inside = button("e2", 100, 100)
    assert (drawn([page, inside]) == drawn([inside])).all()


def test_tags_of_crowded_elements_do_not_cover_each_other():
    crowd = [
        button(f"e{row * 8 + column}", 20 + column * 44, 40 + row * 24, 40, 20)
        for row in range(8)
        for column in range(8)
    ]
    marked = drawn(crowd)
    tags = [colour for colour in picture.COLOURS if (marked == np.array(colour, np.uint8)).all(axis=2).any()]
    assert len(tags) == len(picture.COLOURS)
    # White letters on a tag: each of the 64 tags keeps some of its own.
    assert (marked[35:260, 15:380] == WHITE).any()


def test_elements_at_the_edge_are_drawn_inside():
    drawn([button("e1", -20, -20), button("e2", 390, 290), button("e3", 380, 0, 20, 300)])


def test_a_large_picture_is_halved():
    transform = Transform.fit(white(2560, 1440).screen)
    assert picture.scaled(white(2560, 1440), transform).shape == (720, 1280, 3)
