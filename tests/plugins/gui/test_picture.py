"""What is drawn into a picture for a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from handrail import Element, Frame, Rect, Transform
from handrail_gui.observe import model_image

WHITE = 255


def white(width: int = 400, height: int = 300) -> Frame:
    return Frame(Rect(0, 0, width, height), np.full((height, width, 3), WHITE, np.uint8), 0.0)


def button(id: str, x: int, y: int, width: int = 60, height: int = 30, **more: Any) -> Element:
    return Element("button", id, Rect(x, y, width, height), actions=("click",), id=id, **more)


def test_a_password_is_covered_and_nothing_else_is():
    transform = Transform.fit(white().screen)
    secret = Element("password text", "", Rect(100, 100, 80, 20), states=frozenset({"password"}))
    pixels = model_image.cover_passwords(white().pixels, [secret, button("e1", 10, 10)], transform)
    assert (pixels[100:120, 100:180] != WHITE).all()
    assert (pixels[:99] == WHITE).all()


def test_a_large_picture_is_halved():
    transform = Transform.fit(white(2560, 1440).screen)
    assert model_image.scale_frame(white(2560, 1440), transform).shape == (720, 1280, 3)
